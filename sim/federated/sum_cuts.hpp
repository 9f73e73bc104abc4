// The least sum of the devices' latencies (no barrier): for given cuts sum alpha + sum over resources of (sum of roots)^2, with shares in
// proportion to the roots (docs/federated.md, equation 18).
#pragma once

#include "sim/federated/cuts.hpp"

namespace rehearse::federated {

[[nodiscard]] double least_sum_s(std::span<const Option> chosen);
[[nodiscard]] std::vector<PerResource> shares_of_least_sum(std::span<const Option> chosen);

// round_s and bound_s of the result are the sum and its bound. Best responses to the prices 2 x sum of roots: where every device has its
// own, nothing is better, since the sum is convex in the sums of alphas and roots.
[[nodiscard]] ChosenCuts choose_cuts_for_sum(const Problem& problem, const CutSearch& search = {});

}  // namespace rehearse::federated

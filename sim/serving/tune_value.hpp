// Deployments by the requests that they carry for their price (docs/serving.md, "Tuning").
#pragma once

#include <functional>
#include <vector>

#include "sim/serving/tune_candidates.hpp"

namespace rehearse::sim {

// By formula: of the cheapest deployments (with the cheapest of each kind) at rates up to the highest that the inventory carries, each half
// an octave apart over six octaves, those with the most requests a second within the promise over their cost, each at the highest rate that
// it carries. From the best on, at most `keep`. `cheapest` finds those of the sides' rate, which is left as it was.
[[nodiscard]] std::vector<TunedDeployment> by_value(TuneSides& sides, double most_per_s,
                                                    const std::function<std::vector<TunedDeployment>()>& cheapest);

}  // namespace rehearse::sim

// Several plans, or kinds of GPUs, in one role (docs/serving.md, "Tuning").
#pragma once

#include <vector>

#include "sim/serving/tune_candidates.hpp"

namespace rehearse::sim {

// The cheapest deployment together, and the cheapest apart, where it has several plans in a role and costs less than the cheapest of
// `found`, of the same sort. By the rate that one instance carries alone: more instances of a plan carry more than that, so that its cost
// is an upper bound. Every instance carries what it carries alone within the promise; apart the time to first token is divided between the
// sides, at the best of some shares.
[[nodiscard]] std::vector<TunedDeployment> mixed_deployments(const TuneSides& sides, const std::vector<TunedDeployment>& found);

}  // namespace rehearse::sim

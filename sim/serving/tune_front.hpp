// The deployments of a serving job that no other beats in every goal, by formula.
#pragma once

#include <vector>

#include "sim/serving/tune_candidates.hpp"

namespace rehearse::sim {

// All that keep the promise at the load's rate within the inventory, together and apart, with every number of instances; by the job's goals
// (of one goal other than cost by it and cost), the first of them from the best on. The time between two sides is that of a cache alone.
[[nodiscard]] std::vector<TunedDeployment> deployment_front(
    const TuneSides& sides, const std::function<void(double)>& progress = [](double) {});

// Into its place on a front, from which those go that it beats; whether it stands there.
bool add_to_front(const TuneSides& sides, const TunedDeployment& deployment, std::vector<TunedDeployment>& front);

}  // namespace rehearse::sim

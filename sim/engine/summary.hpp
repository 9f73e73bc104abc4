// From executions of a step graph to the one struct of results.
#pragma once

#include <vector>

#include "sim/engine/execution.hpp"
#include "sim/engine/prices.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Of executions of one step's graph, which is `step` of the routing; phases are those of the last. Without what finish_for() adds.
[[nodiscard]] StepResult summarise(const Job& job, const workloads::StepGraph& graph, const Prices& prices,
                                   const std::vector<Execution>& executions, std::string method, int step = 0);

// Several steps that differ, on the same ranks, as one result: times are means, memory is each rank's highest peak, collectives are those
// of the last step.
[[nodiscard]] StepResult mean_step(const Job& job, std::vector<StepResult> steps);

// What stands in every result whoever made it: throughput, MFU, experts' loads, seed, hash.
void finish_for(const Job& job, StepResult& result);

// Each distinct kind of call, with NCCL's bandwidths, and how long it took in the execution.
[[nodiscard]] std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices,
                                                               const Execution& execution);

}  // namespace rehearse::sim

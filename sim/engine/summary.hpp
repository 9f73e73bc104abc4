// From executions of a step graph to the one struct of results.
#pragma once

#include <vector>

#include "sim/engine/execution.hpp"
#include "sim/engine/prices.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Phases are those of the last step.
[[nodiscard]] StepResult summarise(const Job& job, const workloads::StepGraph& graph, const Prices& prices,
                                   const std::vector<Execution>& steps, std::string method);

// What stands in every result whoever made it: throughput, MFU, seed, hash.
void finish_for(const Job& job, StepResult& result);

// Each distinct kind of call, with NCCL's bandwidths, and how long it took in the execution.
[[nodiscard]] std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices,
                                                               const Execution& execution);

}  // namespace rehearse::sim

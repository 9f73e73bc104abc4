// From executions of a step graph to the one struct of results.
#pragma once

#include <vector>

#include "sim/engine/execution.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Of executions of the step; phases are those of the last. Without what finish_for() (sim/analytic/finish.hpp) adds.
[[nodiscard]] StepResult summarise(const PreparedStep& prepared, const std::vector<Execution>& executions, std::string method);

// Each distinct kind of call, with NCCL's bandwidths, and how long it took in the execution.
[[nodiscard]] std::vector<CollectiveResult> collective_results(const workloads::StepGraph& graph, const Prices& prices,
                                                               const Execution& execution);

}  // namespace rehearse::sim

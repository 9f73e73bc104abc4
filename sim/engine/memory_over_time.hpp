// Device memory over the executions of a step graph (docs/memory.md).
#pragma once

#include <vector>

#include "sim/engine/execution.hpp"
#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Peak of each simulated rank in the last of the executions; `step` is that of the routing.
[[nodiscard]] MemoryResult memory_of(const Job& job, const workloads::StepGraph& graph, const std::vector<Execution>& executions,
                                     int step = 0);

// [simulated rank] what it holds from when on, over all executions: one sample for each time at which that changes.
[[nodiscard]] std::vector<std::vector<MemorySample>> memory_over_time(const Job& job, const workloads::StepGraph& graph,
                                                                      const std::vector<Execution>& executions, int step = 0);

}  // namespace rehearse::sim

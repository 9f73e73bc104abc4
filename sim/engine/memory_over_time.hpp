// Device memory over the executions of a step graph (docs/memory.md).
#pragma once

#include <vector>

#include "sim/engine/execution.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/timeline.hpp"
#include "workloads/allocations.hpp"

namespace rehearse::sim {

// Peak of each simulated rank in the last of the executions.
[[nodiscard]] MemoryResult memory_of(const PreparedStep& prepared, const std::vector<Execution>& executions);

[[nodiscard]] workloads::StepAllocations allocations_of(const PreparedStep& prepared);

// What a simulated rank holds from when on, one sample for each time at which that changes, behind the samples there. The executions begin
// at begins_s.
void add_memory_over_time(const PreparedStep& prepared, const workloads::RankAllocations& rank, const std::vector<Execution>& executions,
                          const std::vector<double>& begins_s, std::vector<MemorySample>& samples);

}  // namespace rehearse::sim

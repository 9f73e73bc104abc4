// Device memory over the executions of a step graph (docs/memory.md).
#pragma once

#include <vector>

#include "sim/engine/execution.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Peak of each simulated rank in the last of the executions.
[[nodiscard]] MemoryResult memory_of(const PreparedStep& prepared, const std::vector<Execution>& executions);

// [simulated rank] what it holds from when on, over all executions: one sample for each time at which that changes.
[[nodiscard]] std::vector<std::vector<MemorySample>> memory_over_time(const PreparedStep& prepared,
                                                                      const std::vector<Execution>& executions);

}  // namespace rehearse::sim

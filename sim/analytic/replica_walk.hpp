// A step without a pipeline: units one after another on the compute stream, gathers and reductions of the replicas one after another on
// theirs, each waiting for the other where workloads/rank_emitter says so.
#pragma once

#include "sim/analytic/replica_cost.hpp"

namespace rehearse::sim {

// Whether walk_replicas() answers for such a stage: alone, with one chunk, forward and backward by turns and in one slot each.
[[nodiscard]] bool walks_replicas(const workloads::Workload& workload, const workloads::Compiled& compiled, const ReplicaRules& rules);

// Seconds from the beginning of the step to the end of the last backward and of all reductions beside it. The stack's own time comes
// first; gathers of the last update's weights run beside it already.
[[nodiscard]] double walk_replicas(const ReplicaRules& rules, ChunkTerms units);

}  // namespace rehearse::sim

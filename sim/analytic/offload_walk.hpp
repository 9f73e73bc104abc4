// Equations (33)-(35) in a pipeline: all units of all slots one after another, with the copies to the host and back beside them.
#pragma once

#include <span>
#include <vector>

#include "sim/analytic/replica_cost.hpp"
#include "sim/analytic/slot_walk.hpp"

namespace rehearse::sim {

struct OffloadedSpans {
  StageSpans spans;
  std::vector<double> copies_s;  // [stage] for which the GPU waits for copies, or is slowed by them
};

// A unit waits for its activations, and for those of the unit before the last to have left; copies of one direction follow one another.
// hop_s: as in PipelineTimes; blocking: a stage waits for what it sends.
[[nodiscard]] OffloadedSpans walk_offloaded(const workloads::Workload& workload, const workloads::Compiled& compiled,
                                            std::span<const StageTerms> stages, const ReplicaRules& rules, const ContentionPair& pair,
                                            const std::vector<double>& hop_s);

}  // namespace rehearse::sim

// What moving activations to the host's memory and back adds to a chunk's time: equations (33)-(35).
#pragma once

#include <vector>

#include "sim/analytic/replica_cost.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {

// Seconds that a chunk's slots last longer, those of the micro-batch in the middle: the first and last ones have other neighbours, but
// stages wait for one another then.
struct OffloadCost {
  std::vector<double> forward_s, backward_s, weight_s;  // [chunk]
  // Of those the part after the last unit's own work: the slot's message to the next stage does not wait for it.
  std::vector<double> after_forward_s, after_backward_s;
};

// A turn of a unit lasts as long as its own work, exposed exchange with replicas included, beside the copy out of the turn before and the
// copy in for the turn after, each on its own link and direction. `stage` is the pipeline stage.
[[nodiscard]] OffloadCost offload_cost(const workloads::Workload& workload, const StageTerms& terms, const ContentionPair& pair,
                                       const workloads::StageProgram& program, int stage);

}  // namespace rehearse::sim

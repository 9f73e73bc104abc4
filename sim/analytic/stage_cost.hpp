// Equations (1), (2), (7), (8): seconds that each chunk of each pipeline stage computes and communicates per micro-batch, and what the
// replicas exchange per step.
#pragma once

#include <vector>

#include "sim/analytic/overlap.hpp"
#include "sim/cost/communication.hpp"
#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {

// One unit (layers, embedding, head) of a chunk. Phases that it spends per micro-batch.
struct UnitCost {
  PhaseTimes forward, backward;  // backward includes recomputation; of the input's gradient only when the schedule splits backward
  PhaseTimes weight;             // then the weight gradient, otherwise 0
  [[nodiscard]] double last_backward_s() const {
    return weight.total() > 0 ? weight.total() : backward.total();
  }                                                                // completes the gradients
  [[nodiscard]] double seconds(workloads::Slot::Kind slot) const;  // of its own work; backward: with the weight gradient
  std::vector<PieceTimes> forward_pieces, backward_pieces;         // in order, as overlapped pairs interleave them
  double gather_s = 0;                                             // all-gather of its parameters over the replicas
  double reduce_s = 0;                                             // reduction of its gradients
  double copy_s = 0;                                               // of its activations to the host, or back, where they are offloaded
};

struct StageCost {
  std::vector<std::vector<UnitCost>> chunks;  // [chunk], forward order
  double hop_s = 0;                           // message to the next stage
  double gather_s = 0;                        // all of the stage's parameters at once
  double reduce_s = 0;
  double tied_s = 0;    // all-reduce of the tied embedding's gradient
  double update_s = 0;  // optimizer
};

// One per pipeline stage, seen from its first rank.
// `step`: of the routing.
[[nodiscard]] std::vector<StageCost> stage_costs(const Job& job, const CommunicationModel& model, int step = 0);

}  // namespace rehearse::sim

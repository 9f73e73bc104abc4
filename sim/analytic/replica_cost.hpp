// What the exchange between data-parallel replicas adds to a stage's time: equations (13) and (24), ZeRO-3 per micro-batch.
#pragma once

#include "sim/analytic/stage_cost.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {

class ReplicaCost {
 public:
  ReplicaCost(const Job& job, const StageCost& stage);

  // Exposed per micro-batch and chunk (ZeRO-2 and 3), in addition to the chunk's own time.
  [[nodiscard]] double per_forward_s(std::size_t chunk) const;
  [[nodiscard]] double per_backward_s(std::size_t chunk) const;
  // Before the first forward can run at full speed: gathers of the last update's weights that the first forwards do not hide.
  [[nodiscard]] double at_start_s() const;
  // After the last backward: reductions that it does not hide.
  [[nodiscard]] double reduce_at_end_s() const;
  // By how much gathers still under way after `elapsed_s` stretch the first forward, and reductions the last backward (alpha of equation
  // 24).
  [[nodiscard]] double first_forward_stretch_s(double elapsed_s) const;
  [[nodiscard]] double last_backward_stretch_s() const;
  // After the update: all-gather of the new weights when nothing hides it.
  [[nodiscard]] double gather_at_end_s() const;

 private:
  const StageCost& stage_;
  workloads::ReplicaSync sync_;
  ContentionPair pair_;
  int turn_;  // micro-batches that pass through a chunk before the next chunk's turn
};

}  // namespace rehearse::sim

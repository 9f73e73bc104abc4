// Everything about a workload that does not depend on time or hardware, worked out once and passed to all who need it: formula, memory,
// folding, step graph.
#pragma once

#include <vector>

#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads {

struct Compiled {
  Cut cut;
  const Schedule* schedule = nullptr;
  PipelineShape shape;
  RankGrid grid;
  ReplicaSync sync;
  double message_bytes = 0;  // from a stage to the next, per micro-batch and GPU
  double tied_bytes = 0;     // of the tied embedding's gradient, which the first and the last stage add up; 0: nothing to add up
  std::vector<StageProgram> stages;

  // What a stage has to add up of the tied embedding.
  [[nodiscard]] double tied_bytes_of(int stage) const { return stage == 0 || stage + 1 == shape.stages ? tied_bytes : 0; }
};

// Throws std::logic_error where the chunks of experts are still to be tuned (sim/memory/tune_chunks.hpp).
[[nodiscard]] Compiled compile(const Workload& workload, Cut cut = Granularity::layer);

}  // namespace rehearse::workloads

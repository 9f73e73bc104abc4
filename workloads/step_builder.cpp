#include "workloads/step_builder.hpp"

#include "workloads/rank_emitter.hpp"

namespace rehearse::workloads {
namespace {

PipelineShape shape_of(const Workload& workload) { return {workload.parallel.pp, workload.parallel.vpp, workload.microbatches()}; }

// The message that stage and chunk wait for, in the table of the rank it comes from.
void link(Build& build, std::vector<SlotTable>& tables, std::uint32_t rank, const Slot& slot) {
  const SimulatedRank& own = build.folding.ranks[rank];
  const bool forward = slot.kind == Slot::Kind::forward;
  const int p = build.shape.stages;
  const int neighbour = forward ? own.stage - 1 : own.stage + 1;
  const int chunk = neighbour < 0 ? slot.chunk - 1 : neighbour == p ? slot.chunk + 1 : slot.chunk;
  if (p == 1 || chunk < 0 || chunk == build.shape.chunks) return;
  const int peer = forward ? build.grid.previous_stage(own.rank) : build.grid.next_stage(own.rank);
  SlotEnds& from = tables[build.folding.class_of[peer]].at(slot.kind, chunk, slot.microbatch);
  build.graph.depend(from.send, tables[rank].at(slot.kind, slot.chunk, slot.microbatch).entry);
}

void link_all(Build& build, std::vector<SlotTable>& tables) {
  for (std::uint32_t rank = 0; rank < tables.size(); ++rank) {
    for (const Slot::Kind kind : {Slot::Kind::forward, Slot::Kind::backward}) {
      for (int chunk = 0; chunk < build.shape.chunks; ++chunk) {
        for (int i = 0; i < build.shape.microbatches; ++i) link(build, tables, rank, {kind, i, chunk});
      }
    }
  }
}

}  // namespace

Folding unfolded(const Workload& workload) {
  const RankGrid grid(workload.parallel);
  Folding folding;
  for (int rank = 0; rank < grid.size(); ++rank) {
    folding.ranks.push_back({rank, grid.coordinates(rank).pp, 1});
    folding.class_of.push_back(static_cast<std::uint32_t>(rank));
  }
  return folding;
}

Folding folded_by_stage(const Workload& workload) {
  const RankGrid grid(workload.parallel);
  Folding folding;
  for (int stage = 0; stage < workload.parallel.pp; ++stage) {
    folding.ranks.push_back({grid.rank({0, 0, 0, stage}), stage, grid.size() / workload.parallel.pp});
  }
  for (int rank = 0; rank < grid.size(); ++rank) folding.class_of.push_back(static_cast<std::uint32_t>(grid.coordinates(rank).pp));
  return folding;
}

StepGraph build_step(const Workload& workload, Granularity granularity, const Folding& folding) {
  Build build{workload,
              folding,
              RankGrid(workload.parallel, workload.optimizer.shard_group),
              shape_of(workload),
              stage_programs(workload, granularity),
              replica_sync(workload),
              pipeline_message_bytes(workload),
              StepGraphBuilder(folding.ranks),
              {}};
  std::vector<SlotTable> tables;
  for (std::uint32_t rank = 0; rank < folding.ranks.size(); ++rank) tables.push_back(RankEmitter(build, rank).emit());
  link_all(build, tables);
  StepGraph graph = std::move(build.graph).freeze();
  graph.staggered = ScheduleRegistry::get(workload.schedule).staggers_steps();
  return graph;
}

}  // namespace rehearse::workloads

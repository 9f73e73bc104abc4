#include "workloads/step_builder.hpp"

#include "workloads/rank_emitter.hpp"

namespace rehearse::workloads {
namespace {

// The message that stage and chunk wait for, in the table of the rank it comes from.
void link(Build& build, std::vector<SlotTable>& tables, std::uint32_t rank, const Slot& slot) {
  const SimulatedRank& own = build.folding.ranks[rank];
  const std::optional<Location> source = source_of(build.schedule, build.shape, own.stage, slot);
  if (!source) return;
  const int peer = build.grid.at_stage(own.rank, source->stage);
  SlotEnds& from = tables[build.folding.class_of[peer]].at(slot.kind, source->chunk, slot.microbatch);
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
  const RankGrid grid = rank_grid(workload);
  Folding folding;
  for (int rank = 0; rank < grid.size(); ++rank) {
    folding.ranks.push_back({rank, grid.coordinates(rank).pp, 1});
    folding.class_of.push_back(static_cast<std::uint32_t>(rank));
  }
  return folding;
}

Folding folded_by_stage(const Workload& workload) {
  const RankGrid grid = rank_grid(workload);
  Folding folding;
  for (int stage = 0; stage < workload.parallel.pp; ++stage) {
    folding.ranks.push_back({grid.rank({0, 0, 0, stage}), stage, grid.size() / workload.parallel.pp});
  }
  for (int rank = 0; rank < grid.size(); ++rank) folding.class_of.push_back(static_cast<std::uint32_t>(grid.coordinates(rank).pp));
  return folding;
}

StepGraph build_step(const Workload& workload, Cut cut, const Folding& folding, int step) {
  Build build{workload,
              folding,
              ScheduleRegistry::get(workload.schedule),
              rank_grid(workload),
              pipeline_shape(workload),
              cut,
              stage_programs(workload, cut),
              replica_sync(workload),
              pipeline_message_bytes(workload),
              StepGraphBuilder(folding.ranks),
              {}};
  if (workload.model.moe) build.experts = std::make_shared<ExpertLayer>(workload, step);
  std::vector<SlotTable> tables;
  for (std::uint32_t rank = 0; rank < folding.ranks.size(); ++rank) tables.push_back(RankEmitter(build, rank).emit());
  link_all(build, tables);
  StepGraph graph = std::move(build.graph).freeze();
  graph.staggered = build.schedule.staggers_steps();
  return graph;
}

}  // namespace rehearse::workloads

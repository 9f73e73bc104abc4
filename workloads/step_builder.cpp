#include "workloads/step_builder.hpp"

#include "workloads/rank_emitter.hpp"

namespace rehearse::workloads {
namespace {

// Where a simulated rank's operations are: in the table of the first rank of its program, so much further on.
struct Placed {
  std::shared_ptr<SlotTable> table;
  OpId shift = 0;
  [[nodiscard]] SlotEnds at(const Slot& slot) const {
    SlotEnds ends = table->at(slot.kind, slot.chunk, slot.microbatch);
    if (ends.entry != no_op) ends.entry += shift;
    if (ends.send != no_op) ends.send += shift;
    return ends;
  }
};

// Emits each rank; of ranks of one stage that do the same only the first.
class Ranks {
 public:
  explicit Ranks(Build& build) : build_(build), alike_(!build.experts || build.experts->loads().even() || only_works_differ()) {}

  std::vector<Placed> emit() {
    for (std::uint32_t rank = 0; rank < build_.folding.ranks.size(); ++rank) {
      const int stage = build_.folding.ranks[rank].stage;
      const auto first = alike_ ? first_of_.find(stage) : first_of_.end();
      first == first_of_.end() ? emit(rank, stage) : repeat(rank, first->second);
    }
    return std::move(placed_);
  }

 private:
  // Uneven routing: bytes that a rank gathers over its etp group, or offloads, go with its tokens, and so do operators of experts in bf16.
  [[nodiscard]] bool only_works_differ() const {
    return build_.workload.parallel.etp == 1 && !build_.workload.offload_activations && !build_.wide;
  }

  void emit(std::uint32_t rank, int stage) {
    build_.graph.begin_block(rank);
    first_of_[stage] = rank;
    placed_.push_back({std::make_shared<SlotTable>(RankEmitter(build_, rank).emit()), 0});
  }

  void repeat(std::uint32_t rank, std::uint32_t like) {
    const int global = build_.folding.ranks[rank].rank;
    std::vector<std::uint32_t> calls, works, receivers;
    build_.graph.each_own_work(like, [&](const Op& op) { works.push_back(work_like(op, rank)); });
    for (const std::uint32_t index : build_.graph.calls_of(like)) {
      const Call call = build_.graph.call(index);
      calls.push_back(build_.graph.add_call(call.what, call.repeat, group_like(call, rank)));
    }
    for (const std::uint32_t receiver : build_.graph.receivers_of(like)) {
      receivers.push_back(build_.folding.class_of[build_.compiled.grid.at_stage(global, build_.folding.ranks[receiver].stage)]);
    }
    build_.graph.repeat_block(like, rank, calls, works, receivers);
    placed_.push_back({placed_[like].table, build_.graph.first_of(rank) - build_.graph.first_of(like)});
  }

  std::uint32_t work_like(const Op& op, std::uint32_t rank) {
    const Work& like = build_.graph.work(op.item);
    const int global = build_.folding.ranks[rank].rank;
    if (!like.experts) return work_of_groups_like(op.item, rank);
    ExpertWork work = *like.experts;
    work.pairs = build_.experts->work(work.what, build_.compiled.grid.expert_rank(global), op.layer, op.microbatch).pairs;
    return build_.work_of(work, op.layer);
  }

  // A rank does few works again and again.
  std::uint32_t work_of_groups_like(std::uint32_t like, std::uint32_t rank) {
    if (like >= known_.size()) known_.resize(like + 1UL);
    Known& known = known_[like];
    if (known.rank == rank) return known.work;
    const int global = build_.folding.ranks[rank].rank;
    std::vector<std::uint32_t> groups;
    for (const std::uint32_t group : build_.graph.work(like).queue_groups)
      groups.push_back(build_.group_of(build_.graph.group(group).kind, global));
    known = {rank, build_.work_like(like, groups)};
    return known.work;
  }

  std::uint32_t group_like(const Call& call, std::uint32_t rank) {
    const int global = build_.folding.ranks[rank].rank;
    const Group& like = build_.graph.group(call.group);
    if (like.kind != GroupKind::pp) return build_.group_of(like.kind, global);
    return build_.pair_of(rank, build_.compiled.grid.at_stage(global, build_.compiled.grid.coordinates(like.members[1]).pp));
  }

  struct Known {
    std::uint32_t rank = ~std::uint32_t{0}, work = 0;
  };

  Build& build_;
  bool alike_;
  std::vector<Known> known_;               // [work of the first rank] the last that asked, and what it does instead
  std::map<int, std::uint32_t> first_of_;  // [stage]
  std::vector<Placed> placed_;             // [simulated rank]
};

// The message that stage and chunk wait for, in the table of the rank it comes from.
void link(Build& build, const std::vector<Placed>& placed, std::uint32_t rank, const Slot& slot) {
  const SimulatedRank& own = build.folding.ranks[rank];
  const std::optional<Location> source = source_of(*build.compiled.schedule, build.compiled.shape, own.stage, slot);
  if (!source) return;
  const int peer = build.compiled.grid.at_stage(own.rank, source->stage);
  const SlotEnds from = placed[build.folding.class_of[peer]].at({slot.kind, slot.microbatch, source->chunk});
  build.graph.release(from.send, placed[rank].at(slot).entry);
}

void link_all(Build& build, const std::vector<Placed>& placed) {
  for (std::uint32_t rank = 0; rank < placed.size(); ++rank) {
    for (const Slot::Kind kind : {Slot::Kind::forward, Slot::Kind::backward}) {
      for (int chunk = 0; chunk < build.compiled.shape.chunks; ++chunk) {
        for (int i = 0; i < build.compiled.shape.microbatches; ++i) link(build, placed, rank, {kind, i, chunk});
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

StepGraph build_step(const Workload& workload, const Compiled& compiled, const Folding& folding, int step) {
  Build build{workload, compiled, folding, StepGraphBuilder(folding.ranks), {}};
  if (workload.model.moe) build.experts = std::make_shared<ExpertLayer>(workload, step);
  if (workload.model.moe && workload.precision.wide_layers() > 0) build.wide = of_wide_layers(workload);
  link_all(build, Ranks(build).emit());
  StepGraph graph = std::move(build.graph).freeze();
  graph.staggered = build.compiled.schedule->staggers_steps();
  return graph;
}

}  // namespace rehearse::workloads

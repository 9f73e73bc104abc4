#include "workloads/step_builder.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads {
namespace {

constexpr OpId none = ~OpId{0};

PipelineShape shape_of(const Workload& workload) { return {workload.parallel.pp, workload.parallel.vpp, workload.microbatches()}; }

Purpose purpose_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tp:
      return Purpose::tp;
    case GroupKind::cp:
      return Purpose::cp;
    case GroupKind::pp:
      return Purpose::pp;
    case GroupKind::dp:
    case GroupKind::dp_cp:
    case GroupKind::embedding:
      break;
  }
  return Purpose::dp;
}

Stream stream_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tp:
      return Stream::tp;
    case GroupKind::cp:
      return Stream::cp;
    case GroupKind::pp:
      return Stream::pp_forward;
    case GroupKind::dp:
    case GroupKind::dp_cp:
    case GroupKind::embedding:
      break;
  }
  return Stream::dp;
}

// Where a slot's first operation and its message to the neighbour stage are, for linking the ranks together at the end.
struct SlotEnds {
  OpId entry = none;
  OpId send = none;
};
class SlotTable {  // of forward and of backward or backward_input slots; weight gradients concern no other stage
 public:
  explicit SlotTable(const PipelineShape& shape) : shape_(shape), ends_(2UL * shape.chunks * shape.microbatches) {}
  SlotEnds& at(Slot::Kind kind, int chunk, int microbatch) {
    const std::size_t direction = kind == Slot::Kind::forward ? 0 : 1;
    return ends_[(direction * shape_.chunks + chunk) * shape_.microbatches + microbatch];
  }

 private:
  PipelineShape shape_;
  std::vector<SlotEnds> ends_;
};

// What all ranks share while the graph is built.
struct Build {
  const Workload& workload;
  const Folding& folding;
  RankGrid grid;
  PipelineShape shape;
  std::vector<StageProgram> stages;
  ReplicaSync sync;
  double message_bytes;
  StepGraphBuilder graph;
  std::map<const void*, std::uint32_t> works;  // by the segment or operator list they came from

  std::uint32_t work_of(const void* origin, const std::vector<Operator>& operators, int repeat) {
    const auto [it, added] = works.try_emplace(origin, 0);
    if (added) it->second = graph.add_work({operators, repeat, false});
    return it->second;
  }
};

// One unit of one slot, in the order the rank executes them.
struct Task {
  Slot slot;
  const Unit* unit = nullptr;        // nothing for a chunk without layers
  bool first = false, last = false;  // of the slot
};

// Emits the operations of one simulated rank. `tail_` are the operations that the next one on the main chain waits for.
class RankEmitter {
 public:
  RankEmitter(Build& build, std::uint32_t rank)
      : build_(build),
        rank_(rank),
        global_(build.folding.ranks[rank].rank),
        stage_(build.folding.ranks[rank].stage),
        program_(build.stages[stage_]),
        slots_(build.shape) {}

  SlotTable emit() {
    list_tasks();
    if (build_.sync.ranks > 1 && build_.sync.gathers_weights && build_.sync.overlap_parameters) gather_all_at_start();
    overhead();
    for (std::size_t i = 0; i < tasks_.size(); ++i) task(i);
    finish();
    return std::move(slots_);
  }

 private:
  // --- plan -------------------------------------------------------------------------------------------------------
  void list_tasks() {
    for (const Slot& slot : ScheduleRegistry::get(build_.workload.schedule).order(build_.shape, stage_)) {
      const std::vector<Unit>& units = program_.chunks[slot.chunk];
      const std::size_t n = units.size();
      if (n == 0) tasks_.push_back({slot, nullptr, true, true});
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t unit = slot.kind == Slot::Kind::forward ? k : n - 1 - k;
        tasks_.push_back({slot, &units[unit], k == 0, k + 1 == n});
      }
    }
    for (const Task& t : tasks_) {
      if (completes_gradients(t.slot)) ++backwards_left_[t.unit];
    }
  }

  [[nodiscard]] static bool completes_gradients(const Slot& slot) {
    return slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_weight;
  }

  // --- single operations ------------------------------------------------------------------------------------------
  OpId chain(Op op, const std::string& label) {
    op.rank = rank_;
    const OpId id = build_.graph.add(op, label);
    for (const OpId before : tail_) build_.graph.depend(before, id);
    for (const OpId before : extra_) build_.graph.depend(before, id);
    extra_.clear();
    tail_ = {id};
    if (entry_ == none) entry_ = id;
    return id;
  }

  void compute(const void* origin, const std::vector<Operator>& operators, int repeat, Purpose purpose, const std::string& label) {
    Op op = place({OpKind::compute, Stream::compute, purpose});
    op.item = build_.work_of(origin, operators, repeat);
    chain(op, label);
  }

  [[nodiscard]] Op place(Op op) const {
    op.microbatch = at_.slot.microbatch;
    op.chunk = at_.slot.chunk;
    op.layer = at_.unit != nullptr ? at_.unit->first_layer : -1;
    op.unit = at_.unit != nullptr ? static_cast<std::int32_t>(at_.unit - program_.chunks[at_.slot.chunk].data()) : -1;
    op.pass = pass_;
    return op;
  }

  std::uint32_t group(GroupKind kind) {
    const auto [it, added] = groups_.try_emplace(kind, 0);
    if (added) {
      std::vector<int> members = build_.grid.group(kind, global_);
      std::set<std::uint32_t> folded;
      for (const int member : members) folded.insert(build_.folding.class_of[member]);
      it->second = build_.graph.add_group(kind, std::move(members), {folded.begin(), folded.end()});
    }
    return it->second;
  }

  [[nodiscard]] Op collective_op(const Communication& what, int repeat) {
    Op op = place({OpKind::collective, stream_of(what.group), purpose_of(what.group)});
    op.item = build_.graph.add_call(what, repeat, group(what.group));
    return op;
  }

  // --- segments ---------------------------------------------------------------------------------------------------
  void run(const std::vector<Segment>& segments, Purpose purpose, const std::string& label) {
    for (const Segment& segment : segments) {
      if (const auto* c = std::get_if<ComputeSegment>(&segment)) {
        compute(c, c->operators, c->repeat, purpose, c->name.empty() ? label : label + " " + c->name);
      } else if (const auto* call = std::get_if<CallSegment>(&segment)) {
        chain(collective_op(call->what, call->repeat), label + " " + call->what.name);
      } else if (const auto* ring_segment = std::get_if<RingSegment>(&segment)) {
        ring(*ring_segment, purpose, label);
      } else {
        split(std::get<SplitSegment>(segment), purpose, label);
      }
    }
  }

  // Equation (20): the pieces of a product wait for (or are followed by) the pieces of its collective; the tp stream runs beside.
  void split(const SplitSegment& segment, Purpose purpose, const std::string& label) {
    const std::vector<OpId> before = tail_;
    OpId last_piece = none;
    for (int i = 0; i < segment.splits; ++i) {
      if (segment.collective_first) {
        const OpId gathered = beside(segment.collective, segment.repeat, before, label);
        tail_ = {gathered};
        compute(&segment, {segment.product}, segment.repeat, purpose, label + " " + segment.product.name);
      } else {
        compute(&segment, {segment.product}, segment.repeat, purpose, label + " " + segment.product.name);
        last_piece = beside(segment.collective, segment.repeat, tail_, label);
      }
    }
    if (last_piece != none) tail_.push_back(last_piece);
  }

  // Ring attention (equation 21): the block for step i+1 travels while step i computes; a block is sent on when it has been received, and
  // the send of step i+1 waits for step i's attention (two buffers).
  void ring(const RingSegment& segment, Purpose purpose, const std::string& label) {
    const int steps = build_.workload.parallel.cp;
    const Communication block{"attention block", CollectiveKind::send_recv, GroupKind::cp, segment.ring.block_bytes, segment.ring.pass};
    for (int i = 0; i < steps; ++i) {
      const std::vector<OpId> before = tail_;
      OpId sent = none;
      if (i + 1 < steps && build_.workload.overlap.cp) sent = beside(block, segment.repeat, before, label);
      compute(&segment, {segment.ring.step}, segment.repeat, purpose, label + " " + segment.ring.step.name);
      if (i + 1 < steps && !build_.workload.overlap.cp) sent = beside(block, segment.repeat, tail_, label);
      if (sent != none) tail_.push_back(sent);
    }
  }

  // A collective on its own stream that starts after `after`, while the main chain goes on.
  OpId beside(const Communication& what, int repeat, const std::vector<OpId>& after, const std::string& label) {
    Op op = collective_op(what, repeat);
    op.rank = rank_;
    const OpId id = build_.graph.add(op, label + " " + what.name);
    for (const OpId before : after) build_.graph.depend(before, id);
    return id;
  }

  // --- parameters and gradients between replicas ------------------------------------------------------------------
  [[nodiscard]] Communication gather(double parameters) const {
    return {"parameter all-gather", CollectiveKind::all_gather, GroupKind::dp_cp, parameters * build_.sync.weight_bytes, Pass::update};
  }
  [[nodiscard]] Communication reduction(double parameters) const {
    const bool all = build_.sync.reduction == CollectiveKind::all_reduce;
    return {all ? "gradient all-reduce" : "gradient reduce-scatter", build_.sync.reduction, GroupKind::dp_cp,
            parameters * build_.sync.gradient_bytes, Pass::update};
  }

  // ZeRO-1 with overlapped parameters: the all-gather of the last update runs behind the first forwards.
  void gather_all_at_start() {
    for (const std::vector<Unit>& units : program_.chunks) {
      for (const Unit& unit : units) gathered_[&unit] = beside(gather(unit.program->parameters), 1, {}, unit.name);
    }
  }

  // ZeRO-3: gathers task i's parameters. Overlapped: as soon as the task before it starts, i.e. after the one before that.
  void gather_for(std::size_t i) {
    if (i >= tasks_.size() || tasks_[i].unit == nullptr || gather_of_task_.contains(i)) return;
    std::vector<OpId> after;
    if (!build_.sync.overlap_parameters) {
      after = tail_;
    } else if (i >= 2) {
      after = ends_[i - 2];
    }
    gather_of_task_[i] = beside(gather(tasks_[i].unit->program->parameters), 1, after, tasks_[i].unit->name);
  }

  void gather_before(std::size_t i) {
    const Task& t = tasks_[i];
    if (const auto it = gathered_.find(t.unit); it != gathered_.end()) {
      extra_.push_back(it->second);
      gathered_.erase(it);
    }
    if (!build_.sync.shards_parameters || build_.sync.ranks == 1 || t.unit == nullptr) return;
    gather_for(i);
    extra_.push_back(gather_of_task_.at(i));
    if (build_.sync.overlap_parameters) gather_for(i + 1);
  }

  void reduce_after(const Task& t) {
    if (build_.sync.ranks == 1 || !completes_gradients(t.slot) || t.unit == nullptr) return;
    const bool last = --backwards_left_[t.unit] == 0;
    if (!build_.sync.reduce_each_microbatch && !(build_.sync.overlap_gradients && last)) return;
    const OpId id = beside(reduction(t.unit->program->parameters), 1, tail_, t.unit->name);
    if (build_.sync.overlap_gradients) {
      last_reduction_ = id;
    } else {
      tail_.push_back(id);
    }
  }

  // --- slots ------------------------------------------------------------------------------------------------------
  void task(std::size_t i) {
    at_ = tasks_[i];
    if (at_.first) entry_ = none;
    gather_before(i);
    execute();
    ends_.push_back(tail_);
    reduce_after(at_);
    if (at_.last) leave_slot();
  }

  void execute() {
    if (at_.unit == nullptr) return empty_operation();
    const UnitProgram& program = *at_.unit->program;
    const std::string& name = at_.unit->name;
    switch (at_.slot.kind) {
      case Slot::Kind::forward:
        return run_pass(Pass::forward, program.forward, "F " + name);
      case Slot::Kind::backward:
        run_pass(Pass::recompute, program.recompute, "recompute " + name);
        return run_pass(Pass::backward_input, program.backward, "B " + name);
      case Slot::Kind::backward_input:
        run_pass(Pass::recompute, program.recompute, "recompute " + name);
        return run_pass(Pass::backward_input, program.backward_input, "B " + name);
      case Slot::Kind::backward_weight:
        return run_pass(Pass::backward_weight, program.backward_weight, "W " + name);
    }
  }

  // Something for the neighbour stages to wait for in a slot that computes nothing.
  void empty_operation() {
    static const std::vector<Operator> nothing;
    compute(&nothing, nothing, 1, Purpose::compute, "empty chunk");
  }

  void run_pass(Pass pass, const std::vector<Segment>& segments, const std::string& label) {
    pass_ = pass;
    run(segments, pass == Pass::recompute ? Purpose::recompute : Purpose::compute, label);
  }

  void leave_slot() {
    const Slot slot = at_.slot;
    if (slot.kind == Slot::Kind::backward_weight) return;
    if (entry_ == none) empty_operation();
    const bool forward = slot.kind == Slot::Kind::forward;
    SlotEnds& ends = slots_.at(slot.kind, slot.chunk, slot.microbatch);
    ends.entry = entry_;
    const int p = build_.shape.stages;
    const bool crosses = forward ? stage_ + 1 < p || slot.chunk + 1 < build_.shape.chunks : stage_ > 0 || slot.chunk > 0;
    if (p == 1 || !crosses) return;
    ends.send = send(forward);
    if (!build_.workload.overlap.pp) tail_.push_back(ends.send);
  }

  OpId send(bool forward) {
    const int peer = forward ? build_.grid.next_stage(global_) : build_.grid.previous_stage(global_);
    const std::uint32_t receiver = build_.folding.class_of[peer];
    Op op = place({OpKind::p2p, forward ? Stream::pp_forward : Stream::pp_backward, Purpose::pp});
    op.rank = rank_;
    std::uint32_t& group = forward ? to_next_ : to_previous_;
    if (group == none) group = build_.graph.add_group(GroupKind::pp, {global_, peer}, {rank_, receiver});
    const Communication what{forward ? "send activations" : "send gradients", CollectiveKind::send_recv, GroupKind::pp,
                             build_.message_bytes, forward ? Pass::forward : Pass::backward_input};
    op.item = build_.graph.add_call(what, 1, group);
    const OpId id = build_.graph.add(op, what.name);
    for (const OpId before : tail_) build_.graph.depend(before, id);
    build_.graph.set_receiver(id, receiver);
    return id;
  }

  // --- ends of the step -------------------------------------------------------------------------------------------
  void overhead() {
    Op op{OpKind::compute, Stream::compute, Purpose::optimizer};
    if (build_.works.try_emplace(&build_, 0).second) build_.works[&build_] = build_.graph.add_work({{}, 1, true});
    op.item = build_.works[&build_];
    chain(op, "step overhead");
  }

  void finish() {
    at_ = {{Slot::Kind::backward, -1, -1}, nullptr, false, false};
    pass_ = Pass::update;
    const bool replicas = build_.sync.ranks > 1;
    if (last_reduction_ != none) tail_.push_back(last_reduction_);
    if (replicas && !build_.sync.overlap_gradients && !build_.sync.reduce_each_microbatch) {
      chain(collective_op(reduction(program_.parameters), 1), "reduce gradients");
    }
    tied_embeddings();
    compute(&program_.update, program_.update, 1, Purpose::optimizer, "optimizer");
    if (replicas && build_.sync.gathers_weights && !build_.sync.overlap_parameters) {
      chain(collective_op(gather(program_.parameters), 1), "all-gather weights");
    }
  }

  void tied_embeddings() {
    const double bytes = tied_embedding_bytes(build_.workload);
    if (bytes == 0 || (stage_ != 0 && stage_ + 1 != build_.shape.stages)) return;
    const Communication what{"embedding all-reduce", CollectiveKind::all_reduce, GroupKind::embedding, bytes, Pass::update};
    chain(collective_op(what, 1), what.name);
  }

  Build& build_;
  std::uint32_t rank_;
  int global_, stage_;
  const StageProgram& program_;
  SlotTable slots_;
  std::vector<Task> tasks_;
  Task at_{{Slot::Kind::forward, -1, -1}, nullptr, false, false};
  std::vector<OpId> tail_, extra_;
  std::vector<std::vector<OpId>> ends_;  // [task] tail after it
  Pass pass_ = Pass::update;
  OpId entry_ = none;
  OpId last_reduction_ = none;
  std::uint32_t to_next_ = none, to_previous_ = none;
  std::map<GroupKind, std::uint32_t> groups_;
  std::map<const Unit*, int> backwards_left_;
  std::map<const Unit*, OpId> gathered_;
  std::map<std::size_t, OpId> gather_of_task_;
};

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
              RankGrid(workload.parallel),
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

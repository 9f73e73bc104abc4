#include "workloads/allocations.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "workloads/held_memory.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::workloads {
namespace {

enum class Direction : std::uint8_t { forward, backward, weight_gradient };

// One unit's forward, backward or weight gradient for one micro-batch: operations in a row, or its part of operations that several units
// share. Forwards of a shared operation count from its start on, all but the last as if they took no time; backwards likewise at its end.
struct Task {
  Direction direction = Direction::forward;
  std::int32_t chunk = 0, microbatch = 0, unit = 0;
  OpId first = 0, last = 0;
  std::uint32_t turn = 0, turns = 1;  // among the units that share the operations

  // Where it begins and ends, without time and use.
  [[nodiscard]] Allocation begin() const {
    return direction == Direction::forward || turn == 0 ? Allocation{first, false, 2 * turn} : Allocation{last, true, 2 * turn};
  }
  [[nodiscard]] Allocation end() const {
    const bool takes_no_time = direction == Direction::forward && turn + 1 < turns;
    return takes_no_time ? Allocation{first, false, 2 * turn + 1} : Allocation{last, true, 2 * turn + 1};
  }
  [[nodiscard]] auto place() const { return std::tuple(chunk, microbatch, unit); }
};

Direction direction_of(Pass pass) {
  if (pass == Pass::forward) return Direction::forward;
  return pass == Pass::backward_weight ? Direction::weight_gradient : Direction::backward;
}
Direction direction_of(Slot::Kind kind) {
  if (kind == Slot::Kind::forward) return Direction::forward;
  return kind == Slot::Kind::backward_weight ? Direction::weight_gradient : Direction::backward;
}

bool belongs_to_task(const Op& op) {
  return op.unit >= 0 && op.kind != OpKind::p2p && op.kind != OpKind::copy && !is_of_replicas(op.stream) && op.pass != Pass::update;
}

// The optimizer's work on the GPU, the last of the program.
OpId update_of(const RankProgram& program) {
  for (auto id = static_cast<OpId>(program.ops.size()); id-- > 0;) {
    if (program.ops[id].phase == Phase::optimizer && program.ops[id].kind == OpKind::compute) return id;
  }
  throw std::logic_error("a program without an update");
}

// Copies of units' activations from the host, by Task::place().
using CopiesOfRank = std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, OpId>;

// Operations are places in the program.
CopiesOfRank copies_back(const RankProgram& program) {
  CopiesOfRank copies;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind == OpKind::copy && op.phase == Phase::offload && op.pass != Pass::forward) copies[{op.chunk, op.microbatch, op.unit}] = id;
  }
  return copies;
}

std::vector<Task> tasks_of(const RankProgram& program) {
  std::vector<Task> tasks;
  std::map<std::tuple<Direction, std::int32_t, std::int32_t, std::int32_t>, std::size_t> known;  // overlapped tasks alternate
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (!belongs_to_task(op)) continue;
    Task task{direction_of(op.pass), op.chunk, op.microbatch, op.unit, id, id, 0, op.units};
    for (; task.turn < task.turns; ++task.turn, task.unit += task.direction == Direction::forward ? 1 : -1) {
      const auto [it, added] = known.try_emplace({task.direction, task.chunk, task.microbatch, task.unit}, tasks.size());
      if (added) {
        tasks.push_back(task);
      } else {
        tasks[it->second].last = id;
      }
    }
  }
  return tasks;
}

// A program's operations by the tasks and copies of HeldMemory.
class PlacedTasks {
 public:
  PlacedTasks(const RankProgram& program, const HeldMemory& held) : back_(copies_back(program)), held_(held.tasks()) {
    std::map<std::tuple<Direction, std::int32_t, std::int32_t, std::int32_t>, Task> known;
    for (const Task& task : tasks_of(program)) known.emplace(std::tuple(task.direction, task.chunk, task.microbatch, task.unit), task);
    turns_.resize(held.turns());
    for (const HeldTask& task : held_) {
      tasks_.push_back(known.at({direction_of(task.slot.kind), task.slot.chunk, task.slot.microbatch, task.unit}));
      turns_[task.turn].push_back(tasks_.back());
    }
  }

  [[nodiscard]] Allocation at(const Moment& moment) const {
    const Task& task = tasks_[moment.task];
    const std::uint32_t number = held_[moment.task].turn;
    const std::vector<Task>& turn = turns_[number];
    if (held_[moment.task].beside) return at_boundary(moment, number);
    switch (moment.edge) {
      case Moment::Edge::begins:
        return task.begin();
      case Moment::Edge::ends:
        return task.end();
      case Moment::Edge::turn_begins:
        return beginning(turn);
      case Moment::Edge::turn_ends:
        return ending(turn);
      case Moment::Edge::returns:
        return {back_.at(task.place()), false};
    }
    throw std::logic_error("a moment without an edge");
  }

 private:
  static Allocation beginning(const std::vector<Task>& turn) { return std::ranges::min_element(turn, {}, &Task::first)->begin(); }
  static Allocation ending(const std::vector<Task>& turn) { return std::ranges::max_element(turn, {}, &Task::last)->end(); }
  // The host takes memory in the order of the program, in which the units of an overlapped pair go side by side, however far the GPU is
  // with either: both hold theirs until the next turn begins.
  [[nodiscard]] Allocation at_boundary(const Moment& moment, std::uint32_t turn) const {
    if (moment.edge == Moment::Edge::begins || moment.edge == Moment::Edge::turn_begins) return beginning(turns_[turn]);
    return turn + 1 < turns_.size() ? beginning(turns_[turn + 1]) : ending(turns_[turn]);
  }

  CopiesOfRank back_;
  std::vector<HeldTask> held_;
  std::vector<Task> tasks_;               // as held_
  std::vector<std::vector<Task>> turns_;  // [turn]
};

// In program order, and what is given back before what is taken.
void put_in_order(std::vector<Allocation>& events) {
  std::ranges::stable_sort(events, {}, [](const Allocation& e) { return std::tuple(e.op, e.at_end, e.turn, e.bytes > 0); });
}

std::vector<Allocation> allocations_of(const std::vector<Held>& held, const PlacedTasks& placed) {
  std::vector<Allocation> events;
  events.reserve(2 * held.size());
  const auto add = [&](const Moment& moment, MemoryUse use, double bytes) {
    Allocation event = placed.at(moment);
    event.use = use;
    event.bytes = bytes;
    events.push_back(event);
  };
  for (const Held& one : held) {
    add(one.from, one.use, one.bytes);
    add(one.to, one.use, -one.bytes);
  }
  return events;
}

}  // namespace

StepAllocations::StepAllocations(const Workload& workload, const Compiled& compiled, const MemoryHabits& habits, const StepGraph& graph,
                                 int step)
    : workload_(workload), compiled_(compiled), habits_(habits), graph_(graph) {
  if (workload.model.moe) loads_.emplace(workload, step);
}

struct StepAllocations::Program {
  HeldMemory held;
  PlacedTasks placed;
};

RankAllocations StepAllocations::make(const RankBlock& block) {
  const SimulatedRank& rank = graph_.ranks[block.rank];
  const StageProgram& stage = compiled_.stages[static_cast<std::size_t>(rank.stage)];
  std::shared_ptr<const Program>& own = programs_[block.program];
  if (!own) {
    const HeldMemory held(workload_, compiled_, habits_, rank.stage);
    own = std::make_shared<const Program>(Program{held, PlacedTasks(graph_.program(block), held)});
  }
  const RankMemories units(workload_, habits_, compiled_.sync, stage, loads_ ? &*loads_ : nullptr, compiled_.grid.expert_rank(rank.rank));
  StaticMemory always = static_memory(workload_, habits_, compiled_.sync, standing_bytes(workload_, habits_), stage.parameters);
  RankAllocations made{always, allocations_of(own->held.on_gpu(units), own->placed), allocations_of(own->held.on_host(units), own->placed)};
  const bool anew = makes_gradients_anew(workload_, habits_);
  if (anew) made.held.gradients = 0;
  if (always.update > 0) {
    const OpId update = update_of(graph_.program(block));
    const double bytes = always.update + (anew ? always.gradients : 0);
    made.events.push_back({update, false, 0, MemoryUse::gradients, bytes});
    made.events.push_back({update, true, 0, MemoryUse::gradients, -bytes});
  }
  put_in_order(made.events);
  put_in_order(made.host);
  return made;
}

RankAllocations StepAllocations::of(std::size_t simulated_rank) {
  const RankBlock& block = graph_.blocks()[simulated_rank];
  RankAllocations own;
  if (loads_ && !loads_->even()) {
    own = make(block);
  } else {
    auto it = made_.find(block.program);
    if (it == made_.end()) it = made_.emplace(block.program, make(block)).first;
    own = it->second;
  }
  for (std::vector<Allocation>* events : {&own.events, &own.host}) {
    for (Allocation& event : *events) event.op += block.first;
  }
  return own;
}

}  // namespace rehearse::workloads

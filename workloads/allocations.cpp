#include "workloads/allocations.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
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

  // Where it begins and ends, without time and class.
  [[nodiscard]] Allocation begin() const {
    return direction == Direction::forward || turn == 0 ? Allocation{first, false, 2 * turn} : Allocation{last, true, 2 * turn};
  }
  [[nodiscard]] Allocation end() const {
    const bool takes_no_time = direction == Direction::forward && turn + 1 < turns;
    return takes_no_time ? Allocation{first, false, 2 * turn + 1} : Allocation{last, true, 2 * turn + 1};
  }

  [[nodiscard]] auto slot() const { return std::tuple(direction, chunk, microbatch); }
  [[nodiscard]] auto place() const { return std::tuple(chunk, microbatch, unit); }
};

Direction direction_of(Pass pass) {
  if (pass == Pass::forward) return Direction::forward;
  return pass == Pass::backward_weight ? Direction::weight_gradient : Direction::backward;
}

bool belongs_to_task(const Op& op) {
  return op.unit >= 0 && op.kind != OpKind::p2p && op.kind != OpKind::copy && op.stream != Stream::dp && op.pass != Pass::update;
}

// Copies of a unit's activations.
struct Copies {
  OpId out = 0, in = 0;
};
using CopiesOfRank = std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Copies>;  // by Task::place()

// Operations are places in the program.
CopiesOfRank copies_of(const RankProgram& program) {
  CopiesOfRank copies;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind != OpKind::copy || op.purpose != Purpose::offload) continue;
    Copies& own = copies[{op.chunk, op.microbatch, op.unit}];
    (op.pass == Pass::forward ? own.out : own.in) = id;
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

class RankPlan {
 public:
  RankPlan(const Workload& workload, const Compiled& compiled, const RankMemories& units, const std::vector<Task>& tasks,
           const CopiesOfRank& copies, int stage, std::vector<double> whole_gradients)
      : workload_(workload),
        compiled_(compiled),
        units_(units),
        tasks_(tasks),
        copies_(copies),
        stage_(stage),
        whole_gradients_(std::move(whole_gradients)) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].direction == Direction::forward) continue;
      first_backward_.try_emplace(tasks[i].place(), i);
      last_backward_[tasks[i].place()] = i;
    }
  }

  void list() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      activations(i);
      work(i);
      replicas(i);
    }
    const std::vector<Turn> turns = list_turns();
    if (workload_.overlap.pp) messages(turns);
    gradients(turns);
  }
  std::vector<Allocation> take_events() { return std::move(events_); }
  std::vector<Allocation> take_host() { return std::move(host_); }

 private:
  // A slot, or an overlapped pair of them.
  struct Turn {
    std::size_t first, last;         // tasks
    std::vector<std::size_t> slots;  // the first task of each
  };

  [[nodiscard]] const UnitMemory& memory(std::size_t i) const { return units_.at(tasks_[i].chunk, tasks_[i].unit, tasks_[i].microbatch); }
  [[nodiscard]] std::size_t before(std::size_t i) const { return i == 0 ? 0 : i - 1; }
  [[nodiscard]] std::size_t after(std::size_t i) const { return std::min(i + 1, tasks_.size() - 1); }

  static void add(std::vector<Allocation>& events, Allocation when, MemoryClass cls, double bytes) {
    when.cls = cls;
    when.bytes = bytes;
    events.push_back(when);
  }
  // From the start of task `from` to the end of task `to`.
  void hold(MemoryClass cls, double bytes, std::size_t from, std::size_t to) {
    if (bytes <= 0) return;
    add(events_, tasks_[from].begin(), cls, bytes);
    add(events_, tasks_[to].end(), cls, -bytes);
  }

  void activations(std::size_t i) {
    const Task& task = tasks_[i];
    if (task.direction != Direction::forward) return;
    const double bytes = memory(i).activations;
    const std::size_t end = last_backward_.at(task.place());
    const auto copies = copies_.find(task.place());
    if (copies == copies_.end()) return hold(MemoryClass::activations, bytes, i, end);
    const auto [out, in] = copies->second;
    add(events_, task.begin(), MemoryClass::activations, bytes);
    add(events_, release_of(i), MemoryClass::activations, -bytes);
    add(events_, {in, false, 1}, MemoryClass::activations, bytes);
    add(events_, tasks_[end].end(), MemoryClass::activations, -bytes);
    add(host_, {out, false}, MemoryClass::activations, bytes);
    add(host_, tasks_[first_backward_.at(task.place())].begin(), MemoryClass::activations, -bytes);
  }

  // When a turn's activations, which the copy out still reads, are given back: where the program waits for that copy, which is before the
  // turn after the next, or before what that turn fetches.
  [[nodiscard]] Allocation release_of(std::size_t i) const {
    if (i + 3 < tasks_.size() && first_backward_.contains(tasks_[i + 3].place()) && first_backward_.at(tasks_[i + 3].place()) == i + 3) {
      const auto next = copies_.find(tasks_[i + 3].place());
      if (next != copies_.end()) return {next->second.in, false};
    }
    return tasks_[i + 2].begin();
  }

  void work(std::size_t i) {
    const UnitMemory& unit = memory(i);
    const Direction direction = tasks_[i].direction;
    const bool forward = direction == Direction::forward;
    if (direction == Direction::weight_gradient || (!forward && last_backward_.at(tasks_[i].place()) == i)) {
      hold(MemoryClass::temporary, unit.weight_temporary, i, i);
    }
    if (direction == Direction::weight_gradient) return;
    hold(MemoryClass::temporary, forward ? unit.forward_temporary : unit.backward_temporary, i, i);
    hold(MemoryClass::communication, forward ? unit.forward_communication : unit.backward_communication, i, i);
  }

  void replicas(std::size_t i) {
    const UnitMemory& unit = memory(i);
    hold(MemoryClass::temporary, unit.gathered, compiled_.sync.overlap_parameters ? before(i) : i, i);
    if (tasks_[i].direction != Direction::forward)
      hold(MemoryClass::communication, unit.bucket, i, compiled_.sync.overlap_gradients ? after(i) : i);
  }

  [[nodiscard]] std::vector<Turn> list_turns() const {
    std::vector<Turn> turns;
    std::set<std::tuple<Direction, std::int32_t, std::int32_t>> seen;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const bool begins = seen.insert(tasks_[i].slot()).second;
      // Tasks of an overlapped pair alternate: its second slot begins before its first has ended.
      const bool inside = !turns.empty() && tasks_[i].first < tasks_[turns.back().last].last;
      if (begins && !(inside && workload_.overlap.ep)) turns.push_back({i, i, {}});
      if (begins) turns.back().slots.push_back(i);
      if (tasks_[i].last > tasks_[turns.back().last].last) turns.back().last = i;
    }
    return turns;
  }

  // A slot receives its input while the slot before it runs; overlapped pairs count as one, and receive both inputs.
  void messages(const std::vector<Turn>& turns) {
    for (std::size_t t = 1; t < turns.size(); ++t) {
      for (const std::size_t slot : turns[t].slots) {
        if (receives(tasks_[slot])) hold(MemoryClass::communication, compiled_.message_bytes, turns[t - 1].first, turns[t - 1].last);
      }
    }
  }

  // Of ZeRO-2 with a pipeline.
  void gradients(const std::vector<Turn>& turns) {
    if (whole_gradients_.empty()) return;
    std::vector<std::vector<Slot>> slots;
    for (const Turn& turn : turns) {
      std::vector<Slot>& together = slots.emplace_back();
      for (const std::size_t task : turn.slots) together.push_back(slot_of(task));
    }
    const std::size_t chunks = whole_gradients_.size();
    const std::vector<ChunkGradients> states = chunk_gradients(slots, chunks);
    for (std::size_t c = 0; c < chunks; ++c) {
      std::optional<std::size_t> first, last;  // turns
      for (std::size_t t = 0; t < turns.size(); ++t) {
        if (!lie_whole(states[t * chunks + c], compiled_.sync.overlap_gradients)) continue;
        if (!first) first = t;
        last = t;
      }
      if (first) hold(MemoryClass::gradients, whole_gradients_[c], turns[*first].first, turns[*last].last);
    }
  }

  [[nodiscard]] Slot slot_of(std::size_t i) const {
    const Task& task = tasks_[i];
    if (task.direction == Direction::weight_gradient) return {Slot::Kind::backward_weight, task.microbatch, task.chunk};
    if (task.direction == Direction::forward) return {Slot::Kind::forward, task.microbatch, task.chunk};
    const bool split = last_backward_.at(task.place()) != i;
    return {split ? Slot::Kind::backward_input : Slot::Kind::backward, task.microbatch, task.chunk};
  }

  [[nodiscard]] bool receives(const Task& task) const {
    if (task.direction == Direction::weight_gradient) return false;
    const Slot::Kind kind = task.direction == Direction::forward ? Slot::Kind::forward : Slot::Kind::backward;
    return source_of(*compiled_.schedule, compiled_.shape, stage_, {kind, task.microbatch, task.chunk}).has_value();
  }

  const Workload& workload_;
  const Compiled& compiled_;
  const RankMemories& units_;
  const std::vector<Task>& tasks_;
  const CopiesOfRank& copies_;
  int stage_;
  std::vector<double> whole_gradients_;  // [chunk]
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::size_t> first_backward_, last_backward_;
  std::vector<Allocation> events_, host_;
};

}  // namespace

StepAllocations::StepAllocations(const Workload& workload, const Compiled& compiled, const MemoryHabits& habits, const StepGraph& graph,
                                 int step)
    : workload_(workload), compiled_(compiled), habits_(habits), graph_(graph) {
  if (workload.model.moe) loads_.emplace(workload, step);
}

struct StepAllocations::Tasks {
  std::vector<Task> tasks;
  CopiesOfRank copies;
};

RankAllocations StepAllocations::make(const RankBlock& block) {
  const SimulatedRank& rank = graph_.ranks[block.rank];
  const StageProgram& stage = compiled_.stages[static_cast<std::size_t>(rank.stage)];
  std::shared_ptr<const Tasks>& own = tasks_[block.program];
  if (!own) own = std::make_shared<const Tasks>(Tasks{tasks_of(graph_.program(block)), copies_of(graph_.program(block))});
  const RankMemories memories(workload_, habits_, stage, loads_ ? &*loads_ : nullptr, compiled_.grid.expert_rank(rank.rank));
  RankPlan plan(workload_, compiled_, memories, own->tasks, own->copies, rank.stage,
                whole_gradients(workload_, habits_, compiled_.sync, stage));
  plan.list();
  return {static_memory(workload_, habits_, stage.parameters, stage.expert_parameters), plan.take_events(), plan.take_host()};
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

#include "workloads/held_memory.hpp"

#include <algorithm>
#include <optional>

#include "workloads/offload.hpp"
#include "workloads/unit_at_work.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::workloads {
namespace {

using Edge = Moment::Edge;

constexpr std::uint32_t none = -1;

}  // namespace

HeldMemory::HeldMemory(const Workload& workload, const Compiled& compiled, const MemoryHabits& habits, int stage)
    : workload_(workload),
      compiled_(compiled),
      habits_(habits),
      stage_(stage),
      program_(compiled.stages[static_cast<std::size_t>(stage)]),
      order_(slots_of(workload, stage)) {
  std::uint32_t units = 0;
  for (const std::vector<Unit>& chunk : program_.chunks) {
    chunk_starts_.push_back(units);
    units += static_cast<std::uint32_t>(chunk.size());
  }
  chunk_starts_.push_back(units);
  list_tasks();
  list_ends();
  absence_of_.assign(tasks_.size(), none);
  if (workload.offload_activations) list_absences();
}

void HeldMemory::list_tasks() {
  std::uint32_t ordinal = 0;
  for (std::uint32_t s = 0; s < order_.size();) {
    const std::uint32_t slots = slots_at(s);
    list_round(s, slots, ordinal);
    s += slots;
  }
  turns_.push_back(static_cast<std::uint32_t>(tasks_.size()));
}

void HeldMemory::list_round(std::uint32_t slot, std::uint32_t slots, std::uint32_t& ordinal) {
  const auto first = static_cast<std::uint32_t>(tasks_.size());
  const auto units_of = [&](std::uint32_t s) { return static_cast<int>(program_.chunks[order_[s].chunk].size()); };
  int longest = 0;
  for (std::uint32_t s = slot; s < slot + slots; ++s) longest = std::max(longest, units_of(s));
  for (int k = 0; k < longest; ++k, ++ordinal) {
    const auto turn = static_cast<std::uint32_t>(turns_.size());
    const std::size_t before = tasks_.size();
    for (std::uint32_t s = slot + slots; s-- > slot;) {  // of a pair the backward begins
      const int units = units_of(s), unit = order_[s].kind == Slot::Kind::forward ? k : units - 1 - k;
      if (k >= units || idle(order_[s], unit)) continue;
      tasks_.push_back({order_[s], unit, turn, slots == 2});
      ordinals_.push_back(ordinal);
    }
    if (tasks_.size() > before) turns_.push_back(static_cast<std::uint32_t>(before));
  }
  if (tasks_.size() == first) return;
  const std::uint32_t next = slot + slots;
  rounds_.push_back({first, static_cast<std::uint32_t>(tasks_.size() - 1), slot, next, next + slots_at(next)});
}

void HeldMemory::list_ends() {
  const std::size_t microbatches = static_cast<std::size_t>(workload_.microbatches());
  last_backward_.assign(chunk_starts_.back() * microbatches, none);
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].slot.kind != Slot::Kind::forward) last_backward_[place(tasks_[i])] = i;
  }
}

// How many slots run together from the s-th on.
std::uint32_t HeldMemory::slots_at(std::size_t s) const {
  if (s >= order_.size()) return 0;
  return order_[s].paired && workload_.overlap.ep ? 2 : 1;
}

// The embedding passes no gradient on: where backwards are split, it has nothing to do in their first half.
bool HeldMemory::idle(const Slot& slot, int unit) const {
  return slot.kind == Slot::Kind::backward_input && program_.chunks[slot.chunk][unit].program->backward_input.empty();
}

std::size_t HeldMemory::place(const HeldTask& task) const {
  return static_cast<std::size_t>(task.slot.microbatch) * chunk_starts_.back() + chunk_starts_[task.slot.chunk] +
         static_cast<std::size_t>(task.unit);
}

Moment HeldMemory::before(std::uint32_t task) const {
  const std::uint32_t turn = tasks_[task].turn;
  return turn == 0 ? at(Edge::turn_begins, task) : at(Edge::turn_begins, turns_[turn - 1]);
}
Moment HeldMemory::after(std::uint32_t task) const {
  const std::uint32_t turn = tasks_[task].turn;
  return turn + 1 == turns() ? at(Edge::turn_ends, task) : at(Edge::turn_ends, turns_[turn + 1]);
}

// Pairs do not offload: a turn is a task.
void HeldMemory::list_absences() {
  const std::vector<UnitTurn> all = unit_turns(order_, program_);
  const Offloading moves = offloading(all, program_);
  const auto from = [&](std::size_t ordinal) {  // the first task there or later
    return static_cast<std::uint32_t>(std::ranges::lower_bound(ordinals_, ordinal) - ordinals_.begin());
  };
  // A task that is no longer there begins when the step ends.
  const auto until = [&](std::uint32_t task) {
    return task < tasks_.size() ? Moment{Edge::begins, task, tasks_[task].turn - 1} : at(Edge::ends, task - 1);
  };
  std::vector<std::uint32_t> forward(last_backward_.size(), none);
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].slot.kind == Slot::Kind::forward && moves.leave[ordinals_[i]]) forward[place(tasks_[i])] = i;
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!moves.come_back[k]) continue;
    const std::uint32_t i = forward[place({all[k].slot, all[k].unit})], j = from(k), gone = ordinals_[i] + 2;
    Absence away{i, until(from(gone)), {Edge::returns, i, tasks_[from(k - 1)].turn}, until(j)};
    // The program waits for the copy out before the turn after the next, or before what that turn fetches.
    if (gone + 1 < all.size() && moves.come_back[gone + 1])
      away.gone = {Edge::returns, forward[place({all[gone + 1].slot, all[gone + 1].unit})], away.gone.turn};
    if (habits_.offloads_chunks) away.gone = end_of_next_forward(i);
    absence_of_[i] = static_cast<std::uint32_t>(absences_.size());
    absences_.push_back(away);
  }
}

// Behind a stage's last forward that of the slot after it; never beyond the task's own backward.
Moment HeldMemory::end_of_next_forward(std::uint32_t task) const {
  auto round = std::ranges::find_if(rounds_, [&](const Round& one) { return one.last >= task; });
  const auto next = std::next(round);
  const auto forward =
      std::find_if(next, rounds_.end(), [&](const Round& one) { return tasks_[one.first].slot.kind == Slot::Kind::forward; });
  if (forward != rounds_.end()) {
    round = forward;
  } else if (next != rounds_.end()) {
    round = next;
  }
  return at(Edge::ends, std::min(round->last, last_backward_[place(tasks_[task])]));
}

std::vector<Held> HeldMemory::on_gpu(const RankMemories& units) const {
  std::vector<Held> held;
  held.reserve(4 * tasks_.size());
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    const HeldTask& task = tasks_[i];
    const UnitMemory unit = units.at(task.slot.chunk, task.unit, task.slot.microbatch);
    if (task.slot.kind == Slot::Kind::forward) add_activations(i, unit.activations, held);
    add_work(i, unit, held);
  }
  if (habits_.offloads_chunks) add_buffers_of_chunks(units, held);
  if (workload_.overlap.pp) add_messages(held);
  add_whole_gradients(held);
  if (makes_gradients_anew(workload_, habits_)) add_new_gradients(held);
  for (const Round& round : rounds_) add_left_behind(round, units, held);
  std::erase_if(held, [](const Held& one) { return one.bytes <= 0; });
  return held;
}

void HeldMemory::add_activations(std::uint32_t task, double bytes, std::vector<Held>& held) const {
  const Moment begin = at(Edge::begins, task), end = at(Edge::ends, last_backward_[place(tasks_[task])]);
  if (absence_of_[task] == none) {
    held.push_back({MemoryUse::activations, bytes, begin, end});
    return;
  }
  const Absence& away = absences_[absence_of_[task]];
  const double leaves = workload_.offload_share * bytes;
  held.push_back({MemoryUse::activations, bytes - leaves, begin, end});
  held.push_back({MemoryUse::activations, leaves, begin, away.gone});
  if (!habits_.offloads_chunks) held.push_back({MemoryUse::activations, leaves, away.back, end});
}

// One for the chunk whose backward runs and one for that of the next, as large as the largest needs.
void HeldMemory::add_buffers_of_chunks(const RankMemories& units, std::vector<Held>& held) const {
  double largest = 0;
  for (const Round& round : rounds_) {
    double leaves = 0;
    for (std::uint32_t i = round.first; i <= round.last; ++i) {
      const HeldTask& task = tasks_[i];
      if (absence_of_[i] != none)
        leaves += workload_.offload_share * units.at(task.slot.chunk, task.unit, task.slot.microbatch).activations;
    }
    largest = std::max(largest, leaves);
  }
  const auto last = static_cast<std::uint32_t>(tasks_.size() - 1);
  held.push_back({MemoryUse::temporary, 2 * largest, at(Edge::turn_begins, 0), at(Edge::turn_ends, last)});
}

void HeldMemory::add_work(std::uint32_t i, const UnitMemory& unit, std::vector<Held>& held) const {
  for (const AtWork& one : UnitAtWork(tasks_[i].slot.kind, unit, compiled_.sync)) {
    if (one.bytes <= 0) continue;
    held.push_back({one.use, one.bytes, one.from_before ? before(i) : at(Edge::begins, i), one.until_after ? after(i) : at(Edge::ends, i)});
  }
}

void HeldMemory::add_messages(std::vector<Held>& held) const {
  for (const Round& round : rounds_) {
    for (std::uint32_t s = round.next; s < round.end; ++s) {
      if (!source_of(*compiled_.schedule, compiled_.shape, stage_, order_[s])) continue;
      held.push_back(
          {MemoryUse::communication, compiled_.message_bytes, at(Edge::turn_begins, round.first), at(Edge::turn_ends, round.last)});
    }
  }
}

void HeldMemory::add_whole_gradients(std::vector<Held>& held) const {
  std::vector<double> bytes;
  list_whole_gradients(workload_, habits_, compiled_.sync, program_, bytes);
  if (bytes.empty()) return;
  std::vector<std::span<const Slot>> slots;
  for (const Round& round : rounds_) slots.push_back(std::span(order_).subspan(round.slot, round.next - round.slot));
  const std::vector<ChunkGradients> states = chunk_gradients(slots, bytes.size());
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    std::optional<std::size_t> first, last;
    for (std::size_t r = 0; r < rounds_.size(); ++r) {
      if (!lie_whole(states[r * bytes.size() + c], compiled_.sync.overlap_gradients)) continue;
      if (!first) first = r;
      last = r;
    }
    if (!first) continue;
    held.push_back(
        {MemoryUse::gradients, bytes[c], at(Edge::turn_begins, rounds_[*first].first), at(Edge::turn_ends, rounds_[*last].last)});
  }
}

// Those of the last turn's unit are there in it: nothing comes after it that they could be seen in.
void HeldMemory::add_new_gradients(std::vector<Held>& held) const {
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    const HeldTask& task = tasks_[i];
    if (!makes_weight_gradient(task.slot.kind)) continue;
    const UnitProgram& unit = *program_.chunks[task.slot.chunk][task.unit].program;
    const double bytes = kept_gradients(workload_, habits_, compiled_.sync, parameters_of(unit));
    const bool last = task.turn + 1 == turns();
    const std::uint32_t begin = last ? i : turns_[task.turn + 1];
    held.push_back({MemoryUse::gradients, bytes, at(Edge::turn_begins, begin), at(Edge::turn_ends, turns_.back() - 1)});
  }
}

void HeldMemory::add_left_behind(const Round& round, const RankMemories& units, std::vector<Held>& held) const {
  if (!habits_.added_after_backward && !habits_.frozen_inputs && !habits_.outputs_kept && !workload_.optimizer.root) return;
  const std::uint32_t last = tasks_[round.last].turn;
  for (std::uint32_t i = round.first; i <= round.last && tasks_[i].turn < last; ++i) {
    const HeldTask& task = tasks_[i];
    if (!makes_weight_gradient(task.slot.kind)) continue;
    const UnitMemory unit = units.at(task.slot.chunk, task.unit, task.slot.microbatch);
    const Moment from = at(Edge::turn_begins, turns_[task.turn + 1]), to = at(Edge::turn_ends, round.last);
    held.push_back({MemoryUse::gradients, unit.gradients, from, to});
    held.push_back({MemoryUse::activations, unit.left, from, to});
  }
}

std::vector<Held> HeldMemory::on_host(const RankMemories& units) const {
  std::vector<Held> held;
  for (const Absence& away : absences_) {
    const HeldTask& task = tasks_[away.forward];
    const double bytes = workload_.offload_share * units.at(task.slot.chunk, task.unit, task.slot.microbatch).activations;
    held.push_back({MemoryUse::activations, bytes, at(Edge::ends, away.forward), away.needed});
  }
  return held;
}

}  // namespace rehearse::workloads

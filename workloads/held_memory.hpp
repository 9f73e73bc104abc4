// What a rank of a pipeline stage holds during a step beside what it holds all the time, as intervals over the tasks of its units: one
// list, which the formula adds up turn by turn (sim/memory/predicted.hpp) and the timeline in the times of the operations
// (workloads/allocations.hpp). docs/memory.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/compiled.hpp"
#include "workloads/memory_use.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

// One unit's forward, backward, input gradient or weight gradient for one micro-batch.
struct HeldTask {
  Slot slot;
  int unit = 0;            // index in its chunk
  std::uint32_t turn = 0;  // of the rank: a unit of each slot of an overlapped pair are one
  bool beside = false;     // in an overlapped pair
};

// A point of a step: for the formula the first or the last turn that an interval counts in, for the timeline what happens then.
struct Moment {
  enum class Edge : std::uint8_t {
    begins,       // the task
    ends,         // the task
    turn_begins,  // its turn, whatever task that begins with
    turn_ends,
    returns  // the copy of its activations from the host begins
  };
  Edge edge = Edge::begins;
  std::uint32_t task = 0;
  std::uint32_t turn = 0;
};

struct Held {
  MemoryUse use = MemoryUse::activations;
  double bytes = 0;
  Moment from, to;
};

class HeldMemory {
 public:
  // All must outlive it.
  HeldMemory(const Workload& workload, const Compiled& compiled, const MemoryHabits& habits, int stage);

  [[nodiscard]] const std::vector<HeldTask>& tasks() const { return tasks_; }  // in program order
  [[nodiscard]] std::uint32_t turns() const { return static_cast<std::uint32_t>(turns_.size() - 1); }
  [[nodiscard]] std::span<const HeldTask> of_turn(std::uint32_t turn) const {  // of a pair the backward comes first
    return std::span(tasks_).subspan(turns_[turn], turns_[turn + 1] - turns_[turn]);
  }

  // A unit's activations live from the start of its forward to the end of its last backward; those that are offloaded only until the
  // program waits for their copy out, and again from the start of their copy in; where a stack offloads chunks (MemoryHabits), until the
  // end of its next forward, and they come back into two buffers that are always there. With ZeRO-3 its weights are gathered while it runs,
  // and already in the turn before when overlap.dp_parameters is on; gradients that are reduced after every micro-batch live while its
  // backward runs, and in the turn after when overlap.dp_gradients is on. A message between stages has a buffer while the slot before the
  // one that uses it runs, when overlap.pp is on; without it the buffer becomes the input at once. Gradients that are made anew in every
  // step (makes_gradients_anew(), whole_gradients.hpp) are there from the turn behind their unit's backward until the update, those that
  // are added up after a backward (MemoryHabits), and what a unit leaves until then, until its last turn.
  [[nodiscard]] std::vector<Held> on_gpu(const RankMemories& units) const;
  // In the host's memory, from the end of their forward, when their copy out is issued, until their backward begins. A turn stands for the
  // time behind it.
  [[nodiscard]] std::vector<Held> on_host(const RankMemories& units) const;

 private:
  // A slot, or an overlapped pair of them, with tasks.
  struct Round {
    std::uint32_t first = 0, last = 0;          // tasks
    std::uint32_t slot = 0, next = 0, end = 0;  // in the order: its first, that of what runs after it, and the end of that
  };
  // A forward whose activations are away for a while.
  struct Absence {
    std::uint32_t forward = 0;  // task
    Moment gone, back, needed;
  };

  void list_tasks();
  void list_round(std::uint32_t slot, std::uint32_t slots, std::uint32_t& ordinal);
  void list_ends();
  void list_absences();
  [[nodiscard]] Moment end_of_next_forward(std::uint32_t task) const;
  [[nodiscard]] std::uint32_t slots_at(std::size_t s) const;
  [[nodiscard]] bool idle(const Slot& slot, int unit) const;
  [[nodiscard]] std::size_t place(const HeldTask& task) const;
  [[nodiscard]] Moment at(Moment::Edge edge, std::uint32_t task) const { return {edge, task, tasks_[task].turn}; }
  [[nodiscard]] Moment before(std::uint32_t task) const;
  [[nodiscard]] Moment after(std::uint32_t task) const;
  void add_activations(std::uint32_t task, double bytes, std::vector<Held>& held) const;
  void add_buffers_of_chunks(const RankMemories& units, std::vector<Held>& held) const;
  void add_work(std::uint32_t task, const UnitMemory& unit, std::vector<Held>& held) const;
  void add_messages(std::vector<Held>& held) const;
  void add_whole_gradients(std::vector<Held>& held) const;
  void add_new_gradients(std::vector<Held>& held) const;
  void add_left_behind(const Round& round, const RankMemories& units, std::vector<Held>& held) const;

  const Workload& workload_;
  const Compiled& compiled_;
  const MemoryHabits& habits_;
  int stage_;
  const StageProgram& program_;
  std::vector<Slot> order_;
  std::vector<HeldTask> tasks_;
  std::vector<std::uint32_t> turns_;     // [turn] its first task, and the end
  std::vector<std::uint32_t> ordinals_;  // [task] among the turns of workloads::unit_turns(), which have idle ones too
  std::vector<Round> rounds_;
  std::vector<std::uint32_t> chunk_starts_;   // [chunk] its first unit's place
  std::vector<std::uint32_t> last_backward_;  // [place] task
  std::vector<Absence> absences_;
  std::vector<std::uint32_t> absence_of_;  // [task] which, or none
};

}  // namespace rehearse::workloads

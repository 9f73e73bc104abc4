#include "sim/memory/predicted.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "sim/memory/framework.hpp"
#include "sim/memory/peak_slots.hpp"
#include "workloads/offload.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using workloads::UnitMemory;
using workloads::Workload;

std::string name_of_turn(Slot::Kind kind, const workloads::Unit& unit) {
  const std::string direction = kind == Slot::Kind::forward ? "F " : kind == Slot::Kind::backward_weight ? "W " : "B ";
  return direction + unit.name;
}

// A unit's turn in the order of a stage.
struct Turn {
  const UnitMemory* unit = nullptr;
  Slot slot;
  std::size_t index = 0;            // of the unit in its chunk
  std::size_t next = 0, nexts = 0;  // the slot or overlapped pair after its own, in the order
  // The unit beside it in an overlapped pair, whose backward this forward runs beside; the two are one turn.
  const UnitMemory* beside = nullptr;
  Slot beside_slot = {};
  std::size_t round = 0;  // of the slots or pairs with turns, its own
};

class Stage {
 public:
  Stage(const Job& job, const workloads::Compiled& compiled, int stage, const workloads::ExpertLoads* loads, int expert_rank)
      : workload_(job.workload),
        stage_(stage),
        sync_(compiled.sync),
        program_(compiled.stages[static_cast<std::size_t>(stage)]),
        units_(job.workload, job.system.software.memory.habits, program_, loads, expert_rank),
        schedule_(*compiled.schedule),
        shape_(compiled.shape),
        message_(compiled.message_bytes),
        order_(workloads::slots_of(workload_, stage)) {
    list_turns();
    whole_gradients_ = workloads::whole_gradients(workload_, job.system.software.memory.habits, sync_, program_);
    if (!whole_gradients_.empty()) gradients_ = workloads::chunk_gradients(rounds(), program_.chunks.size());
    if (workload_.offload_activations) moves_ = workloads::offloading(workloads::unit_turns(order_, program_), program_);
  }

  // What each layer with experts needs at most while it is at work, in `highest` by layer.
  void raise_layers(const MemoryBytes& always, std::map<int, MemoryBytes>& highest) const {
    double kept = 0;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (forward(i) ? !leaves(i) : comes_to_stay(i)) kept += turns_[i].unit->activations;
      const workloads::Unit& unit = program_.chunks[turns_[i].slot.chunk][turns_[i].index];
      if (unit.layer_kind == workloads::LayerKind::experts) {
        const MemoryBytes now = at_turn(i, kept, always);
        MemoryBytes& most = highest[unit.first_layer];
        if (now.total() > most.total()) most = now;
      }
      if (frees(i)) kept -= turns_[i].unit->activations;
      kept -= freed_beside(i);
    }
  }

  // Raises `memory` to the largest sum of what is kept and what the turn at hand needs.
  void find_peak(RankMemory& memory) const {
    const MemoryBytes always = memory.at_peak;
    double kept = 0;  // activations between forward and backward
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (forward(i) ? !leaves(i) : comes_to_stay(i)) kept += turns_[i].unit->activations;
      const MemoryBytes now = at_turn(i, kept, always);
      if (now.total() > memory.peak_bytes()) {
        memory.at_peak = now;
        memory.operation = label(turns_[i]);
        memory.microbatch = turns_[i].slot.microbatch;
      }
      if (frees(i)) kept -= turns_[i].unit->activations;
      kept -= freed_beside(i);
    }
  }

  // Most activations that the host holds at any time: from the end of their forward to the start of their backward.
  [[nodiscard]] double most_on_host() const {
    double held = 0, most = 0;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      most = std::max(most, held);
      if (leaves(i)) held += turns_[i].unit->activations;
      if (i + 1 < turns_.size() && comes_back(i + 1)) {
        most = std::max(most, held);
        held -= turns_[i + 1].unit->activations;
      }
    }
    return most;
  }

 private:
  void list_turns() {
    for (std::size_t s = 0, round = 0; s < order_.size();) {
      const std::size_t slots = slots_at(s), next = s + slots, nexts = slots_at(next);
      const std::size_t units = units_.chunk(order_[s].chunk).size();
      const std::size_t begin = turns_.size(), others = slots == 2 ? units_.chunk(order_[s + 1].chunk).size() : 0;
      for (std::size_t k = 0; k < std::max(units, others); ++k) {
        const auto turn = [&](std::size_t slot, std::size_t count) {
          const std::size_t index = order_[slot].kind == Slot::Kind::forward ? k : count - 1 - k;
          return Turn{&units_.at(order_[slot].chunk, static_cast<int>(index), order_[slot].microbatch), order_[slot], index, next, nexts};
        };
        if (k >= units) {
          turns_.push_back(turn(s + 1, others));
          continue;
        }
        const Turn one = turn(s, units);
        if (idle(one)) continue;
        turns_.push_back(one);
        if (k >= others) continue;
        turns_.back().beside = turn(s + 1, others).unit;
        turns_.back().beside_slot = order_[s + 1];
      }
      s = next;
      for (std::size_t i = begin; i < turns_.size(); ++i) turns_[i].round = round;
      if (turns_.size() > begin) ++round;
    }
  }

  // The slots that have turns, those of a pair together.
  [[nodiscard]] std::vector<std::vector<Slot>> rounds() const {
    std::vector<std::vector<Slot>> slots(turns_.empty() ? 0 : turns_.back().round + 1);
    for (const Turn& turn : turns_) {
      slots[turn.round].push_back(turn.slot);
      if (turn.beside != nullptr) slots[turn.round].push_back(turn.beside_slot);
    }
    return slots;
  }

  // The embedding passes no gradient on: where backwards are split, it has nothing to do in their first half.
  [[nodiscard]] bool idle(const Turn& turn) const {
    return turn.slot.kind == Slot::Kind::backward_input && program_.chunks[turn.slot.chunk][turn.index].program->backward_input.empty();
  }

  // How many slots run together from the s-th on.
  [[nodiscard]] std::size_t slots_at(std::size_t s) const {
    if (s >= order_.size()) return 0;
    return order_[s].paired && workload_.overlap.ep ? 2 : 1;
  }

  [[nodiscard]] bool forward(std::size_t i) const { return turns_[i].slot.kind == Slot::Kind::forward; }
  [[nodiscard]] bool input_gradient(std::size_t i) const {
    return turns_[i].slot.kind == Slot::Kind::backward || turns_[i].slot.kind == Slot::Kind::backward_input;
  }
  [[nodiscard]] bool weight_gradient(std::size_t i) const {
    return turns_[i].slot.kind == Slot::Kind::backward || turns_[i].slot.kind == Slot::Kind::backward_weight;
  }

  // Nothing is listed where nothing is offloaded.
  [[nodiscard]] bool leaves(std::size_t i) const { return !moves_.leave.empty() && moves_.leave[i]; }
  [[nodiscard]] bool comes_back(std::size_t i) const { return !moves_.come_back.empty() && moves_.come_back[i]; }
  // Back from the host for both of its backward turns.
  [[nodiscard]] bool comes_to_stay(std::size_t i) const { return comes_back(i) && !weight_gradient(i); }
  [[nodiscard]] bool frees(std::size_t i) const { return weight_gradient(i) && !comes_back(i); }

  [[nodiscard]] MemoryBytes at_turn(std::size_t i, double kept, MemoryBytes now) const {
    const UnitMemory& unit = *turns_[i].unit;
    now[MemoryUse::activations] += kept + passing(i);
    if (!gradients_.empty()) {
      const std::span states = std::span(gradients_).subspan(turns_[i].round * whole_gradients_.size(), whole_gradients_.size());
      now[MemoryUse::gradients] += workloads::whole_now(states, whole_gradients_, sync_.overlap_gradients);
    }
    now[MemoryUse::temporary] += unit.gathered + (weight_gradient(i) ? unit.weight_temporary : 0);
    if (forward(i)) now[MemoryUse::temporary] += unit.forward_temporary;
    if (input_gradient(i)) now[MemoryUse::temporary] += unit.backward_temporary;
    now[MemoryUse::communication] += (forward(i) ? unit.forward_communication : 0) + (input_gradient(i) ? unit.backward_communication : 0);
    neighbours(i, now);
    if (const UnitMemory* beside = turns_[i].beside) {
      now[MemoryUse::temporary] += beside->gathered + beside->backward_temporary;
      now[MemoryUse::communication] += beside->backward_communication + beside->bucket;
      if (turns_[i].beside_slot.kind == Slot::Kind::backward) now[MemoryUse::temporary] += beside->weight_temporary;
    }
    return now;
  }

  // What the backward of an overlapped pair gives back at the end of turn i.
  [[nodiscard]] double freed_beside(std::size_t i) const {
    return turns_[i].beside != nullptr && turns_[i].beside_slot.kind == Slot::Kind::backward ? turns_[i].beside->activations : 0;
  }

  // Gathered ahead for the next turn, gradients of the one before still being reduced, the message for the next slot.
  void neighbours(std::size_t i, MemoryBytes& now) const {
    if (sync_.overlap_parameters && i + 1 < turns_.size()) now[MemoryUse::temporary] += turns_[i + 1].unit->gathered;
    if (!forward(i)) now[MemoryUse::communication] += turns_[i].unit->bucket;
    if (sync_.overlap_gradients && i > 0 && !forward(i - 1)) now[MemoryUse::communication] += turns_[i - 1].unit->bucket;
    for (std::size_t s = turns_[i].next; workload_.overlap.pp && s < turns_[i].next + turns_[i].nexts; ++s) {
      if (receives(order_[s])) now[MemoryUse::communication] += message_;
    }
  }

  // With offload: of this turn, of the one before on their way to the host, of the next on their way back.
  [[nodiscard]] double passing(std::size_t i) const {
    double bytes = 0;
    const auto offloaded = [&](std::size_t k) { return turns_[k].unit->activations; };
    if (forward(i) ? leaves(i) : comes_back(i) && weight_gradient(i)) bytes += offloaded(i);
    if (i > 0 && forward(i - 1) && leaves(i - 1)) bytes += offloaded(i - 1);
    if (i + 1 < turns_.size() && comes_back(i + 1)) bytes += offloaded(i + 1);
    return bytes;
  }

  [[nodiscard]] bool receives(const Slot& slot) const { return workloads::source_of(schedule_, shape_, stage_, slot).has_value(); }

  [[nodiscard]] std::string label(const Turn& turn) const {
    return name_of_turn(turn.slot.kind, program_.chunks[turn.slot.chunk][turn.index]);
  }

  const Workload& workload_;
  int stage_;
  const workloads::ReplicaSync& sync_;
  const workloads::StageProgram& program_;
  workloads::RankMemories units_;
  const workloads::Schedule& schedule_;
  workloads::PipelineShape shape_;
  double message_;  // bytes between stages
  std::vector<Slot> order_;
  std::vector<Turn> turns_;
  std::vector<double> whole_gradients_;               // [chunk], of ZeRO-2
  std::vector<workloads::ChunkGradients> gradients_;  // [round][chunk]
  workloads::Offloading moves_;
};

// The units of a stage where PeakSlots has the answer: every micro-batch holds the same, one slot runs at a time, nothing is offloaded.
std::optional<HeldUnits> units_alike(const Workload& workload, const workloads::StageProgram& program, const workloads::RankMemories& units,
                                     const workloads::ExpertLoads* loads, const workloads::MemoryHabits& habits,
                                     const workloads::ReplicaSync& sync) {
  if (workload.offload_activations || workload.overlap.ep || (loads != nullptr && !loads->even())) return std::nullopt;
  HeldUnits held;
  const bool splits = workloads::ScheduleRegistry::get(workload.schedule).splits_backward();
  for (std::size_t c = 0; c < program.chunks.size(); ++c) {
    if (!held.add(program.chunks[c], splits)) return std::nullopt;
    for (std::size_t u = 0; u < program.chunks[c].size(); ++u) held.units.push_back(&units.at(static_cast<int>(c), static_cast<int>(u), 0));
  }
  held.first.push_back(static_cast<std::uint32_t>(held.units.size()));
  held.whole_gradients = workloads::whole_gradients(workload, habits, sync, program);
  return held.add_up_exactly(workload.microbatches()) ? std::optional(std::move(held)) : std::nullopt;
}

void find_peak(const Job& job, const workloads::Compiled& compiled, int stage, const HeldUnits& units, RankMemory& memory) {
  const PeakSlots slots(job.workload, compiled, stage);
  const double message = job.workload.overlap.pp ? compiled.message_bytes : 0;
  const PeakMemory peak = peak_of(slots, units, compiled.sync, message, memory.at_peak);
  if (!peak.found) return;
  memory.at_peak = peak.held;
  memory.operation = name_of_turn(peak.slot.kind, compiled.stages[static_cast<std::size_t>(stage)].chunks[peak.slot.chunk][peak.unit]);
  memory.microbatch = peak.slot.microbatch;
}

// Of the ranks among which the experts are spread, the one that holds most at its peak; without uneven routing they are all alike.
RankMemory fullest_of_stage(const Job& job, const workloads::Compiled& compiled, int stage, const workloads::ExpertLoads* loads,
                            bool walked_by_slots) {
  const workloads::RankGrid& grid = compiled.grid;
  const workloads::StageProgram& program = compiled.stages[static_cast<std::size_t>(stage)];
  const workloads::StaticMemory tensors =
      workloads::static_memory(job.workload, job.system.software.memory.habits, program.parameters, program.expert_parameters);
  const int first = grid.rank({0, 0, 0, stage});
  const std::vector<int> members =
      loads != nullptr && !loads->even() ? grid.group(workloads::GroupKind::ep, first) : std::vector<int>{first};
  const int share = job.system.gpus / job.workload.parallel.pp;
  std::optional<RankMemory> fullest;
  const workloads::RankMemories units(job.workload, job.system.software.memory.habits, program, loads, grid.expert_rank(first));
  const std::optional<HeldUnits> alike =
      walked_by_slots ? units_alike(job.workload, program, units, loads, job.system.software.memory.habits, compiled.sync) : std::nullopt;
  for (const int rank : members) {
    RankMemory memory{rank, stage, share, held_all_the_time(job, tensors), usable_bytes(job.system.gpu), 0, "start"};
    memory.host_bytes = tensors.host;
    if (alike) {
      find_peak(job, compiled, stage, *alike, memory);
    } else {
      const Stage walked(job, compiled, stage, loads, grid.expert_rank(rank));
      walked.find_peak(memory);
      memory.host_bytes += walked.most_on_host();
    }
    add_cache(job, memory);
    if (!fullest || memory.peak_bytes() > fullest->peak_bytes()) fullest = std::move(memory);
  }
  return *fullest;
}

}  // namespace

MemoryResult predicted_memory(const Job& job) { return predicted_memory(job, workloads::compile(job.workload)); }

MemoryResult predicted_memory(const Job& job, const workloads::Compiled& compiled, bool walked_by_slots) {
  const int stages = compiled.shape.stages;
  MemoryResult result;
  for (int step = 0; step < job.distinct_steps(); ++step) {
    std::optional<workloads::ExpertLoads> loads;
    if (job.workload.model.moe) loads.emplace(job.workload, step);
    for (int s = 0; s < stages; ++s) {
      RankMemory memory = fullest_of_stage(job, compiled, s, loads ? &*loads : nullptr, walked_by_slots);
      memory.step = step;
      if (step == 0) {
        result.ranks.push_back(std::move(memory));
      } else if (memory.needed_bytes() > result.ranks[s].needed_bytes()) {
        result.ranks[s] = std::move(memory);
      }
    }
  }
  result.host = fullest_host(job, result.ranks);
  return result;
}

namespace {

// In a step of the routing.
std::vector<bool> expert_layers_that_fit(const Job& job, int step) {
  const workloads::Workload& workload = job.workload;
  const workloads::Compiled compiled = workloads::compile(workload);
  const workloads::ExpertLoads loads(workload, step);
  std::vector<bool> fit(static_cast<std::size_t>(workload.model.layers + workload.model.mtp), false);
  for (int s = 0; s < workload.parallel.pp; ++s) {
    const workloads::StaticMemory tensors = workloads::static_memory(workload, job.system.software.memory.habits,
                                                                     compiled.stages[s].parameters, compiled.stages[s].expert_parameters);
    const MemoryBytes always = held_all_the_time(job, tensors);
    std::map<int, MemoryBytes> highest;
    for (int part = 0; part < (loads.even() ? 1 : workload.parallel.ep); ++part) {
      Stage(job, compiled, s, &loads, part).raise_layers(always, highest);
    }
    for (const auto& [layer, bytes] : highest) {
      RankMemory memory{compiled.grid.rank({0, 0, 0, s}), s, 1, bytes, usable_bytes(job.system.gpu), 0, ""};
      add_cache(job, memory);
      fit[static_cast<std::size_t>(layer)] = memory.fits();
    }
  }
  return fit;
}

}  // namespace

std::vector<bool> expert_layers_that_fit(const Job& job) {
  std::vector<bool> fit = expert_layers_that_fit(job, 0);
  for (int step = 1; step < job.distinct_steps(); ++step) {
    const std::vector<bool> also = expert_layers_that_fit(job, step);
    for (std::size_t layer = 0; layer < fit.size(); ++layer) fit[layer] = fit[layer] && also[layer];
  }
  return fit;
}

}  // namespace rehearse::sim

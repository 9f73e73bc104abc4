#include "sim/memory/predicted.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "sim/memory/host_memory.hpp"
#include "sim/memory/peak_slots.hpp"
#include "sim/memory/ranks_at_rest.hpp"
#include "workloads/held_memory.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using workloads::Workload;

std::string name_of_turn(Slot::Kind kind, const workloads::Unit& unit) {
  const std::string direction = kind == Slot::Kind::forward ? "F " : kind == Slot::Kind::backward_weight ? "W " : "B ";
  return direction + unit.name;
}

// Numbers by turn.
class ByTurn {
 public:
  explicit ByTurn(std::uint32_t turns) : first_(turns + 2) {}
  // Each that put() will get, then settle(), then put().
  void count(std::uint32_t turn) { ++first_[turn + 2]; }
  void settle() {
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    numbers_.resize(first_.back());
  }
  void put(std::uint32_t turn, std::uint32_t number) { numbers_[first_[turn + 1]++] = number; }
  [[nodiscard]] std::span<const std::uint32_t> at(std::uint32_t turn) const {
    return std::span(numbers_).subspan(first_[turn], first_[turn + 1] - first_[turn]);
  }

 private:
  std::vector<std::uint32_t> first_, numbers_;
};

// Intervals in program order. What is kept over many turns is a running sum, as PeakSlots has it; what comes and goes with the turns is
// added up anew.
class InProgramOrder {
 public:
  InProgramOrder(std::uint32_t turns, std::vector<workloads::Held> held)
      : turns_(turns), held_(std::move(held)), begin_(turns), end_(turns), during_(turns) {
    each([&](ByTurn& list, std::uint32_t turn, std::uint32_t) { list.count(turn); });
    for (ByTurn* list : {&begin_, &end_, &during_}) list->settle();
    each([&](ByTurn& list, std::uint32_t turn, std::uint32_t number) { list.put(turn, number); });
  }

  // at(turn, what is held then and always).
  template <typename At>
  void walk(const MemoryBytes& always, At at) const {
    MemoryBytes kept;
    for (std::uint32_t turn = 0; turn < turns_; ++turn) {
      for (const std::uint32_t i : begin_.at(turn)) kept[held_[i].use] += held_[i].bytes;
      MemoryBytes now = always;
      for (std::size_t use = 0; use < memory_use_count; ++use) now.bytes[use] += kept.bytes[use];
      for (const std::uint32_t i : during_.at(turn)) now[held_[i].use] += held_[i].bytes;
      at(turn, now);
      for (const std::uint32_t i : end_.at(turn)) kept[held_[i].use] -= held_[i].bytes;
    }
  }

 private:
  static bool is_kept(MemoryUse use) { return use == MemoryUse::activations || use == MemoryUse::gradients; }

  template <typename To>
  void each(To to) {
    for (std::uint32_t i = 0; i < held_.size(); ++i) {
      const workloads::Held& one = held_[i];
      if (is_kept(one.use)) {
        to(begin_, one.from.turn, i);
        to(end_, one.to.turn, i);
        continue;
      }
      for (std::uint32_t turn = one.from.turn; turn <= one.to.turn; ++turn) to(during_, turn, i);
    }
  }

  std::uint32_t turns_;
  std::vector<workloads::Held> held_;
  ByTurn begin_, end_, during_;
};

// A stage whose ranks may hold different amounts.
class Stage {
 public:
  Stage(const Job& job, const workloads::Compiled& compiled, int stage, const workloads::ExpertLoads* loads)
      : workload_(job.workload),
        sync_(compiled.sync),
        habits_(job.system.software.memory.habits),
        program_(compiled.stages[static_cast<std::size_t>(stage)]),
        loads_(loads),
        held_(workload_, compiled, habits_, stage) {}

  // What each layer with experts needs at most while it is at work, in `highest` by layer.
  void raise_layers(int expert_rank, const MemoryBytes& always, std::map<int, MemoryBytes>& highest) const {
    walk(held_.on_gpu(units(expert_rank)), always, [&](std::uint32_t turn, const MemoryBytes& now) {
      for (const workloads::HeldTask& task : held_.of_turn(turn)) {
        const workloads::Unit& unit = unit_of(task);
        if (unit.layer_kind != workloads::LayerKind::experts) continue;
        MemoryBytes& most = highest[unit.first_layer];
        if (now.total() > most.total()) most = now;
      }
    });
  }

  // What is there all the time, of what is there when the update runs.
  [[nodiscard]] MemoryBytes always_of(MemoryBytes at_update) const {
    if (workloads::makes_gradients_anew(workload_, habits_)) at_update[MemoryUse::gradients] = 0;
    return at_update;
  }

  // Raises `memory` to the largest sum of what is kept and what the turn at hand needs.
  void find_peak(int expert_rank, RankMemory& memory) const {
    const MemoryBytes always = always_of(memory.at_peak);
    walk(held_.on_gpu(units(expert_rank)), always, [&](std::uint32_t turn, const MemoryBytes& now) {
      if (now.total() <= memory.peak_bytes()) return;
      const workloads::HeldTask& task = held_.of_turn(turn).back();  // of a pair the forward
      memory.at_peak = now;
      memory.operation = name_of_turn(task.slot.kind, unit_of(task));
      memory.microbatch = task.slot.microbatch;
    });
  }

  // Most activations that the host holds at any time.
  [[nodiscard]] double most_on_host(int expert_rank) const {
    if (!workload_.offload_activations) return 0;
    double most = 0;
    walk(held_.on_host(units(expert_rank)), {}, [&](std::uint32_t, const MemoryBytes& now) { most = std::max(most, now.total()); });
    return most;
  }

 private:
  [[nodiscard]] workloads::RankMemories units(int expert_rank) const { return {workload_, habits_, sync_, program_, loads_, expert_rank}; }
  template <typename At>
  void walk(std::vector<workloads::Held> held, const MemoryBytes& always, At at) const {
    InProgramOrder(held_.turns(), std::move(held)).walk(always, at);
  }
  [[nodiscard]] const workloads::Unit& unit_of(const workloads::HeldTask& task) const {
    return program_.chunks[task.slot.chunk][task.unit];
  }

  const Workload& workload_;
  const workloads::ReplicaSync& sync_;
  const workloads::MemoryHabits& habits_;
  const workloads::StageProgram& program_;
  const workloads::ExpertLoads* loads_;
  workloads::HeldMemory held_;
};

// The units of a stage where PeakSlots has the answer: every micro-batch holds the same, one slot runs at a time, nothing is offloaded.
struct UnitsAlike {
  std::vector<workloads::UnitMemory> memories;
  HeldUnits units;
  bool answers = true;

  UnitsAlike(const Job& job, const workloads::Compiled& compiled, const workloads::StageProgram& program,
             const workloads::RankMemories& ranks, const workloads::ExpertLoads* loads) {
    const Workload& workload = job.workload;
    answers = !workload.offload_activations && !workload.overlap.ep && (loads == nullptr || loads->even()) &&
              !workloads::makes_gradients_anew(workload, job.system.software.memory.habits);
    if (!answers) return;
    std::vector<std::uint32_t> holding;
    const workloads::Unit* last = nullptr;
    for (std::size_t c = 0; c < program.chunks.size(); ++c) {
      holding.clear();
      for (std::size_t u = 0; u < program.chunks[c].size(); ++u) {
        const workloads::Unit& unit = program.chunks[c][u];
        const bool as_before = last != nullptr && last->program == unit.program && unit.layer_kind != workloads::LayerKind::experts;
        if (!as_before) memories.push_back(ranks.at(static_cast<int>(c), static_cast<int>(u), 0));
        last = &unit;
        holding.push_back(static_cast<std::uint32_t>(memories.size() - 1));
      }
      answers = units.add(program.chunks[c], compiled.schedule->splits_backward(), holding) && answers;
    }
    units.memories = memories;
    workloads::list_whole_gradients(workload, job.system.software.memory.habits, compiled.sync, program, units.whole_gradients);
    answers = answers && units.add_up(workload.microbatches());
  }
};

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
RankMemory fullest_of_stage(const Job& job, const workloads::Compiled& compiled, const RanksAtRest& at_rest, int stage,
                            const workloads::ExpertLoads* loads, bool walked_by_slots) {
  const workloads::RankGrid& grid = compiled.grid;
  const workloads::StageProgram& program = compiled.stages[static_cast<std::size_t>(stage)];
  const RankAtRest resting = at_rest.of(program.parameters);
  const int first = grid.rank({0, 0, 0, stage});
  const std::vector<int> members =
      loads != nullptr && !loads->even() ? grid.group(workloads::GroupKind::ep, first) : std::vector<int>{first};
  const int share = job.system.gpus / job.workload.parallel.pp;
  std::optional<RankMemory> fullest;
  const workloads::RankMemories units(job.workload, job.system.software.memory.habits, compiled.sync, program, loads,
                                      grid.expert_rank(first));
  std::optional<UnitsAlike> alike;
  if (walked_by_slots) alike.emplace(job, compiled, program, units, loads);
  const bool by_slots = alike && alike->answers;
  std::optional<Stage> walked;
  if (!by_slots) walked.emplace(job, compiled, stage, loads);
  double most_on_host = 0;
  for (const int rank : members) {
    RankMemory memory = resting.rank();
    memory.rank = rank;
    memory.stage = stage;
    memory.ranks = share;
    if (by_slots) {
      find_peak(job, compiled, stage, alike->units, memory);
    } else {
      walked->find_peak(grid.expert_rank(rank), memory);
      most_on_host = std::max(most_on_host, walked->most_on_host(grid.expert_rank(rank)));
    }
    resting.raise_to_update(memory);
    resting.add_cache(memory);
    if (!fullest || memory.peak_bytes() > fullest->peak_bytes()) fullest = std::move(memory);
  }
  fullest->host_bytes = resting.tensors().host + most_on_host;
  return *fullest;
}

}  // namespace

MemoryResult predicted_memory(const Job& job) { return predicted_memory(job, workloads::compile(job.workload)); }

MemoryResult predicted_memory(const Job& job, const workloads::Compiled& compiled, bool walked_by_slots) {
  const int stages = compiled.shape.stages;
  const RanksAtRest at_rest(job.system, job.workload, compiled.sync);
  MemoryResult result;
  for (int step = 0; step < job.distinct_steps(); ++step) {
    std::optional<workloads::ExpertLoads> loads;
    if (job.workload.model.moe) loads.emplace(job.workload, step);
    for (int s = 0; s < stages; ++s) {
      RankMemory memory = fullest_of_stage(job, compiled, at_rest, s, loads ? &*loads : nullptr, walked_by_slots);
      memory.step = step;
      if (step == 0) {
        result.ranks.push_back(std::move(memory));
      } else {
        RankMemory& highest = result.ranks[s];
        const double host = std::max(highest.host_bytes, memory.host_bytes);
        if (memory.needed_bytes() > highest.needed_bytes()) highest = std::move(memory);
        highest.host_bytes = host;
      }
    }
  }
  result.host = fullest_host(job.system.cluster, job.workload.parallel, result.ranks);
  return result;
}

namespace {

// In a step of the routing.
std::vector<bool> expert_layers_that_fit(const Job& job, int step) {
  const workloads::Workload& workload = job.workload;
  const workloads::Compiled compiled = workloads::compile(workload);
  const workloads::ExpertLoads loads(workload, step);
  const RanksAtRest at_rest(job.system, workload, compiled.sync);
  std::vector<bool> fit(static_cast<std::size_t>(workload.model.layers + workload.model.mtp), false);
  for (int s = 0; s < workload.parallel.pp; ++s) {
    const RankAtRest resting = at_rest.of(compiled.stages[static_cast<std::size_t>(s)].parameters);
    std::map<int, MemoryBytes> highest;
    const Stage stage(job, compiled, s, &loads);
    for (int part = 0; part < (loads.even() ? 1 : workload.parallel.ep); ++part)
      stage.raise_layers(part, stage.always_of(resting.always()), highest);
    for (const auto& [layer, bytes] : highest) {
      RankMemory memory = resting.rank();
      memory.at_peak = bytes;
      resting.add_cache(memory);
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

double needed_share(const MemoryResult& memory) {
  double most = 0;
  for (const RankMemory& rank : memory.ranks) most = std::max(most, rank.needed_bytes() / rank.capacity_bytes);
  return most;
}

}  // namespace rehearse::sim

#include "sim/memory/predicted.hpp"

#include <algorithm>
#include <string>

#include "sim/memory/framework.hpp"
#include "workloads/offload.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using workloads::UnitMemory;
using workloads::Workload;

// A unit's turn in the order of a stage.
struct Turn {
  const UnitMemory* unit = nullptr;
  Slot slot;
  std::size_t index = 0;       // of the unit in its chunk
  const Slot* next = nullptr;  // the slot after its own
};

class Stage {
 public:
  Stage(const Job& job, int stage, const workloads::StageProgram& program)
      : workload_(job.workload),
        stage_(stage),
        sync_(workloads::replica_sync(job.workload)),
        units_(workloads::unit_memories(job.workload, job.software.memory.habits, program)),
        program_(program),
        shape_(workloads::pipeline_shape(workload_)),
        order_(schedule().order(shape_, stage)) {
    list_turns();
    moves_ = workloads::offloading(workloads::unit_turns(order_, program), program);
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
      }
      if (frees(i)) kept -= turns_[i].unit->activations;
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
  [[nodiscard]] const workloads::Schedule& schedule() const { return workloads::ScheduleRegistry::get(workload_.schedule); }

  void list_turns() {
    for (std::size_t s = 0; s < order_.size(); ++s) {
      const std::vector<UnitMemory>& units = units_[order_[s].chunk];
      for (std::size_t k = 0; k < units.size(); ++k) {
        const std::size_t index = order_[s].kind == Slot::Kind::forward ? k : units.size() - 1 - k;
        turns_.push_back({&units[index], order_[s], index, s + 1 < order_.size() ? &order_[s + 1] : nullptr});
      }
    }
  }

  [[nodiscard]] bool forward(std::size_t i) const { return turns_[i].slot.kind == Slot::Kind::forward; }
  [[nodiscard]] bool input_gradient(std::size_t i) const {
    return turns_[i].slot.kind == Slot::Kind::backward || turns_[i].slot.kind == Slot::Kind::backward_input;
  }
  [[nodiscard]] bool weight_gradient(std::size_t i) const {
    return turns_[i].slot.kind == Slot::Kind::backward || turns_[i].slot.kind == Slot::Kind::backward_weight;
  }

  [[nodiscard]] bool leaves(std::size_t i) const { return moves_.leave[i]; }
  [[nodiscard]] bool comes_back(std::size_t i) const { return moves_.come_back[i]; }
  // Back from the host for both of its backward turns.
  [[nodiscard]] bool comes_to_stay(std::size_t i) const { return comes_back(i) && !weight_gradient(i); }
  [[nodiscard]] bool frees(std::size_t i) const { return weight_gradient(i) && !comes_back(i); }

  [[nodiscard]] MemoryBytes at_turn(std::size_t i, double kept, MemoryBytes now) const {
    const UnitMemory& unit = *turns_[i].unit;
    now[MemoryUse::activations] += kept + passing(i);
    now[MemoryUse::temporary] += unit.gathered + (weight_gradient(i) ? unit.weight_temporary : 0);
    if (forward(i)) now[MemoryUse::temporary] += unit.forward_temporary;
    if (input_gradient(i)) now[MemoryUse::temporary] += unit.backward_temporary;
    now[MemoryUse::communication] += (forward(i) ? unit.forward_communication : 0) + (input_gradient(i) ? unit.backward_communication : 0);
    neighbours(i, now);
    return now;
  }

  // Gathered ahead for the next turn, gradients of the one before still being reduced, the message for the next slot.
  void neighbours(std::size_t i, MemoryBytes& now) const {
    if (sync_.overlap_parameters && i + 1 < turns_.size()) now[MemoryUse::temporary] += turns_[i + 1].unit->gathered;
    if (!forward(i)) now[MemoryUse::communication] += turns_[i].unit->bucket;
    if (sync_.overlap_gradients && i > 0 && !forward(i - 1)) now[MemoryUse::communication] += turns_[i - 1].unit->bucket;
    if (workload_.overlap.pp && turns_[i].next != nullptr && receives(*turns_[i].next)) {
      now[MemoryUse::communication] += workloads::pipeline_message_bytes(workload_);
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

  [[nodiscard]] bool receives(const Slot& slot) const { return workloads::source_of(schedule(), shape_, stage_, slot).has_value(); }

  [[nodiscard]] std::string label(const Turn& turn) const {
    const std::string direction = turn.slot.kind == Slot::Kind::forward           ? "F "
                                  : turn.slot.kind == Slot::Kind::backward_weight ? "W "
                                                                                  : "B ";
    return direction + program_.chunks[turn.slot.chunk][turn.index].name;
  }

  const Workload& workload_;
  int stage_;
  workloads::ReplicaSync sync_;
  std::vector<std::vector<UnitMemory>> units_;
  const workloads::StageProgram& program_;
  workloads::PipelineShape shape_;
  std::vector<Slot> order_;
  std::vector<Turn> turns_;
  workloads::Offloading moves_;
};

}  // namespace

MemoryResult predicted_memory(const Job& job) {
  const auto programs = workloads::stage_programs(job.workload, workloads::Granularity::layer);
  const workloads::RankGrid grid = workloads::rank_grid(job.workload);
  const auto stages = static_cast<int>(programs.size());
  MemoryResult result;
  for (int s = 0; s < stages; ++s) {
    const workloads::StaticMemory tensors = workloads::static_memory(job.workload, job.software.memory.habits, programs[s].parameters);
    RankMemory memory{grid.rank({0, 0, 0, s}), s, job.gpus / stages, held_all_the_time(job, tensors), usable_bytes(job.gpu), 0, "start"};
    const Stage stage(job, s, programs[s]);
    stage.find_peak(memory);
    memory.host_bytes = tensors.host + stage.most_on_host();
    add_cache(job, memory);
    result.ranks.push_back(std::move(memory));
  }
  result.host = fullest_host(job, result.ranks);
  return result;
}

}  // namespace rehearse::sim

// All operations of one simulated rank for one step (internal to the builder).
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "workloads/offload.hpp"
#include "workloads/op_chain.hpp"

namespace rehearse::workloads {

// Whether a slot leaves the gradients of its micro-batch complete.
[[nodiscard]] inline bool completes_gradients(const Slot& slot) {
  return slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_weight;
}

class RankEmitter {
 public:
  RankEmitter(Build& build, std::uint32_t rank);
  // Where other ranks' operations must be linked to this one's.
  [[nodiscard]] SlotTable emit();

 private:
  // One unit of one slot, or several equal ones, in the order the rank executes them.
  struct Task {
    Slot slot;
    const Unit* unit = nullptr;  // the first; nothing for a chunk without layers
    int units = 1;
    bool first = false, last = false;  // of the slot
    bool completes = false;            // the gradients of its units: no micro-batch is left
    std::size_t turn = 0;              // among those with a unit
  };
  void list_tasks();
  void list_tasks(const Slot& slot, bool first_forward, bool completes);
  [[nodiscard]] int equal_units(const Task& from, std::size_t at_most) const;
  [[nodiscard]] bool stands_alone(const Slot& slot, bool first_forward, bool completes) const;
  void task(std::size_t i);
  [[nodiscard]] bool inside_pair(std::size_t i);
  // A pair whose slots overlap, from its first task on; the task after it.
  std::size_t overlapped_pair(std::size_t first);
  struct Piece {
    Pass pass = Pass::forward;
    const Segment* segment = nullptr;
    std::string label;
  };
  // The experts, and what is before, between and behind them.
  [[nodiscard]] std::vector<std::vector<Piece>> pieces(const Task& task) const;
  void begin_beside(std::size_t i, int thread);
  void end_beside(std::size_t i, int thread);
  void execute(const Task& task, OpId next);
  void run_pass(Pass pass, const std::vector<Segment>& segments, const std::string& label, OpId next_gathered = no_op);
  void empty_operation();
  void leave_slot(const Slot& slot);
  void finish();
  void tied_embeddings();
  [[nodiscard]] Place place_of(const Task& task) const;
  [[nodiscard]] std::string name_of(const Task& task) const;

  // Parameters and gradients between replicas.
  // Ranks that mirror one another meet their chunks in opposite order, and replicas of experts are other groups than those of dense
  // parameters: exchanges of the two kinds must not alternate, or each rank waits for the other's other kind. Experts come last there.
  [[nodiscard]] bool experts_last() const { return plan_.schedule->mirrors() && program_.parameters.experts > 0; }
  OpId gather(const Parameters& what, const std::vector<OpId>& after, const std::string& label);
  OpId beside(const std::vector<Communication>& calls, int times, const std::vector<OpId>& after, const std::string& label);
  OpId reduce(const Parameters& what, const std::string& label);
  void gather_all_at_start();
  void gather_before(std::size_t i);
  void gather_for(std::size_t i);
  [[nodiscard]] bool gathers_at_its_turn(std::size_t i) const;
  void reduce_after(const Task& task);
  void reduce_late();

  // Activations to the host and back.
  void plan_offloading();
  void fetch(std::size_t turn);
  void wait_for_copies(const Task& task);
  [[nodiscard]] double offloaded_bytes(const Task& t) const;
  void store(const Task& task);

  Build& build_;
  int global_, stage_;
  const Compiled& plan_;
  const StageProgram& program_;
  OpChain chain_;
  SlotTable slots_;
  std::vector<Task> tasks_;
  std::vector<std::vector<OpId>> ends_;  // [task] the chain's tail after it
  OpId last_reduction_ = no_op;
  std::vector<const Unit*> late_;      // whose experts' gradients wait for all dense ones
  std::optional<Slot> first_of_pair_;  // while its second half runs
  std::map<const Unit*, OpId> gathered_;
  std::map<std::size_t, OpId> gather_of_task_;
  Offloading offloading_;
  std::vector<std::size_t> task_of_turn_;
  std::map<std::tuple<const Unit*, int>, OpId> stored_;  // by unit and micro-batch
  std::map<std::size_t, OpId> left_, fetched_;           // [turn] copies out and in
};

}  // namespace rehearse::workloads

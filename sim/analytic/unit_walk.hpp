// A pipeline whose units wait for what runs beside them, all units of all slots one after another: gathers and reductions of ZeRO-3, copies
// to the host and back (equations 33-35).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/analytic/replica_cost.hpp"
#include "sim/analytic/slot_walk.hpp"
#include "sim/analytic/walked_slots.hpp"

namespace rehearse::sim {

struct UnitSpans {
  StageSpans spans;                           // in seconds after the stack's own time; with ZeRO-3 a stage ends with its last reduction
  std::vector<double> copies_s, exchanged_s;  // [stage] for which the GPU waits for copies or ZeRO-3, or is slowed by them
};

// Whether such a pipeline needs UnitWalks: where neither copies nor overlapped gathers and reductions run beside units, slots are
// enough.
[[nodiscard]] bool walks_units(const workloads::Workload& workload, const ReplicaRules& rules);

// Walks pipelines of the same stages.
class UnitWalks {
 public:
  // Before others; `units`: of which theirs are.
  void begin(std::span<const UnitTerms> units, std::span<const StageTerms> stages, const ReplicaRules& rules) {
    if (known_.begin(units, stages, rules)) instant_.reset();
  }
  // A unit waits for its parameters and activations, and for those of the unit before the last to have left; copies of one direction follow
  // one another, and so do gathers and reductions. hop_s: as in PipelineTimes; copies: their contention. order: of the workload's slots;
  // what repeats in it is not walked again, but where there are copies, of which every one of a step is told apart.
  [[nodiscard]] UnitSpans walk(const workloads::Workload& workload, const workloads::Compiled& compiled, std::span<const StageTerms> stages,
                               const ReplicaRules& rules, const ContentionPair& copies, const std::vector<double>& hop_s,
                               const SlotOrder& order);
  // The same with messages that take no time, which nobody waits for then. `order` must outlive the walks.
  [[nodiscard]] const UnitSpans& without_messages(const workloads::Workload& workload, const workloads::Compiled& compiled,
                                                  std::span<const StageTerms> stages, const ReplicaRules& rules,
                                                  const ContentionPair& copies, const SlotOrder& order);

 private:
  std::optional<UnitSpans> instant_;
  const SlotOrder* instant_order_ = nullptr;
  KnownSlots known_;
  WalkRoom room_;
};

}  // namespace rehearse::sim

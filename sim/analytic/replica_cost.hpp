// What the exchange between data-parallel replicas adds to a stage's time: equations (13) and (24), ZeRO-3 per micro-batch.
#pragma once

#include <utility>
#include <vector>

#include "sim/analytic/terms.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// What all stages share.
struct ReplicaRules {
  workloads::ReplicaSync sync;
  ContentionPair pair;
  int microbatches = 1;
  int turn = 1;               // micro-batches that pass through a chunk before the next chunk's turn
  double overhead_s = 0;      // of the stack, before the first forward: gathers of the last update's weights run beside it
  bool ports_meet = true;     // of a GPU: calls that go over one at once divide it
  bool experts_last = false;  // their gradients, which mirrored stages share, are reduced when all others are

  // Seconds that a unit's gather and reduction take in a slot where nothing hides them (ZeRO-3; ZeRO-2 without a pipeline), in addition to
  // its own. Where backward is split each of its two slots gathers the parameters anew, and the second one reduces.
  [[nodiscard]] double exposed_s(const UnitTerms& unit, workloads::Slot::Kind slot) const;
  // The gather among that: it runs while the slot's first unit waits for its input.
  [[nodiscard]] double exposed_gather_s(const UnitTerms& unit, workloads::Slot::Kind slot) const {
    return gathers_each() ? unit.gathers_s(slot) : 0;
  }
  [[nodiscard]] bool gathers_each() const { return sync.shards_parameters && sync.replicated(); }
  [[nodiscard]] bool reduces_each() const { return sync.reduce_each_microbatch && sync.replicated(); }
  [[nodiscard]] bool exchanges_each() const { return gathers_each() || reduces_each(); }
};

// The last slot that adds to a chunk's gradients.
struct Completed {
  double end_s = 0;
  bool whole = false;  // a backward in one slot
};

class ReplicaCost {
 public:
  ReplicaCost(const ReplicaRules& rules, const StageTerms& stage) : rules_(rules), sync_(rules.sync), stage_(stage) {}

  // Before the first forward can run at full speed: gathers of the last update's weights slow the stack's own time down (alpha), and what
  // is left of them the first forwards do not hide.
  [[nodiscard]] double at_start_s() const;
  // After the last backward: reductions that it does not hide.
  [[nodiscard]] double reduce_at_end_s() const;
  // The reduction of all gradients at once that nothing else runs beside.
  [[nodiscard]] double reduce_in_line_s() const;
  // The same of the whole stage when all of its work ends at end_s: one after another, each as soon as its unit's gradients are complete,
  // here and where a mirrored stage has them too. [chunk], of the mirrored stage likewise; `ready` is scratch.
  [[nodiscard]] double reduced_s(std::span<const Completed> here, std::span<const Completed> mirrored, double end_s,
                                 std::vector<std::pair<double, double>>& ready) const;
  // By how much gathers still under way after `elapsed_s` stretch the first forward, and reductions the last backward (alpha of equation
  // 24).
  [[nodiscard]] double first_forward_stretch_s(double elapsed_s) const;
  [[nodiscard]] double last_backward_stretch_s() const;
  // After the update: all-gather of the new weights when nothing hides it.
  [[nodiscard]] double gather_at_end_s() const;

 private:
  [[nodiscard]] double left_by_overhead_s(double gathers_s) const;

  const ReplicaRules& rules_;
  const workloads::ReplicaSync& sync_;
  const StageTerms& stage_;
};

}  // namespace rehearse::sim

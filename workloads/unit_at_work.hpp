// What a unit holds while it is at work on a micro-batch: said once, for the list of what a rank holds (workloads/held_memory.hpp) and for
// the search of its peak (sim/memory/peak_slots.hpp).
#pragma once

#include <array>
#include <cstddef>

#include "workloads/memory_use.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

inline bool makes_input_gradient(Slot::Kind kind) { return kind == Slot::Kind::backward || kind == Slot::Kind::backward_input; }
inline bool makes_weight_gradient(Slot::Kind kind) { return kind == Slot::Kind::backward || kind == Slot::Kind::backward_weight; }

// During the unit's turn; where it says so already during the turn before, or still during the one after.
struct AtWork {
  MemoryUse use = MemoryUse::temporary;
  double bytes = 0;
  bool from_before = false, until_after = false;
};

class UnitAtWork {
 public:
  UnitAtWork(Slot::Kind kind, const UnitMemory& unit, const ReplicaSync& sync) {
    const bool forward = kind == Slot::Kind::forward;
    add({.use = MemoryUse::temporary, .bytes = unit.gathered, .from_before = sync.overlap_parameters});
    if (makes_weight_gradient(kind)) add({.use = MemoryUse::temporary, .bytes = unit.weight_temporary});
    if (forward || makes_input_gradient(kind)) {
      add({.use = MemoryUse::temporary, .bytes = forward ? unit.forward_temporary : unit.backward_temporary});
      add({.use = MemoryUse::communication, .bytes = forward ? unit.forward_communication : unit.backward_communication});
    }
    // FSDP2's holds the input of the reduction before already, which goes when the next one's is made: never two.
    const bool stays = sync.overlap_gradients && !sync.copied;
    if (!forward) add({.use = MemoryUse::communication, .bytes = unit.bucket, .until_after = stays});
  }

  // In the order in which sums add them up.
  [[nodiscard]] const AtWork* begin() const { return all_.data(); }
  [[nodiscard]] const AtWork* end() const { return all_.data() + count_; }

 private:
  void add(const AtWork& one) { all_[count_++] = one; }

  std::array<AtWork, 5> all_{};
  std::size_t count_ = 0;
};

}  // namespace rehearse::workloads

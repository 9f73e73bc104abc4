// Products that keep the weights which ZeRO-3 gathered for them.
#pragma once

#include "workloads/plan.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

// Whether a layer's products keep theirs until their backward (MemoryHabits::saves_weights). recomputed: the layer is computed again.
[[nodiscard]] inline bool saves_gathered(const Workload& workload, const MemoryHabits& habits, bool recomputed) {
  return habits.saves_weights && !recomputed && !workload.recompute.every_second_product();
}

}  // namespace rehearse::workloads

// Whether memory sees a loss that works on the logits themselves, without a copy of them in fp32.
#pragma once

#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

constexpr double exact_loss_bytes = 4;

// element: bytes of a logit. A stack whose loss holds logits and a copy in fp32 fuses its kernels and yet makes that copy.
[[nodiscard]] inline bool fuses_loss(const Workload& workload, const MemoryHabits& habits, double element) {
  return workload.fusions.cross_entropy && habits.loss_bytes < element + exact_loss_bytes;
}

}  // namespace rehearse::workloads

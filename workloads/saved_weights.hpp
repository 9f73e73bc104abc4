// What layers that are not computed again keep beside their activations: weights that were gathered for them, operands of derivatives.
#pragma once

#include "workloads/operators/shard.hpp"
#include "workloads/plan.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

// Whether a layer's products keep theirs until their backward (MemoryHabits::saves_weights). recomputed: the layer is computed again.
[[nodiscard]] inline bool saves_gathered(const Workload& workload, const MemoryHabits& habits, bool recomputed) {
  return habits.saves_weights && !recomputed && !workload.recompute.every_second_product();
}

// Bytes that a layer in a scan of JAX keeps beside what autograd of fused operators does: partial evaluation of the loop saves what each
// derivative reads, whatever is fused later (jax/_src/lax/control_flow/loops.py, _scan_partial_eval). RMSNorm in FP32 has its input so, 2
// bytes an element more, and what its weight multiplies; SwiGLU the output of silu, its logistic function and 1 less that
// (jax/_src/lax/lax.py, logistic_p). Of other activations and of experts it is not counted.
[[nodiscard]] inline double scanned_operands(const Workload& workload, const Shard& shard, LayerKind kind) {
  const double norms = (kind == LayerKind::none ? 1 : 2) * static_cast<double>(shard.spread_tokens * shard.hidden) * (2 + shard.element);
  const bool gated = kind == LayerKind::dense && workload.model.gated();
  return norms + (gated ? 3 * shard.element * static_cast<double>(shard.tokens * shard.ffn) : 0);
}

// Both. weights: bytes of the layer's.
[[nodiscard]] inline double saved_beside(const Workload& workload, const MemoryHabits& habits, const Shard& shard, LayerKind kind,
                                         bool recomputed, double weights) {
  const bool again = recomputed || workload.recompute.every_second_product();
  return (saves_gathered(workload, habits, recomputed) ? weights : 0) +
         (habits.scans_layers && !again ? scanned_operands(workload, shard, kind) : 0);
}

}  // namespace rehearse::workloads

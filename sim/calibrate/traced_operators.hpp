// Operators of PyTorch whose shapes a trace tells (torch.profiler with record_shapes=True), as operators that a GPU's file prices.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/calibrate/kineto_trace.hpp"
#include "sim/cost/gpu.hpp"
#include "workloads/operators.hpp"

namespace rehearse::sim {

// Whether this operator's FLOPs and bytes follow from the shapes of its arguments: products (aten::mm, addmm, bmm, baddbmm, _scaled_mm),
// attention (scaled_dot_product_attention's kernels, flash-attn's own), and what passes once over its tensors (add, mul, silu, copies).
[[nodiscard]] bool counts_shapes(std::string_view name);

struct TracedOperator {
  workloads::Operator op;  // of one call
  std::string shown;       // "aten::addmm 8944x1024 1024x2816"
  int flash = 3;           // generation of its attention's kernel
  int calls = 0;           // alone on the GPU, without communication or a copy beside
  double median_s = 0;     // of their kernels' time
};

// Each operator by shapes and type once, longest in all first. Left out: calls of products and attention none of whose kernels is named as
// one, calls beside communication, shapes that say nothing of their rate (products with a side below 64 or unaligned, tensors below 4 MB,
// not in order or of several shapes, kernels below 10 us), types that GPU files do not know, attention of which the trace does not say
// whether it is causal.
[[nodiscard]] std::vector<TracedOperator> traced_operators(std::span<const KinetoTrace> traces);

// What its kernels take by the GPU's file; what the stack launches between and before them is in no kernel.
[[nodiscard]] double device_seconds(const TracedOperator& traced, const Gpu& gpu, Software software);

}  // namespace rehearse::sim

// What deterministic algorithms cost an operator (Software::deterministic): flash attention's backward, and the fills of what is allocated.
#pragma once

#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

// Of the rate of flash attention's kernels of a generation (Software::flash, sdpa resolved), what the deterministic ones reach. Forward has
// one order of its sums anyway.
[[nodiscard]] double deterministic_share(const Gpu& gpu, int generation, const workloads::Operator& op);

// What kernels of their own move beside it: PyTorch fills what it allocates (Operator::allocated_bytes), and FlashAttention-2 adds up query
// gradients in as many buffers as a head has blocks.
[[nodiscard]] double deterministic_bytes(const Gpu& gpu, int generation, const workloads::Operator& op);

}  // namespace rehearse::sim

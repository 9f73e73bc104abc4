// Which tensors a unit takes from the allocator and gives back in nanotron (src/nanotron/models/llama.py and
// parallel/tensor_parallel/functional.py of 0e0a27ea): eager modules around flash attention, tensor parallelism by gathers into two buffers
// that every layer uses (MemoryBuffer) and by reductions of whole tensors.
#pragma once

#include "sim/memory/unit_tensors.hpp"

namespace rehearse::sim {

// Of a dense gated model with flash attention that knows_tensors() speaks of.
[[nodiscard]] UnitTensors nanotron_tensors(const workloads::Workload& workload, const workloads::Unit& unit);

}  // namespace rehearse::sim

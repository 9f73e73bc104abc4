// Which tensors a unit takes from the allocator and gives back where its modules are PyTorch's own: one operator after another, as autograd
// keeps and frees what they read (derivatives.yaml, torch/csrc/autograd/input_buffer.cpp, torch/utils/checkpoint.py; 2.4 to 2.11), with
// torch.autocast's copies (aten/src/ATen/autocast_mode.cpp) and, where the stack compiles, pointwise operators in one kernel.
#pragma once

#include "sim/memory/unit_tensors.hpp"

namespace rehearse::sim {

// A dense model with flash attention and no dropout, its layers whole on every rank, weights in one type or cast by autocast, or sharded by
// FSDP or DeepSpeed's ZeRO; nothing or whole layers recomputed, or every second product kept.
[[nodiscard]] bool knows_torch_tensors(const workloads::Workload& workload, const workloads::MemoryHabits& habits);

// Of a unit that knows_torch_tensors() speaks of.
[[nodiscard]] UnitTensors torch_tensors(const workloads::Workload& workload, const workloads::MemoryHabits& habits,
                                        const workloads::Unit& unit);

}  // namespace rehearse::sim

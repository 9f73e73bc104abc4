// Which tensors a unit takes from the allocator and gives back where its weights are frozen and adapters stand beside them: HuggingFace's
// models under PEFT (peft/tuners/lora/layer.py and bnb.py), operator by operator, layers computed again whole (torch/utils/checkpoint.py).
#pragma once

#include "sim/memory/unit_tensors.hpp"

namespace rehearse::sim {

// A dense gated model whose layers are whole on every rank and computed again, with norms and the activation as operators, by FSDP or
// whole.
[[nodiscard]] bool knows_adapted_tensors(const workloads::Workload& workload, const workloads::MemoryHabits& habits);

// Of a unit that knows_adapted_tensors() speaks of.
[[nodiscard]] UnitTensors adapted_tensors(const workloads::Workload& workload, const workloads::MemoryHabits& habits,
                                          const workloads::Unit& unit);

}  // namespace rehearse::sim

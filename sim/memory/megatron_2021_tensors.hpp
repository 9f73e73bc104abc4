// Tensors of a unit as Megatron-LM of 2021 has them, operator by operator (megatron/model/transformer.py, mpu/layers.py, mpu/mappings.py,
// mpu/cross_entropy.py and model/gpt_model.py of 8aa4619, March 2021): attention with scores and probabilities, whole sums over tensor
// parallel ranks in place, nothing sharded by sequence.
#pragma once

#include "sim/memory/unit_tensors.hpp"

namespace rehearse::sim {

// Whether the order is known: dense GPT, attention not flash with its softmax in one kernel, 16 bits, no ZeRO, no sequence or context
// parallelism, nothing or whole layers recomputed.
[[nodiscard]] bool knows_megatron_2021(const workloads::Workload& workload);

[[nodiscard]] UnitTensors megatron_2021_tensors(const workloads::Workload& workload, const workloads::MemoryHabits& habits,
                                                const workloads::Unit& unit);

}  // namespace rehearse::sim

// LoRA beside the linear layers of a transformer layer (internal to the operators).
#pragma once

#include <string>
#include <vector>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {

// How tensor parallelism cuts the linear layer that an adapter stands beside.
enum class Side : std::uint8_t { column, row };

// Columns on this GPU of what each adapter adds to, in the order of its fused layer's matrices: one for a fused layer that is a target
// itself, one for each of its matrices where these are targets, or where the stack has a product for each.
[[nodiscard]] std::vector<std::int64_t> qkv_adapters(const Workload& workload, const Shard& shard);
[[nodiscard]] std::vector<std::int64_t> projection_adapters(const Workload& workload, const Shard& shard);
[[nodiscard]] std::vector<std::int64_t> fc1_adapters(const Workload& workload, const Shard& shard);
[[nodiscard]] std::vector<std::int64_t> fc2_adapters(const Workload& workload, const Shard& shard);

// Bytes of an element of what dropout reads and writes: PEFT casts an adapter's input to the type that its weights have before they are
// gathered.
[[nodiscard]] double adapter_input_element(const Workload& workload, const Shard& shard);
// And of what the adapters' products read and write. Where each matrix is a unit of FSDP1 (by_adapter) it is cast to the type of the gather
// as it enters one (MixedPrecision's cast_forward_inputs).
[[nodiscard]] double adapter_element(const Workload& workload, const Shard& shard);
// Whether Transformer Engine's operation fuser runs them: what tensor parallelism or a cast does between their products leaves nothing to
// fuse.
[[nodiscard]] bool fuses_adapters(const Workload& workload, const Shard& shard);
// Of the mask of each element that dropout keeps.
[[nodiscard]] double adapter_mask_bytes(const Workload& workload, const Shard& shard);

// Of an element that a norm reads, what it keeps in 16 bits: its input, or as several operators what its weight multiplies, for the
// gradient of a weight that is not frozen.
[[nodiscard]] double normed_bytes(const Workload& workload, const Shard& shard);

// Puts the layer's adapters into its section: behind its forward, before its backward. `linear` is what one GPU has of the layer.
void add_adapters(Section& section, const Workload& workload, const Shard& shard, const Linear& linear, Side side,
                  const std::string& where);

}  // namespace rehearse::workloads

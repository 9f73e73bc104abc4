// What is held of weights that are frozen beside adapters, between steps under ZeRO-3.
#pragma once

#include "workloads/stage_program.hpp"

namespace rehearse::workloads {

// own: of the pipeline stage, before ZeRO. Its shard, unless the host has that (offload.weights), and of a base in 4 bits the blocks'
// scales: bitsandbytes has them beside the parameter (QuantState), where FSDP1 and DeepSpeed, which shard parameters alone, leave them on
// every GPU. FSDP2, which copies, shards a tensor with all it has (torchao).
struct FrozenBytes {
  double on_gpu = 0, on_host = 0;
};
[[nodiscard]] FrozenBytes frozen_bytes_held(const Workload& workload, const ReplicaSync& sync, const Parameters& own);

}  // namespace rehearse::workloads

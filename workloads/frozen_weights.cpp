#include "workloads/frozen_weights.hpp"

namespace rehearse::workloads {

FrozenBytes frozen_bytes_held(const Workload& workload, const ReplicaSync& sync, const Parameters& own) {
  if (own.frozen == 0) return {};
  const double whole = workload.lora.nf4 ? own.layers * (sync.kept_layer_bytes - sync.layer_weight_bytes) : 0;
  const double shard = sync.frozen_shard_bytes(own) - whole / sync.shard_ranks;
  return workload.offload_weights ? FrozenBytes{whole, shard} : FrozenBytes{whole + shard, 0};
}

}  // namespace rehearse::workloads

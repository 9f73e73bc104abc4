#include "workloads/frozen_weights.hpp"

namespace rehearse::workloads {

double frozen_bytes_held(const Workload& workload, const ReplicaSync& sync, const Parameters& own) {
  constexpr double four_bits = 0.5;
  if (own.frozen == 0) return 0;
  const double whole = workload.lora.nf4 && !workload.optimizer.copies ? own.layers * (sync.kept_layer_bytes - four_bits) : 0;
  return whole + (workload.offload_weights ? 0 : sync.frozen_shard_bytes(own) - whole / sync.shard_ranks);
}

}  // namespace rehearse::workloads

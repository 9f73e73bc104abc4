#include "sim/memory/adapted_weights.hpp"

#include "workloads/frozen_weights.hpp"

namespace rehearse::sim {

AdaptedWeights::AdaptedWeights(const TrainedStage& stage, const workloads::ReplicaSync& sync, AllocatorDevice& device)
    : RankWeights(stage),
      stage_(stage),
      sync_(sync),
      device_(device),
      sharded_(sync.shards_parameters && sync.replicated()),
      on_host_(stage.workload.offload_weights),
      gathered_(stage.kind_of.front().size()) {}

workloads::Parameters AdaptedWeights::parameters(std::size_t unit) const {
  return workloads::parameters_of(*stage_.program.chunks.front()[unit].program);
}

// Of a trained one between steps, as StaticMemory has it: its master copy, which FSDP shards, or that beside it.
double AdaptedWeights::kept_bytes() const {
  const double weight = sync_.trained_weight_bytes, exact = bytes_of(stage_.workload.precision.optimizer);
  if (weight >= exact) return weight;
  return (sync_.shards_parameters ? 0 : weight) + (stage_.workload.optimizer.on_cpu ? 0 : exact);
}

void AdaptedWeights::build() {
  for (std::size_t unit = 0; unit < gathered_.size(); ++unit) {
    const workloads::Parameters own = parameters(unit);
    const double trained = own.trained() * sync_.trained_weight_bytes;
    device_.take(sharded_ ? workloads::frozen_bytes_held(stage_.workload, sync_, own).on_gpu : sync_.gathered_bytes(own) - trained);
    if (!on_host_) device_.take(own.trained() * kept_bytes() / (sharded_ ? sync_.shard_ranks : 1));
  }
}

void AdaptedWeights::gather(std::size_t unit) {
  if (!sharded_) return;
  Block*& gathered = gathered_[in_root(unit) ? 0 : unit];
  if (gathered != nullptr) return;
  double bytes = sync_.gathered_bytes(parameters(unit));
  if (in_root(unit)) bytes = sync_.gathered_bytes(parameters(0)) + sync_.gathered_bytes(parameters(gathered_.size() - 1));
  Block* shard = on_host_ ? device_.take(device_.request(bytes / sync_.shard_ranks, gather_stream)) : nullptr;
  gathered = device_.take(device_.request(bytes, gather_stream, compute_as_user));
  device_.give(shard);
}

void AdaptedWeights::before_forward(std::size_t unit) { gather(unit); }

// The last unit's weights stay for its backward.
void AdaptedWeights::after_forward(std::size_t unit) {
  if (!in_root(unit) && unit + 1 < gathered_.size()) device_.give(gathered_[unit]);
}

// The unit before it is gathered meanwhile.
void AdaptedWeights::before_backward(std::size_t unit) {
  gather(unit);
  if (unit > 1) gather(unit - 1);
}

// Of the adapters' gradients the shard is kept, on the host where the optimizer is.
void AdaptedWeights::leave(std::size_t unit) {
  if (!in_root(unit)) device_.give(gathered_[unit]);
  if (!sharded_ && first_) {
    sums_.insert(sums_.end(), gradients_.begin(), gradients_.end());
    gradients_.clear();
    return;
  }
  const double sum = sync_.shard(parameters(unit)) * sync_.gradient_bytes;
  Block* reduced = sharded_ ? device_.take(device_.request(sum, reduce_stream)) : nullptr;
  device_.give(gradients_);
  if (first_ && !stage_.workload.optimizer.on_cpu) {
    sums_.push_back(reduced);
  } else {
    device_.give(reduced);
  }
}

void AdaptedWeights::end_backward() { device_.give(gathered_.front()); }

void AdaptedWeights::update(bool first_step) {
  if (first_step && !stage_.workload.optimizer.on_cpu) {
    const double moment = bytes_of(stage_.workload.precision.moments), shards = sharded_ ? sync_.shard_ranks : 1;
    for (std::size_t unit = 0; unit < gathered_.size(); ++unit) {
      if (const double trained = parameters(unit).trained(); trained > 0) take_moments({trained / shards}, moment, device_);
    }
  }
  device_.give(sums_);
}

}  // namespace rehearse::sim

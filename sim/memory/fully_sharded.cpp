#include "sim/memory/fully_sharded.hpp"

#include <numeric>
#include <utility>

namespace rehearse::sim {

FullyShardedWeights::FullyShardedWeights(const TrainedStage& stage, const std::vector<double>& own, int shards, AllocatorDevice& device)
    : RankWeights(stage),
      stage_(stage),
      own_(own),
      device_(device),
      shards_(shards),
      weight_(bytes_of(stage.workload.precision.weights)),
      reduced_(bytes_of(stage.workload.precision.gradients)),
      exact_(bytes_of(stage.workload.precision.optimizer)),
      copied_(stage.workload.optimizer.copies),
      weights_(stage.kind_of.front().size()) {}

void FullyShardedWeights::build() {
  for (const double size : own_) device_.take(size * exact_);
}

double FullyShardedWeights::parameters(std::size_t unit) const {
  const auto of = [&](std::size_t one) {
    const std::vector<double>& own = stage_.tensors_of_unit(one);
    return std::accumulate(own.begin(), own.end(), 0.0);
  };
  return of(unit) + (in_root(unit) && weights_.size() > 1 ? of(weights_.size() - 1) : 0);
}

// Layers may be gathered as their products read them.
double FullyShardedWeights::gathered_type(std::size_t unit) const {
  const bool layer = stage_.program.chunks.front()[unit].kind == workloads::UnitKind::layer;
  const auto& gathered = stage_.workload.precision.param_gather;
  return layer && gathered ? bytes_of(*gathered) : weight_;
}

// The shard in 16 bits, or what layers are gathered in, and the gathered weights. FSDP2 on one rank copies at once.
void FullyShardedWeights::gather(std::size_t unit) {
  Weights& weights = weights_[unit];
  if ((copied_ && shards_ < 2) || weights.gathered != nullptr || !weights.copies.empty()) return;
  const double bytes = parameters(unit) * gathered_type(unit);
  Block* shard = device_.take(device_.request(bytes / shards_, gather_stream));
  weights.gathered = device_.take(device_.request(bytes, gather_stream, copied_ ? compute_stream : compute_as_user));
  device_.give(shard);
}

void FullyShardedWeights::copy_out(std::size_t unit) {
  if (!copied_) return;
  const auto copy = [&](std::size_t one) {
    for (const double size : stage_.tensors_of_unit(one)) weights_[unit].copies.push_back(device_.take(size * gathered_type(one)));
  };
  copy(unit);
  if (in_root(unit) && weights_.size() > 1) copy(weights_.size() - 1);
}

void FullyShardedWeights::release(std::size_t unit) {
  if (!copied_) device_.give(weights_[unit].gathered);
  device_.give(weights_[unit].copies);
}

// The buffer is there until the next unit's weights were copied out of theirs.
void FullyShardedWeights::before_forward(std::size_t unit) {
  if (led_by_root(unit)) return;
  gather(unit);
  if (!copied_) return;
  device_.give(last_gathered_);
  copy_out(unit);
  last_gathered_ = std::exchange(weights_[unit].gathered, nullptr);
}

// The last unit's weights stay for its backward, a table that the head shares for that and its own.
void FullyShardedWeights::after_forward(std::size_t unit) {
  if (in_root(unit) || unit + 1 == weights_.size() || (unit == 0 && tied())) return;
  release(unit);
}

// The unit before it is gathered meanwhile.
void FullyShardedWeights::before_backward(std::size_t unit) {
  device_.give(last_gathered_);
  if (!led_by_root(unit)) gather(unit);
  if (copied_ && !led_by_root(unit) && weights_[unit].copies.empty()) {
    copy_out(unit);
    device_.give(weights_[unit].gathered);
  }
  if (unit > 0 && !in_root(unit - 1)) gather(unit - 1);
}

void FullyShardedWeights::leave(std::size_t unit) {
  if (led_by_root(unit)) {  // until all of the root's are there
    root_gradients_ = std::exchange(gradients_, {});
    return;
  }
  if (in_root(unit)) {
    gradients_.insert(gradients_.end(), root_gradients_.begin(), root_gradients_.end());
    root_gradients_.clear();
  }
  const double all = parameters(unit);
  release(unit);
  if (copied_) {
    reduce_copied(all);
    if (unit == 0) device_.give(last_reduced_);
  } else {
    reduce_flat(all);
  }
}

void FullyShardedWeights::reduce_copied(double all) {
  device_.give(last_reduced_);
  last_reduced_ = device_.take(all * reduced_);
  device_.give(gradients_);
  keep_sum(device_.take(device_.request(all / shards_ * reduced_, reduce_stream)));
}

// Autograd joins the gradients of the flat parameter's views; the sum, in the weights' type, is cast to that of the gradients.
void FullyShardedWeights::reduce_flat(double all) {
  Block* flat = device_.take(device_.request(all * weight_, compute_stream, reduce_stream));
  device_.give(gradients_);
  Block* sum = device_.take(device_.request(all / shards_ * weight_, reduce_stream));
  device_.give(flat);
  if (reduced_ > weight_) {
    Block* exact = device_.take(device_.request(all / shards_ * reduced_, reduce_stream));
    device_.give(sum);
    sum = exact;
  }
  keep_sum(sum);
}

void FullyShardedWeights::keep_sum(Block* sum) {
  if (first_) {
    sums_.push_back(sum);
  } else {
    device_.give(sum);
  }
}

void FullyShardedWeights::update(bool first_step) {
  if (first_step) take_moments(own_, bytes_of(stage_.workload.precision.moments), device_);
  device_.give(sums_);
}

}  // namespace rehearse::sim

#include "sim/memory/rank_weights.hpp"

#include <utility>

#include "sim/memory/adapted_weights.hpp"
#include "sim/memory/deepspeed_zero.hpp"
#include "sim/memory/fully_sharded.hpp"
#include "sim/memory/main_weights.hpp"
#include "sim/memory/nanotron_weights.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::sim {
namespace {

constexpr double ddp_bucket_bytes = 25 * 1024 * 1024;  // DistributedDataParallel(bucket_cap_mb=25)

// Without ZeRO: weights and gradients in one type, both moments from the first update on, DDP's buckets where there are replicas.
class WholeWeights : public RankWeights {
 public:
  WholeWeights(const TrainedStage& stage, const std::vector<double>& own, AllocatorDevice& device)
      : RankWeights(stage),
        stage_(stage),
        own_(own),
        device_(device),
        weight_(bytes_of(workloads::autocasts(stage.workload) ? stage.workload.precision.optimizer : stage.workload.precision.weights)) {}

  void build() override {
    double all = 0;
    for (const double size : own_) {
      device_.take(size * weight_);
      all += size * weight_;
    }
    if (stage_.workload.parallel.dp == 1) return;
    const auto whole = static_cast<std::size_t>(all / ddp_bucket_bytes);
    for (std::size_t i = 0; i < whole; ++i) device_.take(ddp_bucket_bytes);
    device_.take(all - static_cast<double>(whole) * ddp_bucket_bytes);
  }
  void update(bool first_step) override {
    const double moment = bytes_of(stage_.workload.precision.moments);
    if (first_step) take_moments(own_, moment, device_);
    if (stage_.habits.foreach_update) {
      std::vector<Block*> roots;
      for (const double size : own_) roots.push_back(device_.take(size * moment));
      device_.give(roots);
    }
    device_.give(gradients_);
  }

 private:
  void begin(Pass pass) override { first_ = pass.first; }
  // Added to what the first micro-batch made.
  void add_gradient(Block* gradient, double /*bytes*/) override {
    if (first_) {
      gradients_.push_back(gradient);
    } else {
      device_.give(gradient);
    }
  }

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  AllocatorDevice& device_;
  double weight_;
  bool first_ = true;
  std::vector<Block*> gradients_;
};

}  // namespace

void RankWeights::begin_backward(Pass pass) {
  expects_table_ = tied_;
  begin(pass);
}

void RankWeights::take_gradient(Block* gradient, double bytes) {
  if (std::exchange(expects_table_, false)) {
    table_ = gradient;
    table_bytes_ = bytes;
  } else {
    add_gradient(gradient, bytes);
  }
}

void RankWeights::after_backward(std::size_t unit) {
  if (unit == 0 && table_ != nullptr) add_gradient(std::exchange(table_, nullptr), table_bytes_);
  leave(unit);
}

void take_moments(const std::vector<double>& own, double bytes, AllocatorDevice& device) {
  for (const double size : own) {
    device.take(size * bytes);
    device.take(size * bytes);
  }
}

std::unique_ptr<RankWeights> rank_weights(const TrainedStage& stage, const std::vector<double>& own, AllocatorDevice& device) {
  const workloads::Workload& workload = stage.workload;
  const workloads::ReplicaSync sync = workloads::replica_sync(workload);
  const int zero = workload.optimizer.zero_stage, shards = sync.shard_ranks;
  if (stage.habits.order == workloads::TensorOrder::megatron_2021) return std::make_unique<MainWeights>(stage, own, device);
  if (!stage.torch()) return std::make_unique<NanotronWeights>(stage, own, zero == 0 ? 1 : shards, device);
  if (workload.lora.on()) return std::make_unique<AdaptedWeights>(stage, sync, device);
  if (zero == 0) return std::make_unique<WholeWeights>(stage, own, device);
  if (stage.habits.sharded_master) return std::make_unique<FullyShardedWeights>(stage, own, shards, device);
  if (zero == 3) return std::make_unique<DeepSpeedZero3>(stage, shards, device);
  return std::make_unique<DeepSpeedZero>(stage, own, shards, device);
}

}  // namespace rehearse::sim

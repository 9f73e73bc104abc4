// The weights and gradients of a rank under DeepSpeed's ZeRO with contiguous_gradients and overlap_comm, at its defaults but for the size
// of the buckets (deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, partition_parameters.py, partitioned_param_coordinator.py; 0.14).
#pragma once

#include <cstddef>
#include <vector>

#include "sim/memory/rank_weights.hpp"

namespace rehearse::sim {

// ZeRO-1 and 2: weights are one buffer, gradients go through two buckets into a buffer of the rank's share.
class DeepSpeedZero : public RankWeights {
 public:
  // All must outlive it. own: parameters of the tensors in the rank's share; shards: ranks.
  DeepSpeedZero(const TrainedStage& stage, const std::vector<double>& own, int shards, AllocatorDevice& device);

  void build() override;
  void end_backward() override;
  void update(bool first_step) override;

 private:
  void begin(Pass pass) override;
  void add_gradient(Block* gradient, double bytes) override;
  [[nodiscard]] bool reduces() const { return partitions_ || pass_.last; }
  void reduce();

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  AllocatorDevice& device_;
  bool partitions_;  // ZeRO-2
  double all_ = 0, share_, bucket_, weight_;
  Pass pass_;
  std::vector<Block*> buckets_, waiting_, whole_;  // waiting: larger than a bucket; whole: ZeRO-1's of earlier micro-batches
  double in_bucket_ = 0;
  std::size_t next_whole_ = 0;
  Block* made_ = nullptr;  // the rank's share of this backward's
  Block* sum_ = nullptr;
};

// ZeRO-3: weights are gathered tensor by tensor, as far ahead as live_parameters allows, and stay after their forward where backward needs
// them soon.
class DeepSpeedZero3 : public RankWeights {
 public:
  DeepSpeedZero3(const TrainedStage& stage, int shards, AllocatorDevice& device);

  void build() override;
  void before_forward(std::size_t unit) override { gather_from(unit); }
  void after_forward(std::size_t unit) override;
  void before_backward(std::size_t unit) override { gather_from(2 * gathered_.size() - 1 - unit); }
  void end_backward() override { reduce(); }
  void update(bool first_step) override;

 private:
  void add_gradient(Block* gradient, double bytes) override;
  void leave(std::size_t unit) override;
  void cut_whole();
  void take_states();
  void gather_from(std::size_t use);
  [[nodiscard]] bool gather(std::size_t unit, bool needed);
  [[nodiscard]] bool releases_table() const { return behind_.front() > stage_.habits.live_parameters; }
  void release(std::size_t unit);
  // Its products keep what they read until their backward (saves_weights).
  [[nodiscard]] bool saves(std::size_t unit) const;
  void reduce();

  const TrainedStage& stage_;
  AllocatorDevice& device_;
  double shards_, all_ = 0, bucket_, weight_, in_bucket_ = 0, live_ = 0;
  std::vector<double> behind_, groups_;  // parameters behind each unit; of each group that is updated at once
  std::vector<std::vector<Block*>> gathered_, saved_;
  Block* waiting_ = nullptr;  // a gradient larger than the bucket
  int in_bucket_now_ = 0;     // gradients
};

}  // namespace rehearse::sim

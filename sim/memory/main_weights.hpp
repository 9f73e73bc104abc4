// The weights, gradients and optimizer of a rank of Megatron-LM of 2021 without ZeRO (FP16OptimizerWithFP16Params in
// megatron/optimizer/optimizer.py and DistributedDataParallel in megatron/model/distributed.py of 8aa4619): FP32 copies of each tensor and
// its moments; gradients as autograd makes them, joined in one tensor where replicas add them up, and copied for the update to FP32 ones
// that stay; or, where they are added up in FP32, one buffer.
#pragma once

#include <vector>

#include "sim/memory/rank_weights.hpp"

namespace rehearse::sim {

class MainWeights : public RankWeights {
 public:
  // All must outlive it. own: parameters of each tensor.
  MainWeights(const TrainedStage& stage, const std::vector<double>& own, AllocatorDevice& device);

  void build() override;
  void update(bool first_step) override;

 private:
  void begin(Pass pass) override { first_ = pass.first; }
  void add_gradient(Block* gradient, double bytes) override;
  [[nodiscard]] bool narrow() const { return gradient_ < state_; }

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  AllocatorDevice& device_;
  double weight_, gradient_, state_;  // bytes
  bool first_ = true;
  std::vector<Block*> gradients_;
};

}  // namespace rehearse::sim

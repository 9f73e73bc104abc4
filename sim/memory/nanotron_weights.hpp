// The weights, gradients and optimizer of a rank of nanotron (src/nanotron/optim/gradient_accumulator.py, optim/zero.py, distributed.py and
// trainer.py of 0e0a27ea): gradients in FP32 in one buffer of all of the rank's weights, a flat master copy and moments of what the rank
// updates. What autograd makes stays, in the weights' type, until the backward of its micro-batch is over, and is added to the buffer then.
// ZeRO-1 gathers new weights into a copy of each rank's piece and one of all of them, and copies them from there.
#pragma once

#include <vector>

#include "sim/memory/rank_weights.hpp"

namespace rehearse::sim {

class NanotronWeights : public RankWeights {
 public:
  // All must outlive it. own: parameters of the rank's piece of each tensor; shards: ranks over which these are cut.
  NanotronWeights(const TrainedStage& stage, const std::vector<double>& own, int shards, AllocatorDevice& device);

  void build() override;
  void end_backward() override { device_.give(gradients_); }
  void update(bool first_step) override;

 private:
  void add_gradient(Block* gradient, double /*bytes*/) override { gradients_.push_back(gradient); }
  void take_buckets();
  void gather_weights();

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  AllocatorDevice& device_;
  int shards_;
  double weight_;
  std::vector<Block*> gradients_;
};

}  // namespace rehearse::sim

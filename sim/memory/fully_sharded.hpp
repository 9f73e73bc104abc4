// The weights and gradients of a rank under PyTorch's fully sharded data parallelism (ZeRO-3), unit by unit: FSDP2, whose gathers and
// reductions have buffers in streams of their own that are kept until the next one (torch/distributed/fsdp/_fully_shard), and FSDP1, whose
// flat parameters are freed for the stream that gathers once the GPU has come past their use (torch/distributed/fsdp/_runtime_utils.py).
#pragma once

#include <cstddef>
#include <vector>

#include "sim/memory/rank_weights.hpp"

namespace rehearse::sim {

class FullyShardedWeights : public RankWeights {
 public:
  // All must outlive it. own: parameters of the rank's piece of each tensor; shards: ranks over which these are cut.
  FullyShardedWeights(const TrainedStage& stage, const std::vector<double>& own, int shards, AllocatorDevice& device);

  void build() override;
  void before_forward(std::size_t unit) override;
  void after_forward(std::size_t unit) override;
  void before_backward(std::size_t unit) override;
  void update(bool first_step) override;

 private:
  struct Weights {
    Block* gathered = nullptr;  // FSDP2's buffer, FSDP1's flat parameter
    std::vector<Block*> copies;
  };

  void begin(Pass pass) override { first_ = pass.first; }
  void add_gradient(Block* gradient, double /*bytes*/) override { gradients_.push_back(gradient); }
  // What backward made of the unit's weights goes; its sharded sum stays from the step's first micro-batch on.
  void leave(std::size_t unit) override;
  // Of the root, of which the first unit stands for all, where embedding, last norm and head are one.
  [[nodiscard]] bool in_root(std::size_t unit) const { return RankWeights::in_root(unit, weights_.size()); }
  [[nodiscard]] bool led_by_root(std::size_t unit) const { return in_root(unit) && unit > 0; }
  [[nodiscard]] double parameters(std::size_t unit) const;
  [[nodiscard]] double gathered_type(std::size_t unit) const;  // bytes a parameter
  void gather(std::size_t unit);
  void copy_out(std::size_t unit);
  void release(std::size_t unit);
  void reduce_copied(double all);
  void reduce_flat(double all);
  void keep_sum(Block* sum);

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  AllocatorDevice& device_;
  double shards_, weight_, reduced_, exact_;
  bool copied_;  // FSDP2
  bool first_ = true;
  std::vector<Weights> weights_;  // by unit
  std::vector<Block*> gradients_, sums_, root_gradients_;
  Block* last_gathered_ = nullptr;  // in forward kept until the next copy
  Block* last_reduced_ = nullptr;   // input of the last reduction
};

}  // namespace rehearse::sim

// A rank's weights where they are frozen and adapters are trained, unit by unit: whole, or under FSDP1, whose root has both tables (of
// torch/distributed/fsdp/_runtime_utils.py); with weights and optimizer on the host FSDP copies shards to the GPU to gather them.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/memory/rank_weights.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

class AdaptedWeights : public RankWeights {
 public:
  // All must outlive it.
  AdaptedWeights(const TrainedStage& stage, const workloads::ReplicaSync& sync, AllocatorDevice& device);

  void build() override;
  void before_forward(std::size_t unit) override;
  void after_forward(std::size_t unit) override;
  void before_backward(std::size_t unit) override;
  void end_backward() override;
  void update(bool first_step) override;

 private:
  void begin(Pass pass) override { first_ = pass.first; }
  void add_gradient(Block* gradient, double /*bytes*/) override { gradients_.push_back(gradient); }
  void leave(std::size_t unit) override;
  [[nodiscard]] bool in_root(std::size_t unit) const { return RankWeights::in_root(unit, gathered_.size()); }
  [[nodiscard]] workloads::Parameters parameters(std::size_t unit) const;
  [[nodiscard]] double kept_bytes() const;
  void gather(std::size_t unit);

  const TrainedStage& stage_;
  workloads::ReplicaSync sync_;
  AllocatorDevice& device_;
  bool sharded_, on_host_, first_ = true;
  std::vector<Block*> gathered_;  // by unit; of the root that of the first
  std::vector<Block*> gradients_, sums_;
};

}  // namespace rehearse::sim

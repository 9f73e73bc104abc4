// A rank's weights, gradients and optimizer where autograd makes a gradient of each tensor (torch_tensors.hpp, nanotron_tensors.hpp): what
// is asked of the allocator for them when the model is made, around each unit, and in the update. Units are those of the first chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "sim/memory/allocator_device.hpp"
#include "sim/memory/allocator_training.hpp"

namespace rehearse::sim {

class RankWeights {
 public:
  using Block = AllocatorDevice::Block;
  struct Pass {
    bool first = true, last = true;  // micro-batch of the step
  };

  explicit RankWeights(const TrainedStage& stage)
      : tied_(shares_table(stage.workload) && !stage.workload.lora.on()), root_(stage.workload.optimizer.root) {}
  virtual ~RankWeights() = default;
  virtual void build() = 0;
  virtual void before_forward(std::size_t /*unit*/) {}
  virtual void after_forward(std::size_t /*unit*/) {}
  void begin_backward(Pass pass);
  virtual void before_backward(std::size_t /*unit*/) {}
  // Takes what backward made of one of the unit's tensors.
  void take_gradient(Block* gradient, double bytes);
  void after_backward(std::size_t unit);
  virtual void end_backward() {}
  virtual void update(bool first_step) = 0;

 protected:
  virtual void begin(Pass /*pass*/) {}
  virtual void add_gradient(Block* gradient, double bytes) = 0;
  virtual void leave(std::size_t /*unit*/) {}
  [[nodiscard]] bool tied() const { return tied_; }
  // Whether FSDP's root holds this one of so many units.
  [[nodiscard]] bool in_root(std::size_t unit, std::size_t units) const { return root_ && (unit == 0 || unit + 1 == units); }

 private:
  // The gradient of a table of words that the head shares, which comes first, is complete, and goes on, when the embedding's is there.
  bool tied_, root_, expects_table_ = false;
  Block* table_ = nullptr;
  double table_bytes_ = 0;
};

// Both of Adam's, of each tensor.
void take_moments(const std::vector<double>& own, double bytes, AllocatorDevice& device);

// As the stack does it, of the rank that has these parameters of the optimizer. All must outlive it.
[[nodiscard]] std::unique_ptr<RankWeights> rank_weights(const TrainedStage& stage, const std::vector<double>& own, AllocatorDevice& device);

}  // namespace rehearse::sim

// 1F1B, PipeDream-Flush (Narayanan et al. 2021): stage i of p warms up with p-i forwards, then alternates.
#include <algorithm>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

class OneForwardOneBackward final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    return shape.chunks == 1 ? "" : "1f1b has one model chunk per GPU; use interleaved-1f1b with vpp > 1";
  }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    const int warmup = warmup_forwards(shape, stage);
    std::vector<Slot> slots;
    slots.reserve(2 * static_cast<std::size_t>(shape.microbatches));
    for (int i = 0; i < warmup; ++i) slots.push_back({Slot::Kind::forward, i, 0});
    for (int i = 0; i < shape.microbatches; ++i) {
      slots.push_back({Slot::Kind::backward, i, 0});
      if (i + warmup < shape.microbatches) slots.push_back({Slot::Kind::forward, i + warmup, 0});
    }
    return slots;
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int stage) const override { return warmup_forwards(shape, stage); }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches, shape.stages - stage);
  }
  [[nodiscard]] bool runs_pairs() const override { return true; }
  // Both of a pair have their input when the pair before has ended.
  [[nodiscard]] int forwards_before_pairs(const PipelineShape& shape, int stage) const override { return 2 * (shape.stages - stage) - 1; }
};

const ScheduleRegistry::Registration<OneForwardOneBackward> one_forward_one_backward_registration("1f1b");

}  // namespace
}  // namespace rehearse::workloads

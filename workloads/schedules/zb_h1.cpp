// ZB-H1: the memory of 1F1B (p micro-batches on every stage), about a third of its bubble: (p-1)(F + B - W).
#include <algorithm>

#include "workloads/schedules/zero_bubble_order.hpp"

namespace rehearse::workloads {
namespace {

class ZbH1 final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override { return zero_bubble_refusal("zb-h1", shape); }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    return zero_bubble_order(shape.microbatches, warmup_forwards(shape, stage), stage);
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches, warmup_forwards(shape, stage) + stage);
  }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches, shape.stages - stage);
  }
  [[nodiscard]] bool splits_backward() const override { return true; }
  [[nodiscard]] bool staggers_steps() const override { return true; }
};

const ScheduleRegistry::Registration<ZbH1> zb_h1_registration("zb-h1");

}  // namespace
}  // namespace rehearse::workloads

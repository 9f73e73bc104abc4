// ZB-H2: 2p - 1 micro-batches on every stage, bubble (p-1)(F + B - 2W), none where F = B = W.
#include <algorithm>

#include "workloads/schedules/zero_bubble_order.hpp"

namespace rehearse::workloads {
namespace {

class ZbH2 final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override { return zero_bubble_refusal("zb-h2", shape); }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    return zero_bubble_order(shape.microbatches, warmup_forwards(shape, stage), 2 * stage);
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches, warmup_forwards(shape, stage) + 2 * stage);
  }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches, 2 * (shape.stages - stage) - 1);
  }
  [[nodiscard]] bool splits_backward() const override { return true; }
  [[nodiscard]] bool staggers_steps() const override { return true; }
};

const ScheduleRegistry::Registration<ZbH2> zb_h2_registration("zb-h2");

}  // namespace
}  // namespace rehearse::workloads

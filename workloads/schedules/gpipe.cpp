// GPipe (Huang et al. 2019): all forwards, then all backwards.
#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

class GPipe final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    return shape.chunks == 1 ? "" : "gpipe has one model chunk per GPU; vpp must be 1";
  }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int /*stage*/) const override {
    std::vector<Slot> slots;
    slots.reserve(2 * static_cast<std::size_t>(shape.microbatches));
    for (int i = 0; i < shape.microbatches; ++i) slots.push_back({Slot::Kind::forward, i, 0});
    for (int i = 0; i < shape.microbatches; ++i) slots.push_back({Slot::Kind::backward, i, 0});
    return slots;
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int /*stage*/) const override { return shape.microbatches; }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int /*stage*/) const override { return shape.microbatches; }
};

const ScheduleRegistry::Registration<GPipe> g_pipe_registration("gpipe");

}  // namespace
}  // namespace rehearse::workloads

// A schedule of these tests: all forwards, then all backwards, the last micro-batch first, as a stack of activations would have it. With
// its closed form, as one component.
#include <algorithm>
#include <numeric>

#include "sim/analytic/pipeline_formula.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::tests {
namespace {

using workloads::PipelineShape;
using workloads::Slot;

class LastFirst final : public workloads::Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    return shape.chunks == 1 ? "" : "last-first has one model chunk per GPU; vpp must be 1";
  }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int) const override {
    std::vector<Slot> slots;
    for (int i = 0; i < shape.microbatches; ++i) slots.push_back({Slot::Kind::forward, i, 0});
    for (int i = shape.microbatches; i-- > 0;) slots.push_back({Slot::Kind::backward, i, 0});
    return slots;
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int) const override { return shape.microbatches; }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int) const override { return shape.microbatches; }
};

// Both ways the first micro-batch passes all stages, and the others follow at the pace of the slowest.
class LastFirstFormula final : public sim::PipelineFormula {
  [[nodiscard]] double pipelined_s(const sim::PipelineTimes& times) const override {
    return one_way(times.forward_s, times) + one_way(times.backward_s, times);
  }
  static double one_way(const sim::PerChunk& stage_s, const sim::PipelineTimes& times) {
    const std::vector<double>& all = stage_s.all();
    const double hops = std::accumulate(times.hop_s.begin(), times.hop_s.end() - 1, 0.0);
    return std::accumulate(all.begin(), all.end(), hops) + (times.microbatches - 1) * *std::ranges::max_element(all);
  }
};

const workloads::ScheduleRegistry::Registration<LastFirst> last_first_registration("last-first");
const sim::PipelineFormulaRegistry::Registration<LastFirstFormula> last_first_formula_registration("last-first");

}  // namespace
}  // namespace rehearse::tests

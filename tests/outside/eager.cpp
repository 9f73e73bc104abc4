// A schedule of these tests: 1F1B that sets out with so many forwards that a message each way has time while a stage computes (Zhuang et
// al. 2022), and runs pairs like 1F1B. With its closed form, as one component.
#include <algorithm>

#include "sim/analytic/pipeline_formula.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::tests {
namespace {

using workloads::PipelineShape;
using workloads::Slot;

class Eager final : public workloads::Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    return shape.chunks == 1 ? "" : "eager has one model chunk per GPU; vpp must be 1";
  }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    std::vector<Slot> slots;
    const int warmup = warmup_forwards(shape, stage);
    for (int i = 0; i < warmup; ++i) slots.push_back({Slot::Kind::forward, i, 0});
    for (int i = 0; i < shape.microbatches; ++i) {
      slots.push_back({Slot::Kind::backward, i, 0});
      if (i + warmup < shape.microbatches) slots.push_back({Slot::Kind::forward, i + warmup, 0});
    }
    return slots;
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int stage) const override { return warmup_forwards(shape, stage); }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches, ahead(shape, stage));
  }
  [[nodiscard]] bool runs_pairs() const override { return true; }
  [[nodiscard]] int forwards_before_pairs(const PipelineShape& shape, int stage) const override { return ahead(shape, stage); }

 private:
  static int ahead(const PipelineShape& shape, int stage) { return 2 * (shape.stages - stage) - 1; }
};

// Of uniform stages; messages count where the first micro-batch goes in and the last one comes out.
class EagerFormula final : public sim::PipelineFormula {
  [[nodiscard]] double pipelined_s(const sim::PipelineTimes& times) const override {
    double hops = 0;
    for (int s = 0; s + 1 < times.stages(); ++s) hops += 2 * times.hop_s[s];
    return (times.microbatches + times.stages() - 1) * (times.forward_s[0].front() + times.backward_s[0].front()) + hops;
  }
};

const workloads::ScheduleRegistry::Registration<Eager> eager_registration("eager");
const sim::PipelineFormulaRegistry::Registration<EagerFormula> eager_formula_registration("eager");

}  // namespace
}  // namespace rehearse::tests

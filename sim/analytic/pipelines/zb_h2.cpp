#include "sim/analytic/zero_bubble_formula.hpp"

namespace rehearse::sim {
namespace {

class ZbH2Formula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override { return zero_bubble_s(times, 2); }
};

const PipelineFormulaRegistry::Registration<ZbH2Formula> zb_h2_formula_registration("zb-h2");

}  // namespace
}  // namespace rehearse::sim

#include "sim/analytic/zero_bubble_formula.hpp"

namespace rehearse::sim {
namespace {

class ZbH1Formula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override { return zero_bubble_s(times, 1); }
};

const PipelineFormulaRegistry::Registration<ZbH1Formula> zb_h1_formula_registration("zb-h1");

}  // namespace
}  // namespace rehearse::sim

// GPipe: two pipelines one after the other, each as long as its fill plus the slowest stage's turns:
// T = sum f + H + (m-1) max f + sum b + H + (m-1) max b, exact for any stage times.
#include <algorithm>
#include <numeric>

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {
namespace {

double one_way(const PerChunk& stage_s, const std::vector<double>& hop_s, int microbatches) {
  double fill = std::accumulate(hop_s.begin(), hop_s.end() - 1, 0.0);
  double slowest = 0;
  for (std::size_t s = 0; s < stage_s.size(); ++s) {
    fill += stage_s[s].front();
    slowest = std::max(slowest, stage_s[s].front());
  }
  return fill + (microbatches - 1) * slowest;
}

class GPipeFormula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override {
    return one_way(times.forward_s, times.hop_s, times.microbatches) + one_way(times.backward_s, times.hop_s, times.microbatches);
  }
};

const PipelineFormulaRegistry::Registration<GPipeFormula> g_pipe_formula_registration("gpipe");

}  // namespace
}  // namespace rehearse::sim

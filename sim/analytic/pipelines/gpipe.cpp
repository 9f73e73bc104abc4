// GPipe: two pipelines one after the other, each as long as its fill plus the slowest stage's turns:
// T = sum f + H + (m-1) max f + sum b + H + (m-1) max b, exact for any stage times.
#include <algorithm>
#include <numeric>

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {
namespace {

double one_way(const std::vector<std::vector<double>>& stage_s, const std::vector<double>& hop_s, int microbatches) {
  double fill = std::accumulate(hop_s.begin(), hop_s.end() - 1, 0.0);
  double slowest = 0;
  for (const std::vector<double>& chunks : stage_s) {
    fill += chunks.front();
    slowest = std::max(slowest, chunks.front());
  }
  return fill + (microbatches - 1) * slowest;
}

class GPipeFormula final : public PipelineFormula {
 public:
  [[nodiscard]] double seconds(const PipelineTimes& given) const override {
    const PipelineTimes times = with_blocking_inlined(given);
    return one_way(times.forward_s, times.hop_s, times.microbatches) + one_way(times.backward_s, times.hop_s, times.microbatches);
  }
};

const PipelineFormulaRegistry::Registration<GPipeFormula> registration("gpipe");

}  // namespace
}  // namespace rehearse::sim

// 1F1B. Stage s keeps at most w = p - s micro-batches in flight, so micro-batch j can enter the stages s..p-1 only when j - w has left
// them. The round trip through those stages takes L = sum (f + b) + 2 sum h, the slowest of them needs c = max (f + b) per micro-batch:
//   T_s = [way in and out: sum over k < s of f + b + 2h] + (L + (m-1) c            if L <= w c: the slowest stage decides
//                                                           L ceil(m/w) + ((m-1) mod w) c   otherwise: the round trip decides)
// and T = max over s. Uniform stages without messages: L = w c for every s and T = (m + p - 1)(f + b), equations (9)-(12).
// With messages the round trip decides: 1F1B has no slack to hide them (equation 23 with slack 0).
#include <algorithm>

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {
namespace {

double from_stage(const PipelineTimes& times, int first) {
  const int p = times.stages();
  const int m = times.microbatches;
  double round_trip = 0, slowest = 0;
  for (int s = first; s < p; ++s) {
    const double busy = times.forward_s[s].front() + times.backward_s[s].front();
    round_trip += busy + (s + 1 < p ? 2 * times.hop_s[s] : 0);
    slowest = std::max(slowest, busy);
  }
  const int window = p - first;
  if (round_trip <= window * slowest) return round_trip + (m - 1) * slowest;
  const int rounds = (m + window - 1) / window;
  return round_trip * rounds + (m - 1) % window * slowest;
}

class OneForwardOneBackwardFormula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override {
    double way = 0, longest = 0;
    for (int s = 0; s < times.stages(); ++s) {
      longest = std::max(longest, way + from_stage(times, s));
      way += times.forward_s[s].front() + times.backward_s[s].front() + 2 * times.hop_s[s];
    }
    return longest;
  }
};

const PipelineFormulaRegistry::Registration<OneForwardOneBackwardFormula> one_forward_one_backward_formula_registration("1f1b");

}  // namespace
}  // namespace rehearse::sim

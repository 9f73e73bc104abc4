// DualPipe (DeepSeek-V3, arXiv 2412.19437, table 2): m pairs' worth of work per stage and a bubble of (p/2 - 1)(FB + B - 3W) where F, B's
// input half and W are equal. In general the longest of the ways below through the order, counted in F, B, W (input and weight gradient),
// FB and hops; with FB = F + B + W exact without hops. In the steady phase each pair waits for both neighbours, so that on average (p -
// 1)/p of a hop per micro-batch is exposed (equation 23 without slack).
#include <algorithm>
#include <array>
#include <numeric>

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {
namespace {

struct DualPipeWay {
  double f, b, w, pairs, hops;
};

double longest(double p, double m, double f, double b, double w, double pair, double hop) {
  const double half = p / 2;
  const double steady = m * (p - 1) / p, turn = half - 1;
  const std::array ways{
      DualPipeWay{3 * half, 2 * half + 1, 3, m - half - 2, steady + 3 * turn},
      DualPipeWay{3 * half, half + 2, half + 2, m - half - 2, steady + 2 * turn},
      DualPipeWay{2 * half, 3 * half, 3, m - half - 2, steady + 4 * turn},
      DualPipeWay{2 * half, 2 * half + 1, half + 2, m - half - 2, steady + 3 * turn},
      DualPipeWay{2 * half, 5 * half - 2, 2 * half + 1, m - 3 * half, steady + 4 * turn},
      DualPipeWay{2 * half, 4 * half - 1, 3 * half, m - 3 * half, steady + 3 * turn},
      DualPipeWay{3 * half, 3 * half, 3 * half, m - 3 * half, steady + 2 * turn},
      DualPipeWay{3 * half, 4 * half - 1, 2 * half + 1, m - 3 * half, steady + 3 * turn},
  };
  double most = 0;
  for (const DualPipeWay& way : ways) most = std::max(most, way.f * f + way.b * b + way.w * w + way.pairs * pair + way.hops * hop);
  return most;
}

double sum_of_ranks(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

class DualPipeFormula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override {
    const int p = times.stages();
    double busiest = 0, f = 0, b = 0, w = 0;
    for (int s = 0; s < p; ++s) {
      f += sum_of_ranks(times.forward_s[s]);
      b += sum_of_ranks(times.backward_s[s]);
      w += sum_of_ranks(times.weight_s[s]);
      busiest = std::max(busiest, sum_of_ranks(times.forward_s[s]) + sum_of_ranks(times.backward_s[s]) + sum_of_ranks(times.weight_s[s]));
    }
    const double chunks = 2.0 * p;
    const double mean = (f + b + w) / chunks;
    const double hop = (sum_of_ranks(times.hop_s) - times.hop_s.back()) / (p - 1);
    // Each stage works on half of the micro-batches in either chunk.
    const double uneven = times.microbatches * (busiest / 2 - mean);
    return uneven + longest(p, times.microbatches, f / chunks, b / chunks, w / chunks, mean, hop);
  }
};

const PipelineFormulaRegistry::Registration<DualPipeFormula> dual_pipe_formula_registration("dualpipe");

}  // namespace
}  // namespace rehearse::sim

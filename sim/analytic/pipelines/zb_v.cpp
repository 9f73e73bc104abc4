// ZB-V. Of uniform chunks (F, B, W each, hops h) the busiest stage's 2m(F + B + W) and the longest way through the handcrafted order that
// is not work of that stage. Every row below is such a way, counted in F, B, W and h with q = p - 1: the order's own critical paths for
// m >= 2p - 1, found by listing them for p <= 8 and exact for hops shorter than half a chunk. The first, q(B - F), and its neighbours are 0
// where F = B = W and h = 0.
#include <algorithm>
#include <array>
#include <numeric>

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {
namespace {

struct ZbVWay {
  double f, b, w, h;
};

double longest_way(double q, double f, double b, double w, double h) {
  const std::array ways{
      ZbVWay{-q, q, 0, 4 * q - 2},
      ZbVWay{0, 2 * q, -2 * q, 6 * q - 2},
      ZbVWay{2 * q, -q, -q, 2 * q},
      ZbVWay{2 * q - 1, 1, -2 * q, 4 * q - 2},
      ZbVWay{2 * q, 0, -2 * q - 1, 4 * q},
      ZbVWay{q - 1, 1 - q, 0, 2 * (q - 1)},
      ZbVWay{-q, 1, q - 1, 2 * q},
      ZbVWay{1 - q, 0, q - 1, 2 * (q - 1)},
      ZbVWay{q - 1, q + 1, -2 * q, 6 * q - 2},
      ZbVWay{q, 0, -q, 4 * q},
      ZbVWay{q, q, -2 * q - 1, 6 * q},
      ZbVWay{0, 2 * q, -2 * q - 1, 6 * q},
      ZbVWay{-1, 1, 0, 4 * q - 2},
  };
  double most = 0;
  for (const ZbVWay& way : ways) most = std::max(most, way.f * f + way.b * b + way.w * w + way.h * h);
  return most;
}

double sum_of_stages(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

class ZbVFormula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override {
    const int p = times.stages();
    double busiest = 0, f = 0, b = 0, w = 0;
    for (int s = 0; s < p; ++s) {
      f += sum_of_stages(times.forward_s[s]);
      b += sum_of_stages(times.backward_s[s]);
      w += sum_of_stages(times.weight_s[s]);
      busiest =
          std::max(busiest, sum_of_stages(times.forward_s[s]) + sum_of_stages(times.backward_s[s]) + sum_of_stages(times.weight_s[s]));
    }
    const double chunks = 2.0 * p;
    const double hop = (sum_of_stages(times.hop_s) - times.hop_s.back()) / (p - 1);
    return times.microbatches * busiest + longest_way(p - 1, f / chunks, b / chunks, w / chunks, hop);
  }
};

const PipelineFormulaRegistry::Registration<ZbVFormula> zb_v_formula_registration("zb-v");

}  // namespace
}  // namespace rehearse::sim

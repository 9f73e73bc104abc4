// Interleaved 1F1B with v chunks per GPU: T = (m v + p - 1)(f + b) for uniform chunks (f, b of one chunk), the busiest stage deciding
// otherwise. Messages are hidden in the steady phase (a chunk's input arrives a whole turn of p slots early), but not while the pipeline
// fills and drains: the first micro-batch makes p v - 1 hops before its first backward, the last one as many after its last forward
// (equations 9, 11 and 23).
#include <algorithm>
#include <numeric>

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {
namespace {

double sum(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// p v - 1 hops one way.
double hops_s(const std::vector<double>& hop_s, int chunks) { return chunks * sum(hop_s) - hop_s.back(); }

class InterleavedFormula final : public PipelineFormula {
 protected:
  [[nodiscard]] double pipelined_s(const PipelineTimes& times) const override {
    const int p = times.stages();
    const int v = static_cast<int>(times.forward_s[0].size());
    double busiest = 0, all = 0;
    for (int s = 0; s < p; ++s) {
      const double busy = sum(times.forward_s[s]) + sum(times.backward_s[s]);
      busiest = std::max(busiest, busy);
      all += busy;
    }
    const double mean_chunk = all / (p * v);  // the fill passes through all stages, not only the busiest
    return times.microbatches * busiest + (p - 1) * mean_chunk + 2 * hops_s(times.hop_s, v);
  }
};

const PipelineFormulaRegistry::Registration<InterleavedFormula> interleaved_formula_registration("interleaved-1f1b");

}  // namespace
}  // namespace rehearse::sim

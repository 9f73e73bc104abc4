#include "sim/analytic/pipeline_formula.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

// Blocking messages as part of the chunk that sends them.
PipelineTimes with_blocking_inlined(const PipelineTimes& times) {
  PipelineTimes inlined = times;
  const int p = times.stages();
  const std::size_t chunks = times.forward_s[0].size();
  for (int s = 0; s < p; ++s) {
    for (std::size_t c = 0; c < chunks; ++c) {
      const bool sends_forward = s + 1 < p || c + 1 < chunks;
      const bool sends_backward = s > 0 || c > 0;
      if (sends_forward) inlined.forward_s[s][c] += times.hop_s[s];
      if (sends_backward) inlined.backward_s[s][c] += times.hop_s[(s + p - 1) % p];
    }
  }
  inlined.hop_s.assign(p, 0);
  inlined.blocking = false;
  return inlined;
}

}  // namespace

double PipelineFormula::seconds(const PipelineTimes& times) const {
  return times.blocking ? pipelined_s(with_blocking_inlined(times)) : pipelined_s(times);
}

bool is_uniform(const PipelineTimes& times) {
  constexpr double rounding = 1e-9;
  const auto alike = [](const PerChunk& chunks) {
    return std::ranges::all_of(chunks.all(), [&](double s) {
      const double first = chunks.all().front();
      return std::abs(s - first) <= rounding * first;
    });
  };
  return times.pairs.empty() && times.lead_forward_s.empty() && alike(times.forward_s) && alike(times.backward_s) && alike(times.weight_s);
}

}  // namespace rehearse::sim

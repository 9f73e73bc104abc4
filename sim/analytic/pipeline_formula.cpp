#include "sim/analytic/pipeline_formula.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

bool is_uniform(const PipelineTimes& times) {
  constexpr double rounding = 1e-9;
  const auto alike = [](const std::vector<std::vector<double>>& stages) {
    return std::ranges::all_of(stages, [&](const std::vector<double>& chunks) {
      const double first = stages.front().front();
      return std::ranges::all_of(chunks, [&](double s) { return std::abs(s - first) <= rounding * first; });
    });
  };
  const auto nothing = [&](const std::vector<std::vector<double>>& stages) {
    return std::ranges::all_of(stages, [&](const std::vector<double>& chunks) {
      return std::ranges::all_of(chunks, [&](double s) { return s <= rounding * times.forward_s.front().front(); });
    });
  };
  return times.pairs.empty() && nothing(times.early_forward_s) && nothing(times.early_backward_s) && times.lead_forward_s.empty() &&
         alike(times.forward_s) && alike(times.backward_s) && alike(times.weight_s);
}

PipelineTimes with_blocking_inlined(const PipelineTimes& times) {
  if (!times.blocking) return times;
  PipelineTimes inlined = times;
  const int p = times.stages();
  const std::size_t chunks = times.forward_s.front().size();
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

}  // namespace rehearse::sim

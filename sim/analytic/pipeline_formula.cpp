#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {

namespace {

PipelineTimes with_early_messages(PipelineTimes times) {
  for (std::size_t s = 0; s < times.early_s.size(); ++s) times.hop_s[s] -= times.early_s[s];
  times.early_s.clear();
  return times;
}

}  // namespace

PipelineTimes with_blocking_inlined(const PipelineTimes& times) {
  if (!times.blocking) return with_early_messages(times);
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
  return with_early_messages(std::move(inlined));
}

}  // namespace rehearse::sim

#include "sim/analytic/zero_bubble_formula.hpp"

#include <algorithm>

namespace rehearse::sim {

double zero_bubble_s(const PipelineTimes& given, int saved) {
  const PipelineTimes times = with_blocking_inlined(given);
  const int p = times.stages();
  const auto busy = [&](int s) { return times.forward_s[s].front() + times.backward_s[s].front() + times.weight_s[s].front(); };
  int busiest = 0;
  for (int s = 1; s < p; ++s) busiest = busy(s) > busy(busiest) ? s : busiest;
  double bubble = 0;
  for (int s = 0; s < p; ++s) {
    if (s != busiest) bubble += times.forward_s[s].front() + times.backward_s[s].front() - saved * times.weight_s[s].front();
    if (s + 1 < p) bubble += 2 * times.hop_s[s];
  }
  return times.microbatches * busy(busiest) + std::max(0.0, bubble);
}

}  // namespace rehearse::sim

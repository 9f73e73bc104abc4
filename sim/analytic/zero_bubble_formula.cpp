#include "sim/analytic/zero_bubble_formula.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

// With few micro-batches a stage cannot fill the time until its first micro-batch is back: from its first forward to the end of its first
// backward the round trip through the stages behind it, then everything that did not fit in before. Nor does it end before the last stage,
// which takes each micro-batch forth and back at once.
double round_trip_s(const PipelineTimes& times, int stage, int saved) {
  const int p = times.stages(), m = times.microbatches;
  double trip = 0;
  for (int s = stage; s < p; ++s) {
    trip += times.forward_s[s].front() + times.backward_s[s].front();
    if (s + 1 < p) trip += 2 * times.hop_s[s];
  }
  const int in_flight = std::min(m, saved * (p - stage) - (saved - 1));
  const double own =
      (m - in_flight) * times.forward_s[stage].front() + (m - 1) * times.backward_s[stage].front() + m * times.weight_s[stage].front();
  const double last = (m - 1) * (times.forward_s[p - 1].front() + times.backward_s[p - 1].front()) + times.weight_s[stage].front();
  return trip + std::max(own, last);
}

}  // namespace

double zero_bubble_s(const PipelineTimes& times, int saved) {
  const int p = times.stages();
  const auto busy = [&](int s) { return times.forward_s[s].front() + times.backward_s[s].front() + times.weight_s[s].front(); };
  int busiest = 0;
  for (int s = 1; s < p; ++s) busiest = busy(s) > busy(busiest) ? s : busiest;
  double bubble = 0;
  for (int s = 0; s < p; ++s) {
    if (s != busiest) bubble += times.forward_s[s].front() + times.backward_s[s].front() - saved * times.weight_s[s].front();
    if (s + 1 < p) bubble += 2 * times.hop_s[s];
  }
  double longest = times.microbatches * busy(busiest) + std::max(0.0, bubble);
  for (int s = 0; s < p; ++s) longest = std::max(longest, round_trip_s(times, s, saved));
  return longest;
}

}  // namespace rehearse::sim

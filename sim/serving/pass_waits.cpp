// How long prompts of a queue of passes take until they are whole: not only on average.
#include <algorithm>
#include <cmath>

#include "sim/serving/pass_queue.hpp"
#include "sim/serving/times_seen.hpp"

namespace rehearse::sim {
namespace {

constexpr int moments = 16;               // of a pass, at which one may come
constexpr int full_pass_bins = 512;       // what is told apart
constexpr double hardly_ever_met = 1e-8;  // of a state

}  // namespace

// One that waits for the end of a pass and then goes behind so many units, with those that come until its last pass begins.
double QueuedPasses::whole_after_s(double rest_s, int before) const {
  const int units = before + queue_.units, full = (units - 1) / queue_.most;
  const double until_last_s = rest_s + full * queue_.pass_s.back();
  const double turns = queue_.turns, behind = std::max(0.0, queue_.rate_per_s * until_last_s - (turns - 1) / (2 * turns));
  const double last = std::min<double>(queue_.most, units - full * queue_.most + behind * queue_.units), low = std::floor(last);
  const auto at = [&](double taken) { return queue_.pass_s[static_cast<std::size_t>(taken)]; };
  return until_last_s + at(low) + (last > low ? (last - low) * (at(low + 1) - at(low)) : 0);
}

// Of arrivals at random at `turns` instances the n-th comes here where n and those since the last one here are a whole number of turns; at
// any moment of a pass n - 1 have come before it as Poisson has it.
double QueuedPasses::first_token_within_s(double share) const {
  const double arrivals_per_s = queue_.rate_per_s * queue_.turns;
  TimesSeen times(queue_.pass_s.back() / full_pass_bins);
  for (std::size_t state = 0; state < states(); ++state) {
    if (met_[state] < hardly_ever_met) continue;
    const int units = there(state), left = units - taken(units);
    const double idles = units == 0 ? queue_.idle : 0, pass_s = queue_.pass_s[static_cast<std::size_t>(taken(units))];
    if (idles > 0) {
      const double alone_s = whole_after_s(0, 0);
      times.add(alone_s, alone_s, met_[state] * idles);
    }
    const double span_s = pass_s / moments, weight = met_[state] * (1 - idles) * arrivals_per_s * span_s;
    for (int moment = 0; moment < moments && weight > 0; ++moment) {
      const double came = arrivals_per_s * span_s * (moment + 0.5);
      double chance = std::exp(-came);
      int prompts_before = 0;
      for (int n = 0; n <= came || chance > hardly_ever_met; chance *= came / ++n) {
        if ((n + 1 + phase(state)) % queue_.turns != 0) continue;
        const double rest_s = pass_s - span_s * (moment + 0.5);
        const double takes_s = whole_after_s(rest_s, left + prompts_before++ * queue_.units);
        times.add(takes_s - span_s / 2, takes_s + span_s / 2, weight * chance);
      }
    }
  }
  return times.within_s(share);
}

}  // namespace rehearse::sim

// How long prompts of different lengths wait and take, on average and not only.
#include <algorithm>
#include <cmath>

#include "sim/serving/scaled_sums.hpp"
#include "sim/serving/times_seen.hpp"
#include "sim/serving/unlike_passes.hpp"

namespace rehearse::sim {
namespace {

constexpr int moments_of_means = 4, moments_of_shares = 12;  // of a pass, at which one may come
constexpr int bins_of_a_full_pass = 256;
constexpr double hardly_any_come = 1e-10;  // of the passes

// Chances of the sum of two numbers.
std::vector<double> chances_of_sum(const std::vector<double>& one, const std::vector<double>& other) {
  std::vector<double> out(one.size() + other.size() - 1, 0);
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] > 0) add_scaled(out.data() + i, other.data(), one[i], static_cast<int>(other.size()));
  }
  return out;
}

}  // namespace

// Calls see(rest_s, span_s, before): of prompts that come in so long a span of the passes alike, in whose middle a pass has so long to go,
// the chances of units before them, times their number. Who finds the instance idle waits for nothing.
template <class At>
void UnlikePasses::each_arrival(int moments, At see) const {
  const double all_per_s = queue_.rate_per_s * queue_.turns;
  for (int phase = 0; phase < queue_.turns; ++phase) {
    const std::vector<double>& met = met_.of(phase);
    see(0.0, 0.0, std::vector<double>{met[0] * queue_.idle});
    for (int takes = 0; takes <= queue_.most; ++takes) {
      const double pass_s = queue_.pass_s[static_cast<std::size_t>(takes)], span_s = pass_s / moments;
      std::vector<double> left{met[static_cast<std::size_t>(takes)] * (takes == 0 ? 1 - queue_.idle : 1)};
      if (takes == queue_.most) left.assign(met.begin() + takes, met.end());
      double all = 0;
      for (double& chance : left) all += chance *= all_per_s * span_s;
      if (all < hardly_any_come) continue;
      for (int moment = 0; moment < moments; ++moment) {
        const double passed_s = span_s * (moment + 0.5);
        see(pass_s - passed_s, span_s, chances_of_sum(left, before_own(passed_s, phase)));
      }
    }
  }
}

// One that waits for the end of a pass and whose last unit is so manieth then, with those that come until its last pass begins.
double UnlikePasses::whole_after_s(double rest_s, int units) const {
  const int full = (std::max(units, 1) - 1) / queue_.most;
  const double until_last_s = rest_s + full * queue_.pass_s.back(), turns = queue_.turns;
  const double behind = std::max(0.0, queue_.rate_per_s * until_last_s - (turns - 1) / (2 * turns));
  const double takes = std::min<double>(queue_.most, std::max(units, 1) - full * queue_.most + behind * queue_.mean_units),
               low = std::floor(takes);
  const auto at = [&](double number) { return queue_.pass_s[static_cast<std::size_t>(number)]; };
  return until_last_s + at(low) + (takes > low ? (takes - low) * (at(low + 1) - at(low)) : 0);
}

UnlikePasses::LastPasses UnlikePasses::put_waits() {
  LastPasses last_passes;
  double number = 0, waits_s = 0, whole_s = 0, time_s = 0, idle_s = 0, spells = 0;
  each_arrival(moments_of_means, [&](double rest_s, double, const std::vector<double>& before) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      number += before[i];
      waits_s += before[i] * begins_after_s(rest_s, static_cast<int>(i));
    }
    const std::vector<double> with_it = chances_of_sum(before, queue_.sizes);
    for (std::size_t i = 0; i < with_it.size(); ++i) {
      if (with_it[i] < hardly_any_come) continue;
      whole_s += with_it[i] * whole_after_s(rest_s, static_cast<int>(i));
      const int units = std::max<int>(1, static_cast<int>(i)), full = (units - 1) / queue_.most;
      const double until_last = rest_s / queue_.pass_s.back() + full, share = until_last - std::floor(until_last);
      const auto at = static_cast<std::size_t>(until_last), room = static_cast<std::size_t>(queue_.most - (units - full * queue_.most));
      if (last_passes.size() < at + 2) last_passes.resize(at + 2, std::vector<double>(static_cast<std::size_t>(queue_.most), 0));
      last_passes[at][room] += with_it[i] * (1 - share);
      last_passes[at + 1][room] += with_it[i] * share;
    }
  });
  each_pass(met_, [&](int units, int phase, double chance) {
    const double idles = units == 0 ? queue_.idle : 0;
    time_s += chance * (1 - idles) * queue_.pass_s[static_cast<std::size_t>(taken(units))];
    idle_s += chance * idles * (queue_.turns - phase) / (queue_.rate_per_s * queue_.turns);
    spells += chance * idles;
  });
  queue_s_ = waits_s / number;
  prefill_s_ = whole_s / number - queue_s_;
  busy_ = time_s / (time_s + idle_s);
  if (spells > 0) idle_each_s_ = idle_s / spells;
  for (auto& of_room : last_passes) {
    for (double& chance : of_room) chance /= number;
  }
  return last_passes;
}

double UnlikePasses::first_token_within_s(double share) const {
  TimesSeen times(queue_.pass_s.back() / bins_of_a_full_pass);
  each_arrival(moments_of_shares, [&](double rest_s, double span_s, const std::vector<double>& before) {
    const std::vector<double> with_it = chances_of_sum(before, queue_.sizes);
    for (std::size_t i = 0; i < with_it.size(); ++i) {
      if (with_it[i] < hardly_any_come) continue;
      const double whole_s = whole_after_s(rest_s, static_cast<int>(i));
      times.add(whole_s - span_s / 2, whole_s + span_s / 2, with_it[i]);
    }
  });
  return times.within_s(share);
}

}  // namespace rehearse::sim

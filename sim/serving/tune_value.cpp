#include "sim/serving/tune_value.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/serving/tune_formula.hpp"

namespace rehearse::sim {
namespace {

constexpr int octaves = 6, rates_an_octave = 2;
constexpr double exact_rate = 1.001;

// The highest rate that it carries, from one that it does.
void take_rate(TuneSides& sides, double carried, TunedDeployment& one) {
  const auto carries = [&](double rate) {
    sides.load.rate_per_s = rate;
    const TuneFormula formula(sides);
    const PromisedTimes times = formula.of(one);
    if (!formula.keeps(times)) return false;
    one.rate_per_s = rate;
    one.ttft_s = times.ttft_s;
    one.tpot_s = times.tpot_s;
    return true;
  };
  double low = carried, high = 2 * carried;
  if (!carries(low)) return;
  while (carries(high)) {
    low = high;
    high *= 2;
  }
  while (high > low * exact_rate) {
    const double middle = std::sqrt(low * high);
    (carries(middle) ? low : high) = middle;
  }
}

}  // namespace

std::vector<TunedDeployment> by_value(TuneSides& sides, double most_per_s, const std::function<std::vector<TunedDeployment>()>& cheapest) {
  const double asked = sides.load.rate_per_s;
  std::vector<TunedDeployment> all;
  std::set<PoolsKey> seen;
  for (int step = 0; most_per_s > 0 && step <= octaves * rates_an_octave; ++step) {
    const double rate = most_per_s * std::exp2(-static_cast<double>(step) / rates_an_octave);
    sides.load.rate_per_s = rate;
    std::set<std::string> kinds;
    for (TunedDeployment& one : cheapest()) {
      if (!kinds.insert(one.kind).second || !seen.insert(pools_key(one)).second) continue;
      take_rate(sides, rate, one);
      if (one.rate_per_s > 0) all.push_back(std::move(one));
    }
  }
  sides.load.rate_per_s = asked;
  std::ranges::stable_sort(all, std::ranges::greater{}, [](const TunedDeployment& one) { return one.rate_per_s / one.cost_per_s; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(sides.spec.keep)));
  return all;
}

}  // namespace rehearse::sim

#include "sim/serving/token_spread.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rehearse::sim {
namespace {

// Of a time above the least: mean and variance.
struct Above {
  double least_s = 0, mean_s = 0, variance = 0;
  // Share of them within so long (Wilson and Hilferty: the cube root of a gamma variable is normal).
  [[nodiscard]] double within(double seconds) const {
    if (seconds <= least_s) return 0;
    if (mean_s <= 0 || variance <= 0) return seconds >= least_s + mean_s ? 1 : 0;
    const double ninth = variance / (9 * mean_s * mean_s);
    const double deviations = (std::cbrt((seconds - least_s) / mean_s) - (1 - ninth)) / std::sqrt(ninth);
    return std::erfc(-deviations / std::numbers::sqrt2) / 2;
  }
};

// How much of the answers of others, of all lengths, an answer shares its passes with.
struct Overlap {
  double company = 0;   // the variance of the number beside it over its passes, for that at one moment
  double arrivals = 0;  // of the time that those who come meanwhile are there, for their number
};

Overlap overlap_of(double tokens, const std::vector<double>& others) {
  Overlap out;
  double all = 0;
  for (const double other : others) {
    const double low = std::min(tokens, other), high = std::max(tokens, other), ratio = other / tokens;
    out.company += low * low * (high - low / 3) / (tokens * tokens);
    out.arrivals += (ratio >= 1 ? 0.5 : ratio - ratio * ratio / 2) / static_cast<double>(others.size());
    all += other;
  }
  out.company /= all;
  return out;
}

double variance_of(const Company& others) {
  const double mean = others.mean([](double number) { return number; });
  return others.mean([&](double number) { return (number - mean) * (number - mean); });
}

}  // namespace

double token_within_s(const PoolFormula& pool, const LoadMoments& load, const PassQueue& queue, const PromptPasses& passes,
                      const Company& others, const std::vector<double>& answers_s) {
  if (answers_s.empty()) return 0;
  const std::vector<double> variances = passes.variances(pool.step_passes(), answers_s);
  const double beside = 1 + others.mean([](double number) { return number; }), variance = variance_of(others);
  const double longer = (pool.decode_s(beside + 1) - pool.decode_s(beside)) / pool.decode_s(beside);  // a pass by one more, as a share
  std::vector<Above> answers;
  for (std::size_t i = 0; i < answers_s.size(); ++i) {
    const double tokens = pool.step_passes()[i], a_token = 1 / load.steps[i], seconds = answers_s[i];
    const Overlap overlap = overlap_of(tokens, pool.step_passes());
    const double by_company_s = seconds * longer, together = queue.rate_per_s / queue.turns * seconds * overlap.arrivals;
    const double sum =
        variances[i] + by_company_s * by_company_s * variance * overlap.company + 2 * by_company_s * passes.by_prompt_s() * together;
    const double least_s = std::min(tokens * pool.decode_s(1.0), seconds);
    answers.push_back({least_s * a_token, (seconds - least_s) * a_token, sum * a_token * a_token});
  }
  double low = 0, high = 0;
  for (const Above& one : answers) high = std::max(high, one.least_s + one.mean_s + 20 * std::sqrt(one.variance));
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    double within = 0;
    for (const Above& one : answers) within += one.within(middle) / static_cast<double>(answers.size());
    (within < load.percentile ? low : high) = middle;
  }
  return high;
}

}  // namespace rehearse::sim

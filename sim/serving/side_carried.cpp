// What instances of both carry in all, and what a pool's instance gets of a rate.
#include <algorithm>
#include <cmath>

#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/side_formula.hpp"

namespace rehearse::sim {
namespace {

constexpr int carried_rounds = 20;  // of a bisection that gives a number to read

}  // namespace

// Of an instance; of those that do not go by passes by bisection, which is cheap.
double SideFormula::carried_of(std::size_t pool) const {
  const PoolFormula& formula = pools_[pool];
  if (queues_by_passes(formula, formula.load())) return carried_by_passes(formula, goes_by_ == GoesBy::caches ? 1 : turns());
  double low = 0, high = formula.prompts_of_a_pass(INFINITY, 0) / formula.prompt_s(0).seconds;
  for (int round = 0; round < carried_rounds; ++round) {
    const double rate = (low + high) / 2;
    (std::isfinite(sim::together(formula, formula.load(), rate, own_turns()).ttft_s) ? low : high) = rate;
  }
  return low;
}

// Until the first pool gets more than it carries.
double SideFormula::carried_per_s() const {
  double low = 0, high = buckets_.empty() ? 0 : INFINITY;
  for (const auto& bucket : buckets_) {
    if (bucket->share > 0) high = std::min(high, bucket->side->carried_per_s() / bucket->share);
  }
  if (!buckets_.empty()) return high;
  std::vector<double> carried;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    carried.push_back(carried_of(i));
    high += carried[i] * instances(i);
  }
  for (int round = 0; round < carried_rounds && pools_.size() > 1; ++round) {
    const double rate = (low + high) / 2;
    const std::vector<double> each = each_per_s(rate);
    bool carries = true;
    for (std::size_t i = 0; i < pools_.size(); ++i) carries = carries && each[i] <= carried[i];
    (carries ? low : high) = rate;
  }
  return pools_.size() > 1 ? low : high;
}

std::vector<double> SideFormula::each_per_s(double rate_per_s) const {
  std::vector<double> each(pools_.size(), 0);
  for (const auto& bucket : buckets_) {
    if (bucket->share <= 0) continue;
    const std::vector<double> of = bucket->side->each_per_s(rate_per_s * bucket->share);
    for (std::size_t i = 0; i < of.size(); ++i) each[bucket->places[i]] = of[i];
  }
  if (!buckets_.empty()) return each;
  const std::vector<double> shares = shares_together(rate_per_s);
  for (std::size_t i = 0; i < pools_.size(); ++i) each[i] = rate_per_s * shares[i] / instances(i);
  return each;
}

}  // namespace rehearse::sim

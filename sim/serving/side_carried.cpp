// What instances of both carry in all, and what a pool's instance gets of a rate.
#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/highest.hpp"
#include "sim/serving/side_formula.hpp"

namespace rehearse::sim {
namespace {

constexpr int carried_rounds = 20;  // of a bisection that gives a number to read

}  // namespace

// Of an instance; of those that do not go by passes by bisection, which is cheap.
double SideFormula::carried_of(std::size_t pool) const {
  const PoolFormula& formula = pools_[pool];
  if (queues_by_passes(formula, formula.load())) return carried_by_passes(formula, goes_by_ == GoesBy::caches ? 1 : turns());
  const auto carries = [&](double rate_per_s) {
    return std::isfinite(sim::together(formula, formula.load(), rate_per_s, own_turns()).ttft_s);
  };
  return highest(formula.prompts_of_a_pass(INFINITY, 0) / formula.prompt_s(0).seconds, carried_rounds, carries);
}

// Until the first pool gets more than it carries.
double SideFormula::carried_per_s() const {
  double most = buckets_.empty() ? 0 : INFINITY;
  for (const auto& bucket : buckets_) {
    if (bucket->share > 0) most = std::min(most, bucket->side->carried_per_s() / bucket->share);
  }
  if (!buckets_.empty()) return most;
  std::vector<double> carried;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    carried.push_back(carried_of(i));
    most += carried[i] * instances(i);
  }
  if (pools_.size() == 1) return most;
  return highest(most, carried_rounds,
                 [&](double rate_per_s) { return std::ranges::equal(each_per_s(rate_per_s), carried, std::less_equal()); });
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

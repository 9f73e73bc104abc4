#include "sim/validate/regret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace rehearse::sim {
namespace {

constexpr std::size_t tried = 5;

double measured_rate(const Outcome& outcome) { return outcome.ran.value_or(true) ? outcome.measured_tokens_per_s : 0; }

// 1 - the largest measured throughput of the first so many over `best`.
double regret_of(const std::vector<const Outcome*>& order, std::size_t first, double best) {
  double most = 0;
  for (std::size_t i = 0; i < std::min(first, order.size()); ++i) most = std::max(most, measured_rate(*order[i]));
  return 1 - most / best;
}

SweepRegret regret_of(const std::string& sweep, const std::vector<const Outcome*>& cases) {
  SweepRegret regret;
  regret.sweep = sweep;
  regret.cases = static_cast<int>(cases.size());
  std::vector<const Outcome*> order, likely;
  const Outcome* best = nullptr;
  for (const Outcome* one : cases) {
    regret.ran += measured_rate(*one) > 0 ? 1 : 0;
    if (measured_rate(*one) > 0 && (best == nullptr || measured_rate(*one) > measured_rate(*best))) best = one;
    if (one->surely_fits.value_or(true)) order.push_back(one);
    if (one->said_to_fit.value_or(true)) likely.push_back(one);
  }
  std::ranges::stable_sort(order, std::greater<>{}, &Outcome::predicted_tokens_per_s);
  std::ranges::stable_sort(likely, std::greater<>{}, [](const Outcome* one) { return one->predicted_tokens_per_s * one->chance; });
  if (order.empty()) order = likely;
  if (best == nullptr) return regret;
  regret.best = best->id;
  if (order.empty()) return regret;
  regret.picked = order.front()->id;
  regret.out_of_memory = !order.front()->ran.value_or(true);
  regret.regret = regret_of(order, 1, measured_rate(*best));
  regret.of_five = regret_of(order, tried, measured_rate(*best));
  return regret;
}

}  // namespace

SweepRegrets regrets_of(const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::vector<const Outcome*>> sweeps;
  for (const Outcome& outcome : outcomes) {
    const bool known = outcome.measured_tokens_per_s > 0 || outcome.ran == std::optional(false);
    if (!outcome.sweep.empty() && outcome.failed.empty() && known) sweeps[outcome.sweep].push_back(&outcome);
  }
  std::vector<SweepRegret> all;
  for (const auto& [sweep, cases] : sweeps) {
    SweepRegret regret = regret_of(sweep, cases);
    if (regret.ran >= 2) all.push_back(std::move(regret));
  }
  return all;
}

}  // namespace rehearse::sim

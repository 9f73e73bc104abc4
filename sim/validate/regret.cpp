#include "sim/validate/regret.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>

#include "sim/report/table.hpp"

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
  std::vector<const Outcome*> order;
  const Outcome* best = nullptr;
  for (const Outcome* one : cases) {
    regret.ran += measured_rate(*one) > 0 ? 1 : 0;
    if (measured_rate(*one) > 0 && (best == nullptr || measured_rate(*one) > measured_rate(*best))) best = one;
    if (one->said_to_fit.value_or(true)) order.push_back(one);
  }
  std::ranges::stable_sort(order, std::greater<>{}, &Outcome::predicted_tokens_per_s);
  if (best == nullptr) return regret;
  regret.best = best->id;
  if (order.empty()) return regret;
  regret.picked = order.front()->id;
  regret.out_of_memory = !order.front()->ran.value_or(true);
  regret.regret = regret_of(order, 1, measured_rate(*best));
  regret.of_five = regret_of(order, tried, measured_rate(*best));
  return regret;
}

std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::vector<SweepRegret> regrets_of(const std::vector<Outcome>& outcomes) {
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

void print_regrets(const std::vector<SweepRegret>& regrets, bool colour, std::ostream& out) {
  Table table{
      .columns = {{"sweep", Align::left}, {"cases"}, {"ran"}, {"regret"}, {"of five"}, {"picked", Align::left}, {"best", Align::left}}};
  table.bold_header = colour;
  double sum = 0, sum_of_five = 0;
  int out_of_memory = 0;
  for (const SweepRegret& one : regrets) {
    const std::string picked = one.picked.empty()  ? "none is said to fit"
                               : one.out_of_memory ? one.picked + " (out of memory)"
                                                   : one.picked;
    table.rows.push_back({one.sweep, fmt::format("{}", one.cases), fmt::format("{}", one.ran), percent_of(one.regret),
                          percent_of(one.of_five), picked, one.best == one.picked ? "" : one.best});
    sum += one.regret;
    sum_of_five += one.of_five;
    out_of_memory += one.out_of_memory ? 1 : 0;
  }
  if (regrets.empty()) return fmt::print(out, "{}\n", "no two cases share a sweep");
  table.print(out);
  const auto count = static_cast<double>(regrets.size());
  fmt::print(out, "\n{} sweeps: mean regret {}, of the best of five {}; {} picked plans ran out of memory\n", regrets.size(),
             percent_of(sum / count), percent_of(sum_of_five / count), out_of_memory);
}

}  // namespace rehearse::sim

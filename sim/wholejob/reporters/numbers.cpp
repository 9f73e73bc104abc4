#include "sim/wholejob/reporters/numbers.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rehearse::sim {
namespace {

// What each run makes of the ratio r of the sums, to first order: r + (amount - r count) / mean count. Their mean is r.
std::vector<double> linearised(const Quantity::Ratio& ratio, const std::vector<RunResult>& runs) {
  double amount = 0, count = 0;
  for (const RunResult& run : runs) {
    amount += ratio.amount(run);
    count += ratio.count(run);
  }
  const double r = amount / count, mean_count = count / static_cast<double>(runs.size());
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunResult& run : runs) values.push_back(r + (ratio.amount(run) - r * ratio.count(run)) / mean_count);
  return values;
}

}  // namespace

std::vector<Quantity> quantities_of(const WholeJobReport& report) {
  using Unit = Quantity::Unit;
  const FormulaResult& formula = report.formula;
  const double tokens = report.plan.tokens_per_step;
  const double steps_by_formula = report.plan.formula_input.steps;
  const auto per_s = [](double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; };
  return {
      {"ettr", "ETTR", Unit::share, [](const RunResult& run) { return run.ettr(); }, formula.ettr},
      {"total_s", "total time", Unit::seconds, [](const RunResult& run) { return to_s(run.wall); }, formula.total_s()},
      {"goodput_tokens_per_s", "goodput tokens/s", Unit::tokens_per_s,
       [=](const RunResult& run) { return per_s(tokens * static_cast<double>(run.steps), to_s(run.wall)); },
       per_s(tokens * steps_by_formula, formula.total_s())},
      {"steps", "steps", Unit::count, [](const RunResult& run) { return static_cast<double>(run.steps); }, steps_by_formula},
      {"lost_steps", "steps rolled back", Unit::count, [](const RunResult& run) { return static_cast<double>(run.lost_steps); }, {}},
      {"saves", "checkpoints", Unit::count, [](const RunResult& run) { return static_cast<double>(run.saves); },
       report.plan.formula_input.saves()},
      {"failures", "failures", Unit::count, [](const RunResult& run) { return static_cast<double>(run.all_failures()); }, formula.failures},
      {"mttf_s", "time between failures", Unit::seconds, [](const RunResult& run) { return run.mttf_s(); }, formula.mttf_s,
       Quantity::Ratio{[](const RunResult& run) { return to_s(run.wall); },
                       [](const RunResult& run) { return static_cast<double>(run.all_failures()); }}},
      {"slow", "times something was slow", Unit::count, [](const RunResult& run) { return static_cast<double>(run.slow); }, {}},
      {"waits", "waits for nodes", Unit::count, [](const RunResult& run) { return static_cast<double>(run.waits); }, {}},
      {"resized", "changes of dp", Unit::count, [](const RunResult& run) { return static_cast<double>(run.resized); }, {}},
      {"refused", "times it could not shrink", Unit::count, [](const RunResult& run) { return static_cast<double>(run.refused); }, {}},
      {"not_felt", "failures of idle nodes", Unit::count, [](const RunResult& run) { return static_cast<double>(run.not_felt); }, {}}};
}

std::optional<Statistics> statistics_of(const Quantity& quantity, const std::vector<RunResult>& runs) {
  std::vector<double> values;
  for (const RunResult& run : runs) {
    if (const auto value = quantity.of_run(run)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  Statistics all = statistics_of(std::move(values));
  if (quantity.ratio) {
    const Statistics sums = statistics_of(linearised(*quantity.ratio, runs));
    all.mean = sums.mean;
    all.low = sums.low;
    all.high = sums.high;
  }
  return within(all, 0, quantity.unit == Quantity::Unit::share ? 1 : INFINITY);
}

std::string clock_text(Ns at) {
  constexpr Ns second = 1'000'000'000, minute = 60, hour = 60 * minute, day = 24 * hour;
  const Ns s = at / second;
  return fmt::format("{} d {:02}:{:02}:{:02}", s / day, s % day / hour, s % hour / minute, s % minute);
}

}  // namespace rehearse::sim

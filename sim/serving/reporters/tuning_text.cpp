#include "sim/serving/reporters/tuning_text.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "config/quantity.hpp"
#include "sim/report/table.hpp"
#include "sim/serving/tune_keys.hpp"

namespace rehearse::sim {
namespace {

constexpr double tuning_hour_s = 3600;
constexpr std::size_t most_front_rows = 20;

std::string tuned_time(double seconds) {
  return std::isfinite(seconds) ? config::human_quantity(seconds, config::Dimension::time) : "overload";
}

std::string hourly(double per_s) { return fmt::format("{:.4g}", per_s * tuning_hour_s); }

// Whether deployments take several values of something of their pools of a role.
template <class Value>
bool varies(const std::vector<TunedDeployment>& all, Role role, Value value) {
  const Pool* first = nullptr;
  for (const TunedDeployment& one : all) {
    for (const Pool& pool : one.pools) {
      if (pool.role != role) continue;
      if (first != nullptr && value(pool) != value(*first)) return true;
      first = &pool;
    }
  }
  return false;
}

std::string plan_of_pool(const Pool& pool, const std::vector<TunedDeployment>& all) {
  std::string text = fmt::format("{} x tp {}", pool.instances, pool.plan.tp);
  if (pool.plan.pp > 1) text += fmt::format(" pp {}", pool.plan.pp);
  if (pool.plan.dp > 1) text += fmt::format(" dp {}", pool.plan.dp);
  if (varies(all, pool.role, [](const Pool& one) { return one.plan.ep; })) text += fmt::format(" ep {}", pool.plan.ep);
  if (varies(all, pool.role, [](const Pool& one) { return std::tuple(one.wanted, one.plan.precision.weights, one.plan.precision.kv); })) {
    text += fmt::format(" {}/{}/{}", name_of(pool.wanted), name_of(pool.plan.precision.weights), name_of(pool.plan.precision.kv));
  }
  if (varies(all, pool.role, [](const Pool& one) { return one.plan.precision.state; }))
    text += fmt::format(" states {}", name_of(pool.plan.precision.state));
  if (varies(all, pool.role, [](const Pool& one) { return one.habits.sequences; }))
    text += fmt::format(" sequences {}", pool.habits.sequences);
  if (varies(all, pool.role, [](const Pool& one) { return one.habits.tokens; })) text += fmt::format(" tokens {}", pool.habits.tokens);
  return text;
}

// The plans of a role with + between them, where there are several with their parts.
std::string deployment_text(const TunedDeployment& one, const ServingTuning& tuning, const std::vector<TunedDeployment>& all) {
  std::string text;
  for (std::size_t i = 0; i < one.pools.size(); ++i) {
    const Pool& pool = one.pools[i];
    if (i > 0) text += pool.role == one.pools[i - 1].role ? " + " : ", ";
    text += plan_of_pool(pool, all);
    const std::string& part = tuning.parts[pool.part];
    if (!part.empty() && std::ranges::count(one.pools, pool.role, &Pool::role) > 1) text += " on " + part;
    if (pool.longest_prompt > 0) text += fmt::format(" up to {} tokens", pool.longest_prompt);
  }
  return text;
}

std::string heading(const ServingTuning& tuning) {
  if (tuning.goals.front() == ServingGoal::goodput)
    return fmt::format("highest rate within the inventory: {:.4g} requests/s by formula", tuning.rate_per_s);
  if (tuning.goals.front() == ServingGoal::goodput_per_cost)
    return "most requests for their price, each at the highest rate within the promise";
  return fmt::format("least {} at {:.4g} requests/s", serving_goal_names().of(tuning.goals.front()), tuning.rate_per_s);
}

// Where a rate is asked for: against the formula's, or another's.
std::string simulated_text(const ServingTuning& tuning, const TunedDeployment& one, bool chosen) {
  std::string text = one.simulated->kept ? "kept" : "not kept";
  if (one.below_per_s > 0) {
    text = "carries less than another";
  } else if (is_of_rates(tuning.goals.front())) {
    constexpr double rounding = 1 - 1e-9;
    const double carried = one.simulated->goodput_per_s;
    text = carried >= tuning.formula_per_s(one) * rounding ? "kept at the formula's rate"
           : carried > 0                                   ? "kept below the formula's rate"
                                                           : "not kept at any rate";
  }
  return text + (chosen ? ", chosen" : "");
}

Table best_table(const ServingTuning& tuning) {
  const bool rates = is_of_rates(tuning.goals.front()), by_cost = tuning.goals.front() == ServingGoal::goodput_per_cost;
  Table table{.columns = {{"deployment", Align::left},
                          {"instances (prefill, decode)", Align::left},
                          {"GPUs"},
                          {"cost per hour"},
                          {"TTFT by formula"},
                          {"TPOT"},
                          {"TTFT within"},
                          {"TPOT within"},
                          {"simulated", Align::left}}};
  if (by_cost) table.columns.push_back({"requests/s by formula"});
  if (rates) table.columns.push_back({"requests/s"});
  if (by_cost) table.columns.push_back({"requests for 1"});
  const bool twins = std::ranges::any_of(tuning.best, [](const TunedDeployment& one) { return one.twins > 0; });
  if (twins) table.columns.push_back({"twins", Align::left});
  for (std::size_t i = 0; i < tuning.best.size(); ++i) {
    const TunedDeployment& one = tuning.best[i];
    const bool known = one.simulated.has_value();
    const auto share = [&](double value) { return known && value >= 0 ? fmt::format("{:.1f} %", 100 * value) : ""; };
    table.rows.push_back({one.kind, deployment_text(one, tuning, tuning.best), std::to_string(one.gpus), hourly(one.cost_per_s),
                          tuned_time(one.ttft_s), tuned_time(one.tpot_s), share(known ? one.simulated->attained_ttft : -1),
                          share(known ? one.simulated->attained_tpot : -1), known ? simulated_text(tuning, one, tuning.chosen == i) : ""});
    if (by_cost) table.rows.back().push_back(fmt::format("{:.4g}", one.rate_per_s));
    const auto rate_text = [&](double times) {
      if (!known) return fmt::format("{:.5g}", times * one.rate_per_s);
      if (one.below_per_s > 0) return fmt::format("< {:.5g}", times * one.below_per_s);
      if (std::isinf(one.simulated->goodput_per_s)) return std::string("too few requests");
      return fmt::format("{:.5g}", times * one.simulated->goodput_per_s);
    };
    if (rates) table.rows.back().push_back(known ? rate_text(1) : "");
    if (by_cost) table.rows.back().push_back(rate_text(1 / one.cost_per_s));
    if (twins) table.rows.back().push_back(one.twins > 0 ? fmt::format("{}: {}", one.twins, fmt::join(one.without_effect, ", ")) : "");
  }
  return table;
}

Table front_table_of(const ServingTuning& tuning) {
  Table table{.columns = {{"cost per hour"},
                          {"GPUs"},
                          {"output tokens/s per GPU"},
                          {"TTFT"},
                          {"TPOT"},
                          {"deployment", Align::left},
                          {"instances (prefill, decode)", Align::left}}};
  for (std::size_t i = 0; i < std::min(most_front_rows, tuning.front.size()); ++i) {
    const TunedDeployment& one = tuning.front[i];
    table.rows.push_back({hourly(one.cost_per_s), std::to_string(one.gpus), fmt::format("{:.4g}", tuning.output_tokens_per_s / one.gpus),
                          tuned_time(one.ttft_s), tuned_time(one.tpot_s), one.kind, deployment_text(one, tuning, tuning.front)});
  }
  return table;
}

void print_front(const ServingTuning& tuning, bool colour, std::ostream& out) {
  std::vector<std::string_view> goals;
  for (const ServingGoal goal : tuning.goals) goals.push_back(serving_goal_names().of(goal));
  if (goals.size() == 1) goals.emplace_back("cost");
  fmt::print(out, "\nno deployment beats these in every goal ({}), by formula:\n", fmt::join(goals, ", "));
  Table table = front_table_of(tuning);
  table.bold_header = colour;
  table.print(out);
  if (tuning.front.size() > most_front_rows) fmt::print(out, "... and {} more (--json has them)\n", tuning.front.size() - most_front_rows);
}

}  // namespace

void print_sweep(const TuneSweep& sweep, bool colour, std::ostream& out) {
  fmt::print(out, "\nthe optimum for each value of {}:\n", sweep.key);
  Table table{.columns = {{"value", Align::left},
                          {"deployment", Align::left},
                          {"instances (prefill, decode)", Align::left},
                          {"GPUs"},
                          {"requests/s"},
                          {"cost per hour"},
                          {"TTFT"},
                          {"TPOT"},
                          {"runner-up", Align::left},
                          {"worse by"}}};
  table.bold_header = colour;
  for (const TunedPoint& point : sweep.points) {
    const ServingTuning& tuning = *point.tuning;
    table.rows.push_back({point.value, "none"});
    std::vector<std::string>& row = table.rows.back();
    row.resize(table.columns.size());
    if (!tuning.chosen) continue;
    const TunedDeployment& one = tuning.best[*tuning.chosen];
    row = {point.value,
           one.kind,
           deployment_text(one, tuning, tuning.best),
           std::to_string(one.gpus),
           fmt::format("{:.4g}", tuning.carried_per_s(one)),
           hourly(one.cost_per_s),
           tuned_time(one.ttft_s),
           tuned_time(one.tpot_s),
           "",
           ""};
    if (const auto next = runner_up(tuning)) {
      row[8] = fmt::format("{}, {}", next->deployment->kind, deployment_text(*next->deployment, tuning, tuning.best));
      row[9] = fmt::format("{}{:.1f} %", next->at_least ? "> " : "", 100 * next->worse_by);
    }
  }
  table.print(out);
}

void print_tuning(const ServingTuning& tuning, bool colour, std::ostream& out) {
  fmt::print(out, "\n{}\n", heading(tuning));
  if (!tuning.best.empty()) {
    Table table = best_table(tuning);
    table.bold_header = colour;
    table.print(out);
  }
  fmt::print(out, "{} plans of an instance ({} refused, {} too large for their GPUs, {} twins of others)", tuning.plans, tuning.refused,
             tuning.unfit, tuning.twins);
  if (tuning.pairs > 0) fmt::print(out, "; {} of {} pairs looked at", tuning.looked_at, tuning.pairs);
  if (std::isfinite(tuning.bound_per_s)) fmt::print(out, ": the others cost {} per hour at least", hourly(tuning.bound_per_s));
  if (tuning.near_misses > 0) fmt::print(out, "; {} others beside them were simulated", tuning.near_misses);
  fmt::print(out, "\n");
  if (!tuning.front.empty()) print_front(tuning, colour, out);
}

}  // namespace rehearse::sim

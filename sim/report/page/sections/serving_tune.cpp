// What `tune` of a job that serves has found: the best deployments by formula, what the simulation says of them, and the front of several
// goals.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/report/page/front_chart.hpp"
#include "sim/report/page/tune_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_deployments_drawn = 400, most_deployments_listed = 200;

bool has_deployments(const Input& input) {
  return input.has("/kind") && input.at("/kind") == "serving" && input.has("/tune/best") && input.has("/tune/goals");
}

// Of a goal: where its value stands in a deployment.
struct DeploymentGoal {
  const char *goal, *key, *words;
  Unit unit;
};
constexpr DeploymentGoal deployment_goals[] = {{"cost", "cost_per_s", "cost", Unit::hourly},
                                               {"gpus", "gpus", "GPUs", Unit::count},
                                               {"ttft", "ttft_s", "TTFT", Unit::time},
                                               {"tpot", "tpot_s", "TPOT", Unit::time}};

// "2 prefill x tp 4 on rich, ..."
std::string pools_of(const Input& input, const std::string& at) {
  std::vector<std::string> out;
  for (const Json& pool : input.at(at + "/pools")) {
    std::string text = fmt::format("{} x tp {}", pool.at("instances").get<int>(), pool.at("tp").get<int>());
    for (const char* key : {"pp", "dp", "ep"}) {
      if (pool.at(key).get<int>() > 1) text += fmt::format(" {} {}", key, pool.at(key).get<int>());
    }
    const std::string role = pool.at("role").get<std::string>(), part = input.at("/tune/parts").at(pool.at("part").get<std::size_t>());
    out.push_back(fmt::format("{}{}{}", role == "both" ? "" : role + " ", text, part.empty() ? "" : " on " + part));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string facts_of_deployments(const Input& input) {
  const bool rates = input.at("/tune/goal") == "goodput";
  std::string out = "<dl class=\"facts\">\n";
  out += fact(rates ? "highest rate by formula, requests/s" : "requests/s", number(input.result, "/tune/requests_per_s", Unit::plain));
  if (input.at("/tune/chosen").is_number()) {
    const std::string at = fmt::format("/tune/best/{}", input.at("/tune/chosen").get<std::size_t>());
    out += fact("chosen", escaped(pools_of(input, at)));
    out += fact("cost", number(input.result, at + "/cost_per_s", Unit::hourly));
    out += fact("GPUs", number(input.result, at + "/gpus", Unit::count));
  }
  out += fact("plans of an instance", number(input.result, "/tune/plans", Unit::count));
  if (input.at("/tune/pairs") > 0) {
    out += fact("pairs of plans", number(input.result, "/tune/pairs", Unit::count));
    out += fact("looked at", number(input.result, "/tune/pairs_looked_at", Unit::count));
  }
  if (input.at("/tune/others_cost_per_s_at_least").is_number())
    out += fact("the others cost at least", number(input.result, "/tune/others_cost_per_s_at_least", Unit::hourly));
  return out + "</dl>\n";
}

std::string best_deployments(const Input& input) {
  const bool rates = input.at("/tune/goal") == "goodput";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < input.at("/tune/best").size(); ++i) {
    const std::string at = fmt::format("/tune/best/{}", i), simulated = at + "/simulated";
    const auto cell = [&](const std::string& where, Unit unit) { return number(input.result, where, unit); };
    const bool known = input.has(simulated);
    std::string verdict = !known ? "" : input.at(simulated + "/promise_kept") == true ? "kept" : "not kept";
    if (input.at("/tune/chosen") == i) verdict += verdict.empty() ? "chosen" : ", chosen";
    rows.push_back({escaped(pools_of(input, at))});
    for (const DeploymentGoal& goal : deployment_goals) rows.back().push_back(cell(fmt::format("{}/{}", at, goal.key), goal.unit));
    rows.back().insert(rows.back().end(),
                       {cell(simulated + "/within_ttft", Unit::percent), cell(simulated + "/within_tpot", Unit::percent)});
    if (rates) rows.back().push_back(cell(simulated + "/goodput_requests_per_s", Unit::plain));
    rows.back().push_back(std::move(verdict));
  }
  std::vector<Column> columns{{"instances", true}};
  for (const DeploymentGoal& goal : deployment_goals) columns.push_back({goal.words});
  columns.insert(columns.end(), {{"TTFT kept"}, {"TPOT kept"}});
  if (rates) columns.push_back({"requests/s"});
  columns.push_back({"promise", true});
  return table("Best first: cost and times by formula, at the promise's percentile; behind them what the simulation says", columns, rows);
}

class ServingTune final : public Section {
 public:
  [[nodiscard]] int order() const override { return 15; }
  [[nodiscard]] std::string_view title() const override { return "The best deployments"; }
  [[nodiscard]] bool applies(const Input& input) const override { return has_deployments(input); }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::string out;
    for (const Json& verdict : input.at("/verdicts"))
      out += fmt::format("<p><span class=\"bad\">No</span>: {}.</p>\n", escaped(verdict.get<std::string>()));
    for (const Json& note : input.at("/notes")) out += fmt::format("<p>Note: {}.</p>\n", escaped(note.get<std::string>()));
    out += facts_of_deployments(input);
    if (input.has("/tune/best/0")) out += best_deployments(input);
    return out;
  }
};

class ServingFront final : public Section {
 public:
  [[nodiscard]] int order() const override { return 16; }
  [[nodiscard]] std::string_view title() const override { return "Deployments that no other beats in every goal"; }
  [[nodiscard]] bool applies(const Input& input) const override { return has_deployments(input) && input.has("/tune/front/0"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::size_t all = input.at("/tune/front").size();
    std::string out = fmt::format("<p class=\"sub\">The exact Pareto front by formula: {} deployments that keep the promise.",
                                  worked_out(static_cast<double>(all), Unit::count));
    if (all > most_deployments_listed)
      out += fmt::format(" Of them {} are listed, evenly chosen; result.json has all.", most_deployments_listed);
    out += "</p>\n";
    const std::vector<DeploymentGoal> goals = goals_of_front(input);
    for (std::size_t i = 1; i < goals.size(); ++i) out += chart(input, goals.front(), goals[i], goals.size() == 2);
    return out + listed(input);
  }

 private:
  // With one goal the other is cost.
  static std::vector<DeploymentGoal> goals_of_front(const Input& input) {
    std::vector<std::string> names = input.at("/tune/goals").get<std::vector<std::string>>();
    if (names.size() == 1) names.emplace_back("cost");
    std::vector<DeploymentGoal> goals;
    for (const std::string& name : names) {
      for (const DeploymentGoal& goal : deployment_goals) {
        if (goal.goal == name) goals.push_back(goal);
      }
    }
    return goals;
  }

  static FrontAxis axis(const Input& input, const std::vector<std::size_t>& which, const DeploymentGoal& goal) {
    FrontAxis out{goal.words, goal.unit, goal.unit, {}};
    for (const std::size_t i : which) out.values.push_back(input.at(fmt::format("/tune/front/{}/{}", i, goal.key)).get<double>());
    return out;
  }

  static std::string chart(const Input& input, const DeploymentGoal& across, const DeploymentGoal& up, bool line) {
    const std::vector<std::size_t> which = evenly(input.at("/tune/front").size(), most_deployments_drawn);
    std::vector<std::string> names;
    for (const std::size_t i : which) names.push_back(pools_of(input, fmt::format("/tune/front/{}", i)));
    return front_chart(axis(input, which, across), axis(input, which, up), names, line);
  }

  static std::string listed(const Input& input) {
    std::vector<std::vector<std::string>> rows;
    for (const std::size_t i : evenly(input.at("/tune/front").size(), most_deployments_listed)) {
      const std::string at = fmt::format("/tune/front/{}", i);
      std::vector<std::string>& row = rows.emplace_back();
      for (const DeploymentGoal& goal : deployment_goals)
        row.push_back(number(input.result, fmt::format("{}/{}", at, goal.key), goal.unit));
      row.push_back(escaped(pools_of(input, at)));
    }
    std::vector<Column> columns;
    for (const DeploymentGoal& goal : deployment_goals) columns.push_back({goal.words});
    columns.push_back({"instances", true});
    return table("Deployments of the front, by the first goal", columns, rows);
  }
};

const SectionRegistry::Registration<ServingTune> serving_tune_registration("serving-tune");
const SectionRegistry::Registration<ServingFront> serving_front_registration("serving-front");

}  // namespace
}  // namespace rehearse::sim::page

// The best plans that a search found: what they are worth, where their steps go, and what the simulation says of them.
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/step_results.hpp"
#include "sim/report/page/tune_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_plan_bars = 40;

std::string plan_at(std::size_t i) { return fmt::format("/tune/best/{}", i); }

bool any_has(const Json& plans, const char* key) {
  return std::ranges::any_of(plans, [&](const Json& plan) { return plan.contains(key); });
}

bool has(const std::vector<std::string>& goals, const char* goal) { return std::ranges::find(goals, goal) != goals.end(); }

std::string facts_of_search(const Input& input) {
  std::string out = "<dl class=\"facts\">\n";
  const std::vector<std::string> goals = goals_of(input);
  for (const std::string& goal : goals)
    out += fact(fmt::format("{} {}", goal == goals.front() ? "best" : "its", words_of_goal(goal)),
                number(input.result, plan_at(0) + "/goals/" + goal, unit_of_goal(goal)));
  if (!has(goals, "step")) out += fact("its step", number(input.result, plan_at(0) + "/step_s", Unit::milliseconds));
  if (!has(goals, "mfu")) out += fact("its MFU", number(input.result, plan_at(0) + "/mfu", Unit::percent));
  if (!has(goals, "memory")) out += fact("its memory", number(input.result, plan_at(0) + "/needed_bytes", Unit::bytes));
  out += fact("points in all", number(input.result, "/tune/counts/points", Unit::count));
  out += fact("evaluated", number(input.result, "/tune/counts/evaluated", Unit::count));
  return out + "</dl>\n";
}

std::string bars_of_plans(const Input& input) {
  const Json& plans = input.at("/tune/best");
  std::vector<Mark> marks;
  std::vector<Bar> bars;
  double most_s = 0;
  for (std::size_t i = 0; i < std::min(plans.size(), most_plan_bars); ++i) {
    Bar& bar = bars.emplace_back(Bar{fmt::format("plan {}", i + 1), {}});
    for (const auto& [phase, seconds] : plans[i].at("phases_s").items()) {
      const Mark mark{css_of_words(words_of_key(phase)), words_of_key(phase)};
      bar.pieces.push_back({mark.css, mark.name, seconds.get<double>()});
      if (seconds > 0 && std::ranges::find(marks, mark.css, &Mark::css) == marks.end()) marks.push_back(mark);
    }
    most_s = std::max(most_s, plans[i].at("step_s").get<double>());
  }
  return legend(marks) +
         stacked_bars("Where the steps of the best plans go", bars, most_s, [](double s) { return in_words(s, Unit::milliseconds); });
}

std::string simulated(const Input& input, std::size_t i) {
  const Json& plan = input.at(plan_at(i));
  if (plan.contains("simulation_refused")) return "refused";
  if (plan.contains("simulated_shortage")) return "does not fit";
  return number(input.result, plan_at(i) + "/simulated_step_s", Unit::milliseconds);
}

// "3: overlap.tp, cuda_graphs"
std::string twins_of(const Json& plan) {
  if (!plan.contains("twins")) return "";
  const auto keys = plan.at("without_effect").get<std::vector<std::string>>();
  return escaped(fmt::format("{}: {}", plan.at("twins").get<std::uint64_t>(), fmt::join(keys, ", ")));
}

std::string table_of_plans(const Input& input) {
  const Json& plans = input.at("/tune/best");
  const std::vector<std::string> goals = goals_of(input);
  const bool confirmed = any_has(plans, "simulated_step_s") || any_has(plans, "simulation_refused");
  const bool whole = any_has(plans, "checkpoint_interval_steps");
  std::vector<Column> columns{{"plan"}};
  for (const std::string& goal : goals) columns.push_back({words_of_goal(goal)});
  columns.push_back({"worse by"});
  if (!has(goals, "step")) columns.push_back({"step"});
  if (confirmed) columns.insert(columns.end(), {{"simulated"}, {"rank simulated"}});
  if (whole) columns.push_back({"checkpoint every (steps)"});
  if (!has(goals, "memory")) columns.push_back({"memory"});
  columns.insert(columns.end(), {{"what it is", true}, {"held back by", true}});
  const bool twins = any_has(plans, "twins");
  if (twins) columns.push_back({"twins: the same but for keys without effect", true});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    std::vector<std::string> row{fmt::format("{}", i + 1)};
    for (const std::string& goal : goals) row.push_back(number(input.result, plan_at(i) + "/goals/" + goal, unit_of_goal(goal)));
    row.push_back(worse(input, plan_at(i) + "/goals/" + goals.front()));
    if (!has(goals, "step")) row.push_back(number(input.result, plan_at(i) + "/step_s", Unit::milliseconds));
    if (confirmed) row.insert(row.end(), {simulated(input, i), number(input.result, plan_at(i) + "/simulated_rank", Unit::count)});
    if (whole) row.push_back(number(input.result, plan_at(i) + "/checkpoint_interval_steps", Unit::count));
    if (!has(goals, "memory")) row.push_back(number(input.result, plan_at(i) + "/needed_bytes", Unit::bytes));
    row.push_back(escaped(plans[i].at("plan").get<std::string>()));
    row.push_back(escaped(plans[i].at("held_back_by").get<std::string>()));
    if (twins) row.push_back(twins_of(plans[i]));
    rows.push_back(std::move(row));
  }
  return table("The best plans, best first", columns, rows);
}

// What the simulation has against plans of the table.
std::string objections(const Input& input) {
  std::string out;
  const Json& plans = input.at("/tune/best");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const auto& [key, words] : {std::pair("simulation_refused", "the simulation refuses it: "), std::pair("simulated_shortage", "")}) {
      if (plans[i].contains(key))
        out += fmt::format("<p><span class=\"bad\">Plan {}</span>: {}{}</p>\n", i + 1, words, escaped(plans[i].at(key).get<std::string>()));
    }
  }
  for (const Json& line : input.at("/tune/order_changes"))
    out += fmt::format("<p>The simulation puts them in another order: {}</p>\n", escaped(line.get<std::string>()));
  return out;
}

// What to give to any command for the best plan.
std::string settings(const Input& input) {
  std::string lines;
  for (const Json& setting : input.at(plan_at(0) + "/set")) lines += fmt::format("--set '{}'\n", escaped(setting.get<std::string>()));
  return "<h3>Settings of the best plan</h3>\n" + frame("Settings of the best plan", "<pre>" + lines + "</pre>");
}

std::string nearest(const Input& input) {
  const Json& counts = input.at("/tune/counts");
  if (counts.at("decided") < counts.at("points"))
    return "<p><span class=\"bad\">No plan that fits</span> was found before the search was ended.</p>\n";
  if (!input.has("/tune/nearest/plan")) return "<p><span class=\"bad\">No plan fits</span>: every point is refused.</p>\n";
  const std::string plan = escaped(input.at("/tune/nearest/plan").get<std::string>());
  if (!input.has("/tune/nearest/lacks_bytes"))
    return fmt::format("<p><span class=\"bad\">No plan fits</span>: the nearest, {}, needs more memory than its hosts have.</p>\n", plan);
  return fmt::format("<p><span class=\"bad\">No plan fits</span>: the nearest, {}, lacks {} of a GPU's memory.</p>\n", plan,
                     number(input.result, "/tune/nearest/lacks_bytes", Unit::bytes));
}

class TuneBest final : public Section {
 public:
  [[nodiscard]] int order() const override { return 15; }
  [[nodiscard]] std::string_view title() const override { return "The best plans"; }
  [[nodiscard]] bool applies(const Input& input) const override { return has_search(input); }
  [[nodiscard]] std::string html(const Input& input) const override {
    if (!input.has("/tune/best/0")) return nearest(input);
    return facts_of_search(input) + table_of_plans(input) + objections(input) + bars_of_plans(input) + settings(input);
  }
};

const SectionRegistry::Registration<TuneBest> tune_best_registration("tune-best");

}  // namespace
}  // namespace rehearse::sim::page

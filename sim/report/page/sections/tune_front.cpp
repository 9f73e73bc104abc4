// The Pareto front of several goals: the first against each of the others, and the plans.
#include <algorithm>

#include "sim/report/page/front_chart.hpp"
#include "sim/report/page/tune_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_front_points = 400, most_front_rows = 200;

FrontAxis axis_of(const Input& input, const std::vector<std::size_t>& plans, const std::string& goal) {
  FrontAxis axis{words_of_goal(goal), short_unit_of_goal(goal), unit_of_goal(goal), {}};
  for (const std::size_t i : plans) axis.values.push_back(input.at(fmt::format("/tune/front/{}/goals/{}", i, goal)).get<double>());
  return axis;
}

std::string chart_of(const Input& input, const std::string& across, const std::string& up, bool line) {
  const std::vector<std::size_t> plans = evenly(input.at("/tune/front").size(), most_front_points);
  std::vector<std::string> names;
  for (const std::size_t i : plans) names.push_back(input.at(fmt::format("/tune/front/{}/plan", i)).get<std::string>());
  return front_chart(axis_of(input, plans, across), axis_of(input, plans, up), names, line);
}

std::string front_table(const Input& input, const std::vector<std::string>& goals) {
  std::vector<Column> columns;
  columns.reserve(goals.size() + 1);
  for (const std::string& goal : goals) columns.push_back({words_of_goal(goal)});
  columns.push_back({"plan", true});
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : evenly(input.at("/tune/front").size(), most_front_rows)) {
    auto& row = rows.emplace_back();
    for (const std::string& goal : goals)
      row.push_back(number(input.result, fmt::format("/tune/front/{}/goals/{}", i, goal), unit_of_goal(goal)));
    row.push_back(escaped(input.at(fmt::format("/tune/front/{}/plan", i)).get<std::string>()));
  }
  return table("Plans of the front, by the first goal", columns, rows);
}

class TuneFront final : public Section {
 public:
  [[nodiscard]] int order() const override { return 16; }
  [[nodiscard]] std::string_view title() const override { return "Plans that no other beats in every goal"; }
  [[nodiscard]] bool applies(const Input& input) const override { return has_search(input) && input.has("/tune/front/0"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::vector<std::string> goals = goals_of(input);
    const std::size_t plans = input.at("/tune/front").size();
    std::string out =
        fmt::format("<p class=\"sub\">The exact Pareto front: {} plans.", worked_out(static_cast<double>(plans), Unit::count));
    if (plans > most_front_rows)
      out += fmt::format(" Of them {} are listed and {} drawn, evenly chosen; tune.csv has all.", most_front_rows,
                         std::min(plans, most_front_points));
    out += "</p>\n";
    for (std::size_t i = 1; i < goals.size(); ++i) out += chart_of(input, goals.front(), goals[i], goals.size() == 2);
    return out + front_table(input, goals);
  }
};

const SectionRegistry::Registration<TuneFront> tune_front_registration("tune-front");

}  // namespace
}  // namespace rehearse::sim::page

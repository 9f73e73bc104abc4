// The Pareto front of several goals: the first against each of the others, and the plans.
#include <algorithm>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/tune_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_front_points = 400, most_front_rows = 200;
constexpr double front_height = 300;

double goal_of_front(const Input& input, std::size_t i, const std::string& goal) {
  return input.at(fmt::format("/tune/front/{}/goals/{}", i, goal)).get<double>();
}

// All values, with room around them.
Scale scale_of(const Input& input, const std::vector<std::size_t>& plans, const std::string& goal, double left, double right) {
  double least = goal_of_front(input, plans.front(), goal), most = least;
  for (const std::size_t i : plans) {
    least = std::min(least, goal_of_front(input, i, goal));
    most = std::max(most, goal_of_front(input, i, goal));
  }
  const double room = most > least ? (most - least) / 20 : std::max(1e-12, most / 20);
  return {least - room, most + room, left, right};
}

// Round numbers on an axis are round in the unit that they are written in.
struct AxisUnit {
  double size = 1;
  const char* name = "";
  [[nodiscard]] Scale of(const Scale& scale) const { return {scale.from / size, scale.to / size, scale.left, scale.right}; }
  [[nodiscard]] Words words() const {
    return [*this](double value) { return fmt::format("{:g}{}{}", value, *name == 0 ? "" : " ", name); };
  }
};

AxisUnit axis_unit(const std::string& goal, double most) {
  const Unit unit = short_unit_of_goal(goal);
  if (unit == Unit::bytes) return {1LL << 30, "GiB"};
  if (unit == Unit::percent) return {0.01, "%"};
  if (unit != Unit::time) return {};
  if (most > 2 * 86400) return {86400, "days"};
  return most > 7200 ? AxisUnit{3600, "h"} : most > 2 ? AxisUnit{1, "s"} : AxisUnit{1e-3, "ms"};
}

// A plan for each circle; where there are two goals, also the line that no plan is beyond.
std::string front_chart(const Input& input, const std::string& across, const std::string& up, bool line) {
  const std::vector<std::size_t> plans = evenly(input.at("/tune/front").size(), most_front_points);
  const Scale x = scale_of(input, plans, across, 80, chart_width - 40), y = scale_of(input, plans, up, front_height, 24);
  const AxisUnit across_in = axis_unit(across, x.to), up_in = axis_unit(up, std::max(y.from, y.to));
  std::string out = axis_below(across_in.of(x), 24, front_height, across_in.words()) + axis_left(up_in.of(y), x.right, up_in.words());
  out += label(70, 14, words_of_goal(up), "strong") + label(x.right, front_height + 34, words_of_goal(across), "end strong") + "\n";
  std::string path, circles;
  for (const std::size_t i : plans) {
    const std::string px = coordinate(x(goal_of_front(input, i, across))), py = coordinate(y(goal_of_front(input, i, up)));
    path += path.empty() ? fmt::format("M{} {}", px, py) : fmt::format("H{}V{}", px, py);
    circles += fmt::format("<circle class=\"c-0\" cx=\"{}\" cy=\"{}\" r=\"4\"><title>{}, {}: {}</title></circle>\n", px, py,
                           in_words(goal_of_front(input, i, across), unit_of_goal(across)),
                           in_words(goal_of_front(input, i, up), unit_of_goal(up)),
                           escaped(input.at(fmt::format("/tune/front/{}/plan", i)).get<std::string>()));
  }
  if (line) out += fmt::format("<path class=\"line c-0\" d=\"{}\"/>\n", path);
  return svg(fmt::format("{} against {}", words_of_goal(up), words_of_goal(across)), front_height + 40, out + circles);
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
    for (std::size_t i = 1; i < goals.size(); ++i) out += front_chart(input, goals.front(), goals[i], goals.size() == 2);
    return out + front_table(input, goals);
  }
};

const SectionRegistry::Registration<TuneFront> tune_front_registration("tune-front");

}  // namespace
}  // namespace rehearse::sim::page

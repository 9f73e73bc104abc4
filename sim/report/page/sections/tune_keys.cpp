// What each value of a key costs at best, and the same of pairs of values of the two keys that matter most.
#include <algorithm>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/tune_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_drawn_values = 24, longest_label = 34;
constexpr double value_row = 18, between_keys = 8;

// A character of several bytes stays whole.
std::string shortened(const std::string& text) {
  if (text.size() <= longest_label) return text;
  std::size_t end = longest_label - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

std::string value_at(const std::string& key, const std::string& value) {
  return fmt::format("/tune/sensitivity/{}/{}", pointer_part(key), pointer_part(value));
}

std::string beyond(const Input& input) {
  return input.at("/tune/exhaustive").get<bool>() ? "no plan fits" : "no plan fits, or it is more than a quarter worse";
}

// Keys with a choice; of those that are drawn, with so few values that they can be told apart.
std::vector<std::string> keys_of(const Input& input, std::size_t most_values) {
  std::vector<std::string> keys;
  for (const auto& [key, values] : input.at("/tune/sensitivity").items()) {
    if (values.size() > 1 && values.size() <= most_values) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> values_of(const Input& input, const std::string& key) {
  std::vector<std::string> given, values;
  for (const auto& [value, unused] : input.at("/tune/sensitivity/" + pointer_part(key)).items()) given.push_back(value);
  for (const std::size_t i : in_order(given)) values.push_back(given[i]);
  return values;
}

std::string bar_of_value(const Input& input, const std::string& key, const std::string& value, const Scale& x, double y) {
  const std::string at = value_at(key, value), name = escaped(key + " " + value);
  std::string out = label(x.left - 6, y + 11, shortened(value), "end");
  if (!input.at(at).is_number()) {
    out += fmt::format("<rect class=\"c-11\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\"><title>{}: {}</title></rect>\n",
                       coordinate(x.left), coordinate(y + 1), coordinate(x.right - x.left), name, beyond(input));
    return out;
  }
  const double share = worse_share(input, at);
  out += fmt::format("<rect class=\"c-0\" x=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"12\" data-worse=\"{}\"><title>{}: {}</title></rect>",
                     coordinate(x.left), coordinate(y + 1), x(share) - x.left, escaped(at), name, in_words(share, Unit::percent));
  return out + label(x(share) + 5, y + 11, share < 1e-9 ? "best" : in_words(share, Unit::percent)) + "\n";
}

std::string chart_of_keys(const Input& input) {
  double most = 0.01;
  const std::vector<std::string> keys = keys_of(input, most_drawn_values);
  for (const std::string& key : keys) {
    for (const auto& [value, goal] : input.at("/tune/sensitivity/" + pointer_part(key)).items()) {
      if (goal.is_number()) most = std::max(most, worse_share(input, value_at(key, value)));
    }
  }
  const Scale x{0, most, 380, chart_width - 70};
  std::string rows;
  double y = 4;
  for (const std::string& key : keys) {
    rows += label(4, y + 11, shortened(key), "strong");
    for (const std::string& value : values_of(input, key)) {
      rows += bar_of_value(input, key, value, x, y);
      y += value_row;
    }
    y += between_keys;
  }
  const std::string axis = axis_below(x, 0, y, [](double share) { return fmt::format("{:.3g} %", 100 * share); });
  return legend({{"c-0", "the best plan with the value is worse than the best of all by"}, {"c-11", beyond(input)}}) +
         svg("What each value of a key costs", y + 24, axis + rows, x(1) - x(0));
}

std::string table_of_keys(const Input& input) {
  const std::string goal = goals_of(input).front();
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : keys_of(input, std::string::npos)) {
    for (const std::string& value : values_of(input, key))
      rows.push_back({escaped(key), escaped(value), number(input.result, value_at(key, value), unit_of_goal(goal)),
                      worse(input, value_at(key, value))});
  }
  return table(fmt::format("The best plan with each value (-: {})", beyond(input)),
               {{"key", true}, {"value", true}, {words_of_goal(goal)}, {"worse by"}}, rows);
}

struct Level {
  double up_to;
  const char *css, *words;
};
constexpr Level levels[] = {{1e-9, "w-0", "the best"},   {0.01, "w-1", "up to 1 % worse"}, {0.05, "w-2", "up to 5 %"},
                            {0.10, "w-3", "up to 10 %"}, {0.25, "w-4", "up to 25 %"},      {INFINITY, "w-5", "more"}};

std::string cell_of_map(const Input& input, std::size_t row, std::size_t column) {
  const std::string at = fmt::format("/tune/map/goals/{}/{}", row, column);
  if (!input.at(at).is_number()) return "<td>-</td>";
  const double share = worse_share(input, at);
  const Level& level = *std::ranges::find_if(levels, [&](const Level& each) { return share <= each.up_to; });
  return fmt::format("<td class=\"{}\">{}</td>", level.css, number(input.result, at, short_unit_of_goal(goals_of(input).front())));
}

std::string map_of_keys(const Input& input) {
  if (!input.has("/tune/map/keys")) return "";
  const auto text = [&](const std::string& at) { return escaped(input.at("/tune/map" + at).get<std::string>()); };
  const std::string caption = fmt::format("Best {} with each pair of values: {} down, {} across (-: {})",
                                          words_of_goal(goals_of(input).front()), text("/keys/0"), text("/keys/1"), beyond(input));
  std::string html = fmt::format("<table class=\"heat\"><caption>{}</caption><thead><tr><td></td>", caption);
  const std::vector<std::size_t> rows = in_order(input.at("/tune/map/rows").get<std::vector<std::string>>()),
                                 columns = in_order(input.at("/tune/map/columns").get<std::vector<std::string>>());
  for (const std::size_t j : columns) html += fmt::format(R"(<th scope="col">{}</th>)", text(fmt::format("/columns/{}", j)));
  html += "</tr></thead><tbody>\n";
  for (const std::size_t i : rows) {
    html += fmt::format(R"(<tr><th scope="row">{}</th>)", text(fmt::format("/rows/{}", i)));
    for (const std::size_t j : columns) html += cell_of_map(input, i, j);
    html += "</tr>\n";
  }
  std::vector<Mark> marks;
  for (const Level& level : levels) marks.push_back({level.css, level.words});
  return "<h3>The two keys that matter most</h3>\n" + legend(marks) + frame("The two keys that matter most", html + "</tbody></table>");
}

class TuneKeys final : public Section {
 public:
  [[nodiscard]] int order() const override { return 17; }
  [[nodiscard]] std::string_view title() const override { return "What each value of a key costs"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return has_search(input) && input.has("/tune/best/0") && !keys_of(input, std::string::npos).empty();
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    return chart_of_keys(input) + map_of_keys(input) + table_of_keys(input);
  }
};

const SectionRegistry::Registration<TuneKeys> tune_keys_registration("tune-keys");

}  // namespace
}  // namespace rehearse::sim::page

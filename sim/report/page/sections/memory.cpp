// Device memory over the step: by use on the fullest rank, in all on the others, with the GPU's capacity as a line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "config/table.hpp"
#include "sim/report/page/chart.hpp"
#include "sim/report/page/step_results.hpp"
#include "sim/result.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_lines = 12;  // as many as there are colours
constexpr double memory_height = 260;
constexpr std::size_t first_use = 3;  // column; before it rank, stage, at_s
constexpr std::size_t columns = first_use + memory_use_count + 1;

struct RankCurve {
  int rank = 0, stage = 0;
  std::vector<double> at_s;
  std::vector<std::array<double, memory_use_count>> held;
  std::vector<double> total;
  [[nodiscard]] double peak() const { return *std::ranges::max_element(total); }
};

std::vector<RankCurve> curves_of(const std::string& csv) {
  std::map<int, RankCurve> curves;
  config::Table table(csv, "memory.csv");
  if (table.titles().size() < columns) table.fail(fmt::format("{} columns expected", columns));
  while (table.next()) {
    const int rank = static_cast<int>(table.number(0));
    RankCurve& curve = curves[rank];
    curve.rank = rank;
    curve.stage = static_cast<int>(table.number(1));
    curve.at_s.push_back(table.number(2));
    auto& held = curve.held.emplace_back();
    for (std::size_t use = 0; use < memory_use_count; ++use) held[use] = table.number(first_use + use);
    curve.total.push_back(table.number(first_use + memory_use_count));
  }
  std::vector<RankCurve> all;
  for (auto& [rank, curve] : curves) all.push_back(std::move(curve));
  return all;
}

std::vector<Point> points_of(const RankCurve& curve, const std::vector<double>& values) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < values.size(); ++i) points.push_back({curve.at_s[i], values[i]});
  return points;
}

constexpr double gib = 1LL << 30;

struct Axes {
  Scale x, y;
  double capacity_bytes = 0;
  [[nodiscard]] std::string drawn() const {
    const Scale y_in_gib{y.from / gib, y.to / gib, y.left, y.right};
    std::string out =
        axis_of_time(x, 10, memory_height) + axis_left(y_in_gib, x.right, [](double value) { return fmt::format("{:g} GiB", value); });
    if (capacity_bytes > 0) {
      out += fmt::format("<path class=\"limit\" d=\"M{} {}H{}\"/>", coordinate(x.left), coordinate(y(capacity_bytes)), coordinate(x.right));
      out += label(x.right, y(capacity_bytes) - 4, "the GPU has " + in_words(capacity_bytes, Unit::bytes), "end");
    }
    return out;
  }
};

// From the largest sum of uses down: each area covers those below it, so that what is left to see of one is its use.
std::string areas(const RankCurve& curve, const Axes& axes) {
  std::string out;
  std::vector<double> sums(curve.total);
  for (std::size_t use = memory_use_count; use-- > 0;) {
    out += fmt::format("<path class=\"area c-{}\" d=\"{}V{}H{}Z\"/>\n", use, stairs(points_of(curve, sums), axes.x, axes.y),
                       coordinate(memory_height), coordinate(axes.x(curve.at_s.front())));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= curve.held[i][use];
  }
  return out;
}

std::vector<const RankCurve*> shown(const std::vector<RankCurve>& curves) {
  std::vector<const RankCurve*> out;
  for (std::size_t i = 0; i < std::min(curves.size(), most_lines); ++i) {
    out.push_back(&curves[curves.size() <= most_lines ? i : i * (curves.size() - 1) / (most_lines - 1)]);
  }
  return out;
}

double capacity_of(const Input& input) {
  const std::string at = methods_of(input).empty() ? "" : result_at(main_method(input)) + "/memory/ranks/0/capacity_bytes";
  return !at.empty() && input.has(at) ? input.at(at).get<double>() : 0;
}

std::string peaks(const Input& input) {
  if (methods_of(input).empty()) return "";
  const std::string at = result_at(main_method(input)) + "/memory/ranks";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < input.at(at).size(); ++i) {
    const std::string place = fmt::format("{}/{}/", at, i);
    std::vector<std::string> row = {number(input.result, place + "rank", Unit::count), number(input.result, place + "stage", Unit::count)};
    for (std::size_t use = 0; use < memory_use_count; ++use) {
      row.push_back(number(input.result, fmt::format("{}at_peak_bytes/{}", place, name_of(static_cast<MemoryUse>(use))), Unit::bytes));
    }
    row.push_back(number(input.result, place + "peak_bytes", Unit::bytes));
    row.push_back(number(input.result, place + "needed_bytes", Unit::bytes));
    row.push_back(input.at(place + "fits").get<bool>() ? "yes" : "no");
    row.push_back(escaped(input.at(place + "operation").get<std::string>()));
    rows.push_back(std::move(row));
  }
  std::vector<Column> columns_of_table = {{"rank"}, {"stage"}};
  for (std::size_t use = 0; use < memory_use_count; ++use) columns_of_table.push_back({std::string(name_of(static_cast<MemoryUse>(use)))});
  for (const Column& column : {Column{"peak"}, Column{"needed"}, Column{"fits", true}, Column{"peak in", true}})
    columns_of_table.push_back(column);
  return table("At the peak of each rank", columns_of_table, rows);
}

std::string charts(const Input& input, const std::string& csv) {
  const std::vector<RankCurve> curves = curves_of(csv);
  if (curves.empty()) return "";
  double last_s = 0;
  double most = capacity_of(input);
  const RankCurve* fullest = &curves.front();
  for (const RankCurve& curve : curves) {
    last_s = std::max(last_s, curve.at_s.back());
    most = std::max(most, curve.peak());
    if (curve.peak() > fullest->peak()) fullest = &curve;
  }
  if (last_s <= 0) return "";
  const Axes axes{{0, last_s, 70, chart_width - 40}, {0, 1.05 * most, memory_height, 10}, capacity_of(input)};
  std::vector<Mark> uses;
  for (std::size_t use = 0; use < memory_use_count; ++use)
    uses.push_back({fmt::format("c-{}", use), std::string(name_of(static_cast<MemoryUse>(use)))});
  std::vector<Mark> ranks;
  std::string lines;
  for (const RankCurve* curve : shown(curves)) {
    const std::string css = fmt::format("c-{}", ranks.size());
    ranks.push_back({css, fmt::format("rank {}, stage {}", curve->rank, curve->stage)});
    lines += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", css, stairs(points_of(*curve, curve->total), axes.x, axes.y));
  }
  const std::string title = fmt::format("The fullest rank, {} of stage {}, by use", fullest->rank, fullest->stage);
  const std::string of_all =
      curves.size() > most_lines ? fmt::format("In all, {} of {} ranks", most_lines, curves.size()) : "In all, of every simulated rank";
  std::string out =
      fmt::format("<h3>{}</h3>\n{}{}", title, legend(uses), svg(title, memory_height + 24, areas(*fullest, axes) + axes.drawn()));
  if (curves.size() > 1)
    out += fmt::format("<h3>{}</h3>\n{}{}", of_all, legend(ranks), svg(of_all, memory_height + 24, axes.drawn() + lines));
  return out;
}

class Memory final : public Section {
 public:
  [[nodiscard]] int order() const override { return 40; }
  [[nodiscard]] std::string_view title() const override { return "Memory"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return input.file("memory.csv") != nullptr ||
           (!methods_of(input).empty() && input.has(result_at(main_method(input)) + "/memory/ranks/0"));
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::string* csv = input.file("memory.csv");
    return (csv == nullptr ? "" : charts(input, *csv)) + peaks(input);
  }
};

const SectionRegistry::Registration<Memory> memory_registration("memory");

}  // namespace
}  // namespace rehearse::sim::page

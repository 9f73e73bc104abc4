// Collectives measured alone, as nccl-tests do: busbw over the size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/table.hpp"
#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"
#include "sim/result.hpp"

namespace rehearse::sim::page {
namespace {

constexpr double plot_height = 240;
constexpr double giga = 1e9;

struct Row {
  std::string collective, gpus, algorithm;
  double bytes = 0, formula_s = 0, simulated_s = 0, algbw = 0, busbw = 0;
};

std::vector<Row> rows_of(const std::string& csv) {
  constexpr std::size_t columns = 9;
  config::Table table(csv, "collectives.csv");
  if (table.titles().size() != columns) table.fail(fmt::format("{} columns expected", columns));
  const auto text = [&](std::size_t column) { return std::string(table.cell(column)); };
  std::vector<Row> rows;
  while (table.next()) {
    rows.push_back({text(0), text(1), with_protocol(text(3), text(4)), table.number(2), table.number(5), table.number(6), table.number(7),
                    table.number(8)});
  }
  return rows;
}

// The size on a logarithmic scale, from point to point.
std::string curve(const std::vector<Row>& rows) {
  const auto log_of = [](const Row& row) { return std::log2(std::max(row.bytes, 1.0)); };
  double most = 0;
  for (const Row& row : rows) most = std::max(most, row.busbw);
  const Scale x{log_of(rows.front()), log_of(rows.back()), 70, chart_width - 40};
  const Scale y{0, 1.05 * most / giga, plot_height, 10};
  std::string path;
  for (const Row& row : rows)
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", coordinate(x(log_of(row))), coordinate(y(row.busbw / giga)));
  const auto size = [](double power) { return in_words(std::exp2(power), Unit::bytes); };
  return svg("Bus bandwidth over the size", plot_height + 24,
             axis_below(x, 10, plot_height, size) + axis_left(y, x.right, [](double value) { return fmt::format("{:g} GB/s", value); }) +
                 fmt::format("<path class=\"line c-0\" d=\"{}\"/>\n", path));
}

class LoneCollectivesSection final : public Section {
 public:
  [[nodiscard]] int order() const override { return 55; }
  [[nodiscard]] std::string_view title() const override { return "Collectives alone"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.file("collectives.csv") != nullptr; }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::vector<Row> rows = rows_of(*input.file("collectives.csv"));
    if (rows.empty()) return "<p>None.</p>\n";
    std::vector<std::vector<std::string>> cells;
    for (const Row& row : rows) {
      cells.push_back({worked_out(row.bytes, Unit::bytes), escaped(row.algorithm), worked_out(row.formula_s, Unit::time),
                       worked_out(row.simulated_s, Unit::time), worked_out(row.algbw, Unit::gigabytes_per_s),
                       worked_out(row.busbw, Unit::gigabytes_per_s)});
    }
    const std::string all =
        fmt::format("{} among {} GPUs of an idle cluster", escaped(rows.front().collective), escaped(rows.front().gpus));
    const bool several = rows.size() > 1 && rows.back().bytes > rows.front().bytes;
    return fmt::format("<p class=\"sub\">{}.</p>\n", all) + (several ? curve(rows) : "") +
           table("By size, as nccl-tests count", {{"size"}, {"algorithm", true}, {"formula"}, {"simulated"}, {"algbw"}, {"busbw"}}, cells);
  }
};

const SectionRegistry::Registration<LoneCollectivesSection> lone_collectives_section_registration("collectives-alone");

}  // namespace
}  // namespace rehearse::sim::page

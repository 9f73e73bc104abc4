// Collectives measured alone, as nccl-tests do: busbw over the size.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "config/input_error.hpp"
#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

constexpr double height = 240;
constexpr double giga = 1e9;

struct Row {
  std::string collective, gpus, algorithm;
  double bytes = 0, formula_s = 0, simulated_s = 0, algbw = 0, busbw = 0;
};

double number_of(const std::string& cell, int line) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc() && end == cell.data() + cell.size() && std::isfinite(value)) return value;
  throw config::InputError(fmt::format("collectives.csv:{}: '{}' is not a number", line, cell));
}

std::vector<Row> rows_of(const std::string& csv) {
  constexpr std::size_t columns = 8;
  std::vector<Row> rows;
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);
  for (int number = 2; std::getline(in, line); ++number) {
    std::vector<std::string> cells;
    std::istringstream fields(line);
    for (std::string cell; std::getline(fields, cell, ',');) cells.push_back(cell);
    if (cells.size() != columns) throw config::InputError(fmt::format("collectives.csv:{}: {} cells expected", number, columns));
    rows.push_back({cells[0], cells[1], cells[3], number_of(cells[2], number), number_of(cells[4], number), number_of(cells[5], number),
                    number_of(cells[6], number), number_of(cells[7], number)});
  }
  return rows;
}

// The size on a logarithmic scale, from point to point.
std::string curve(const std::vector<Row>& rows) {
  const auto log_of = [](const Row& row) { return std::log2(std::max(row.bytes, 1.0)); };
  double most = 0;
  for (const Row& row : rows) most = std::max(most, row.busbw);
  const Scale x{log_of(rows.front()), log_of(rows.back()), 70, chart_width - 40};
  const Scale y{0, 1.05 * most / giga, height, 10};
  std::string path;
  for (const Row& row : rows)
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", coordinate(x(log_of(row))), coordinate(y(row.busbw / giga)));
  const auto size = [](double power) { return in_words(std::exp2(power), Unit::bytes); };
  return svg("Bus bandwidth over the size", height + 24, axis_below(x, 10, height, size) + axis_left(y, x.right, [](double value) {
                                                           return fmt::format("{:g} GB/s", value);
                                                         }) + fmt::format("<path class=\"line c-0\" d=\"{}\"/>\n", path));
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

const SectionRegistry::Registration<LoneCollectivesSection> registration("collectives-alone");

}  // namespace
}  // namespace rehearse::sim::page

// Two jobs of a kind other than training side by side: on the console, and as JSON (docs/command-line.md).
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "config/quantity.hpp"
#include "sim/compare/kind_difference.hpp"
#include "sim/report/diff.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/report/version.hpp"

namespace rehearse::sim {
namespace {

// By the innermost part of the name that has a unit: "stages_s.queued" is a time.
std::string metric_text(std::string name, double value) {
  while (true) {
    const std::size_t dot = name.rfind('.');
    const std::string_view part = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
    if (part.ends_with("per_s") || part.find("_per_s_") != std::string_view::npos) break;
    if (part.ends_with("_s")) return config::human_quantity(value, config::Dimension::time);
    if (part.ends_with("bytes")) return config::human_quantity(value, config::Dimension::bytes);
    if (dot == std::string::npos) break;
    name.resize(dot);
  }
  return fmt::format("{:.6g}", value);
}

Table metrics_table(const KindDifference& difference, std::size_t& alike) {
  Table table{.columns = {{"", Align::left}, {"A"}, {"B"}, {"change"}}};
  for (const MetricPair& metric : difference.metrics) {
    if (metric.a == metric.b) {
      ++alike;
      continue;
    }
    const std::string change = metric.a != 0 ? fmt::format("{:+.1f} %", 100 * (metric.b - metric.a) / std::abs(metric.a)) : "";
    table.rows.push_back({metric.name, metric_text(metric.name, metric.a), metric_text(metric.name, metric.b), change});
  }
  return table;
}

class DiffKindsConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<KindDifference>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& difference = report.get<KindDifference>();
    const std::string method = difference.method.empty() ? "" : " (" + difference.method + ")";
    fmt::print(out, "A: {}{}\nB: {}{}\n", difference.a, method, difference.b, method);
    if (difference.keys.empty()) out << "\nThe jobs are the same.\n";
    std::size_t alike = 0;
    for (Table table : {keys_table(difference.keys, difference.a, difference.b), metrics_table(difference, alike)}) {
      if (table.rows.empty()) continue;
      table.bold_header = report.colour;
      out << '\n';
      table.print(out);
    }
    if (alike > 0) fmt::print(out, "\n{} more numbers are alike.\n", alike);
  }
};

class DiffKindsJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<KindDifference>(); }
  void write(const Report& report, std::ostream& out) const override {
    using Json = nlohmann::ordered_json;
    const auto& difference = report.get<KindDifference>();
    Json json = {{"format", 1}, {"version", version()}, {"a", {{"name", difference.a}}}, {"b", {{"name", difference.b}}}};
    json["method"] = difference.method.empty() ? Json() : Json(difference.method);
    json["keys"] = Json::array();
    for (const KeyDifference& key : difference.keys) json["keys"].push_back({{"key", key.key}, {"a", key.a}, {"b", key.b}});
    json["metrics"] = Json::array();
    for (const MetricPair& metric : difference.metrics)
      json["metrics"].push_back({{"name", metric.name}, {"a", metric.a}, {"b", metric.b}});
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<DiffKindsConsole> diff_kinds_console_registration("diff-kinds-console");
const ReporterRegistry::Registration<DiffKindsJson> diff_kinds_json_registration("diff-kinds-json");

}  // namespace
}  // namespace rehearse::sim

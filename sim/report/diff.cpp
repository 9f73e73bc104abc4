// Two jobs side by side: on the console, and as JSON (docs/command-line.md).
#include <fmt/ostream.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "config/quantity.hpp"
#include "sim/compare/difference.hpp"
#include "sim/report/console_tables.hpp"
#include "sim/report/diff.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/report/version.hpp"

namespace rehearse::sim {

Table keys_table(const std::vector<KeyDifference>& keys, const std::string& a, const std::string& b) {
  constexpr std::size_t most_keys = 40;
  Table table{.columns = {{"key", Align::left}, {a, Align::left}, {b, Align::left}}};
  for (const KeyDifference& key : keys) {
    if (table.rows.size() == most_keys) {
      table.rows.push_back({fmt::format("... and {} more (--json has them)", keys.size() - most_keys)});
      break;
    }
    table.rows.push_back({key.key, key.a.empty() ? "-" : key.a, key.b.empty() ? "-" : key.b});
  }
  return table;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr double billion = 1e9;  // tokens

std::string bytes_text(double bytes) { return config::human_quantity(bytes, config::Dimension::bytes); }

std::string change_text(double a, double b) { return a > 0 ? fmt::format("{:+.2f} %", 100 * (b / a - 1)) : ""; }

Table phases_table(const Difference& difference) {
  const Milliseconds ms(difference.numbers_a.step_s);
  Table table{.columns = {{"phase", Align::left}, {"A ms"}, {"B ms"}, {"difference ms"}, {"reason", Align::left}}};
  for (const PhaseChange& phase : difference.phases) {
    table.rows.push_back(
        {std::string(name_of(phase.phase)), ms(phase.a_s), ms(phase.b_s), ms.difference(phase.b_s - phase.a_s), phase.reason});
  }
  const StepNumbers& a = difference.numbers_a;
  const StepNumbers& b = difference.numbers_b;
  table.rows.push_back({"step", ms(a.step_s), ms(b.step_s), ms.difference(b.step_s - a.step_s), change_text(a.step_s, b.step_s)});
  return table;
}

Table totals_table(const Difference& difference, double price) {
  const StepNumbers& a = difference.numbers_a;
  const StepNumbers& b = difference.numbers_b;
  Table table{.columns = {{"", Align::left}, {"A"}, {"B"}, {"change"}}};
  table.rows.push_back({"tokens/s", fmt::format("{:.0f}", a.tokens_per_s), fmt::format("{:.0f}", b.tokens_per_s),
                        change_text(a.tokens_per_s, b.tokens_per_s)});
  table.rows.push_back(
      {"fullest GPU needs", bytes_text(a.needed_bytes), bytes_text(b.needed_bytes), change_text(a.needed_bytes, b.needed_bytes)});
  table.rows.push_back({"of", bytes_text(a.capacity_bytes), bytes_text(b.capacity_bytes), ""});
  table.rows.push_back({"fits", a.fits ? "yes" : "no", b.fits ? "yes" : "no", ""});
  const double hours_a = billion * a.gpu_hours_per_token();
  const double hours_b = billion * b.gpu_hours_per_token();
  table.rows.push_back(
      {"GPU hours per 10^9 tokens", fmt::format("{:.1f}", hours_a), fmt::format("{:.1f}", hours_b), change_text(hours_a, hours_b)});
  if (price > 0) {
    table.rows.push_back({fmt::format("cost per 10^9 tokens, at {:g} a GPU hour", price), fmt::format("{:.0f}", price * hours_a),
                          fmt::format("{:.0f}", price * hours_b), change_text(hours_a, hours_b)});
  }
  return table;
}

Table parts_table(const Difference& difference) {
  const Milliseconds ms(difference.numbers_a.step_s);
  Table table{.columns = {{"B's part in A", Align::left}, {"step ms"}, {"fullest GPU"}, {"", Align::left}}};
  for (const PartAlone& part : difference.parts) {
    if (!part.refusal.empty()) {
      table.rows.push_back({part.part, "", "", "cannot be had alone: " + part.refusal});
      continue;
    }
    const std::string sign = part.needed_bytes < 0 ? "-" : "+";
    table.rows.push_back({part.part, ms.difference(part.step_s), sign + bytes_text(std::abs(part.needed_bytes)), ""});
  }
  return table;
}

class DiffConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Difference>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& difference = report.get<Difference>();
    fmt::print(out, "A: {} ({})\nB: {} ({})\n", difference.a, difference.numbers_a.method, difference.b, difference.numbers_b.method);
    if (difference.keys.empty()) out << "\nThe jobs are the same.\n";
    const double price = report.has<GpuHourPrice>() ? report.get<GpuHourPrice>().price : 0;
    std::vector<Table> tables;
    if (!difference.keys.empty()) tables.push_back(keys_table(difference.keys, difference.a, difference.b));
    tables.push_back(phases_table(difference));
    tables.push_back(totals_table(difference, price));
    if (!difference.parts.empty()) tables.push_back(parts_table(difference));
    for (Table& table : tables) {
      table.bold_header = report.colour;
      out << '\n';
      table.print(out);
    }
  }
};

Json numbers_json(const StepNumbers& numbers, const std::string& name) {
  Json phases;
  for (std::size_t i = 0; i < phase_count; ++i) phases[std::string(key_of(static_cast<Phase>(i)))] = numbers.mean.seconds[i];
  return {{"name", name},
          {"method", numbers.method},
          {"gpus", numbers.gpus},
          {"step_s", numbers.step_s},
          {"tokens_per_s", numbers.tokens_per_s},
          {"mean_phases_s", std::move(phases)},
          {"needed_bytes", numbers.needed_bytes},
          {"capacity_bytes", numbers.capacity_bytes},
          {"fits", numbers.fits},
          {"gpu_hours_per_1e9_tokens", billion * numbers.gpu_hours_per_token()}};
}

Json part_json(const PartAlone& part) {
  if (!part.refusal.empty()) return {{"part", part.part}, {"refusal", part.refusal}};
  return {{"part", part.part}, {"step_s", part.step_s}, {"needed_bytes", part.needed_bytes}};
}

class DiffJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Difference>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& difference = report.get<Difference>();
    Json json = {{"format", 1},
                 {"version", version()},
                 {"a", numbers_json(difference.numbers_a, difference.a)},
                 {"b", numbers_json(difference.numbers_b, difference.b)}};
    json["keys"] = Json::array();
    for (const KeyDifference& key : difference.keys) json["keys"].push_back({{"key", key.key}, {"a", key.a}, {"b", key.b}});
    json["phases"] = Json::array();
    for (const PhaseChange& phase : difference.phases) {
      json["phases"].push_back({{"phase", key_of(phase.phase)},
                                {"a_s", phase.a_s},
                                {"b_s", phase.b_s},
                                {"difference_s", phase.b_s - phase.a_s},
                                {"reason", phase.reason}});
    }
    json["parts_alone"] = Json::array();
    for (const PartAlone& part : difference.parts) json["parts_alone"].push_back(part_json(part));
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<DiffConsole> diff_console_registration("diff-console");
const ReporterRegistry::Registration<DiffJson> diff_json_registration("diff-json");

}  // namespace
}  // namespace rehearse::sim

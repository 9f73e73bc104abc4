// Tables of a validation.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

bool has_simulated(const Validation& validation) {
  return std::ranges::any_of(validation.outcomes, [](const Outcome& outcome) { return !outcome.simulated.empty(); });
}

std::vector<std::string> row_of(const Outcome& outcome, Metric metric, bool simulated) {
  const auto both = [&](std::vector<std::string>& row, const Metrics& metrics) {
    const auto value = metrics.find(metric);
    if (value == metrics.end()) return row.insert(row.end(), {"", ""}), void();
    row.push_back(fmt::format("{:.4g}", value->second));
    row.push_back(signed_percent(relative_error(value->second, outcome.measured.at(metric))));
  };
  std::vector<std::string> row{outcome.group, outcome.id, std::string(name_of(metric)), fmt::format("{:.4g}", outcome.measured.at(metric))};
  both(row, outcome.predicted);
  if (simulated) both(row, outcome.simulated);
  row.push_back(fmt::format("{}", fmt::join(outcome.inferred, " ")));
  return row;
}

// Only where somebody's job ran out of memory, or ours is said to.
void print_verdicts(const Validation& validation, bool colour, std::ostream& out) {
  Table table{.columns = {{"group", Align::left}, {"ran"}, {"out of memory"}, {"false alarms"}, {"missed"}, {"right"}},
              .bold_header = colour};
  for (const VerdictSummary& verdict : validation.verdicts) {
    if (verdict.ran_out + verdict.false_alarms == 0) continue;
    table.rows.push_back({verdict.group, std::to_string(verdict.ran), std::to_string(verdict.ran_out), std::to_string(verdict.false_alarms),
                          std::to_string(verdict.missed), percent(verdict.right())});
  }
  if (table.rows.empty()) return;
  fmt::print(out, "\nWhether memory suffices:\n");
  table.print(out);
}

void print_cases(const Validation& validation, bool colour, std::ostream& out) {
  const bool simulated = has_simulated(validation);
  Table table{.columns = {{"group", Align::left}, {"case", Align::left}, {"metric", Align::left}, {"measured"}, {"predicted"}, {"error"}},
              .bold_header = colour};
  if (simulated) table.columns.insert(table.columns.end(), {{"simulated"}, {"error"}});
  table.columns.push_back({"inferred", Align::left});
  for (const Outcome& outcome : validation.outcomes) {
    for (const auto& [metric, value] : outcome.measured) {
      if (outcome.predicted.contains(metric) || outcome.simulated.contains(metric))
        table.rows.push_back(row_of(outcome, metric, simulated));
    }
  }
  if (!table.rows.empty()) table.print(out);
  for (const Outcome& outcome : validation.outcomes) {
    if (!outcome.failed.empty()) fmt::print(out, "failed: {}: {}\n", outcome.id, outcome.failed);
  }
}

void print_summaries(const Validation& validation, bool colour, std::ostream& out) {
  Table table{.columns = {{"group", Align::left},
                          {"metric", Align::left},
                          {"method", Align::left},
                          {"cases", Align::left},
                          {"number"},
                          {"mean |error|"},
                          {"median"},
                          {"90 %"},
                          {"worst"},
                          {"bias"},
                          {"worst case", Align::left}},
              .bold_header = colour};
  for (const ErrorSummary& summary : validation.summaries) {
    table.rows.push_back({summary.group, std::string(name_of(summary.metric)), summary.method, summary.cases, std::to_string(summary.count),
                          percent(summary.mean_abs), percent(summary.median_abs), percent(summary.p90_abs), signed_percent(summary.worst),
                          signed_percent(summary.bias), summary.worst_id});
  }
  table.print(out);
  print_verdicts(validation, colour, out);
  const auto failed = std::ranges::count_if(validation.outcomes, [](const Outcome& outcome) { return !outcome.failed.empty(); });
  fmt::print(out, "{} cases, {} failed\n", validation.outcomes.size(), failed);
}

std::string change_cell(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f} %", value.get<double>()) : value.get<std::string>();
}

void print_list(const Json& list, const char* title, bool colour, std::ostream& out) {
  if (list.empty()) return;
  Table table{.columns = {{title, Align::left}, {"before"}, {"now"}}, .bold_header = colour};
  for (const Json& change : list) table.rows.push_back({change["what"], change_cell(change["before"]), change_cell(change["now"])});
  table.print(out);
}

void print_changes(const ValidationChanges& changes, bool colour, std::ostream& out) {
  print_list(changes.cases, "changed case (error)", colour, out);
  print_list(changes.groups, "changed group (mean absolute error)", colour, out);
  if (changes.cases.empty() && changes.groups.empty()) out << "nothing changed\n";
}

class ValidationConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Validation>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& validation = report.get<Validation>();
    if (!report.has<SummaryAlone>()) {
      print_cases(validation, report.colour, out);
      out << '\n';
    }
    print_summaries(validation, report.colour, out);
    if (const auto* changes = report.find<ValidationChanges>()) {
      out << '\n';
      print_changes(*changes, report.colour, out);
    }
  }
};

const ReporterRegistry::Registration<ValidationConsole> validation_console_registration("validation-console");

}  // namespace
}  // namespace rehearse::sim

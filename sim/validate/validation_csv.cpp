// One row per case and measured metric; failed cases have no prediction.
#include <fmt/ranges.h>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

struct Cell {
  std::string value, error_pct;
};

Cell cell_of(const Outcome& outcome, Metric metric, const Metrics& metrics) {
  const auto found = metrics.find(metric);
  if (found == metrics.end()) return {};
  return {fmt::format("{}", found->second), fmt::format("{}", 100 * relative_error(found->second, outcome.measured.at(metric)))};
}

class ValidationCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }  // where --csv says
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Validation>(); }
  void write(const Report& report, std::ostream& out) const override {
    csv_row(out, "group", "id", "metric", "measured", "predicted", "error_pct", "simulated", "simulated_error_pct", "inferred", "failed");
    for (const Outcome& outcome : report.get<Validation>().outcomes) {
      for (const auto& [metric, measured] : outcome.measured) {
        const Cell predicted = cell_of(outcome, metric, outcome.predicted);
        const Cell simulated = cell_of(outcome, metric, outcome.simulated);
        csv_row(out, outcome.group, outcome.id, name_of(metric), measured, predicted.value, predicted.error_pct, simulated.value,
                simulated.error_pct, fmt::format("{}", fmt::join(outcome.inferred, " ")), outcome.failed);
      }
    }
  }
};

const ReporterRegistry::Registration<ValidationCsv> validation_csv_registration("validation-csv");

}  // namespace
}  // namespace rehearse::sim

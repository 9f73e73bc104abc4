// compare.csv: the formula beside the simulation, one row per stage of a request and per latency (docs/serving.md, "Outputs").
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class ServingCompareCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "compare.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* serving = report.find<ServingReport>();
    return serving != nullptr && !serving->differences.empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    out << "phase,analytic_s,simulated_s,difference_s,reason\n";
    for (const StageDifference& one : report.get<ServingReport>().differences)
      csv_row(out, one.name, one.analytic_s, one.simulated_s, one.simulated_s - one.analytic_s, one.reason);
  }
};

const ReporterRegistry::Registration<ServingCompareCsv> serving_compare_csv_registration("serving-compare-csv");

}  // namespace
}  // namespace rehearse::sim

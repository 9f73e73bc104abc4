// compare.csv: the methods side by side, one row per phase and one for the step (docs/output-formats.md).
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

void write_row(std::ostream& out, std::string_view phase, double analytic_s, double simulated_s, double critical_s,
               std::string_view reason) {
  csv_row(out, phase, analytic_s, simulated_s, critical_s, simulated_s - analytic_s, reason);
}

void write_comparison(const Comparison& comparison, std::ostream& out) {
  out << "phase,analytic_s,simulated_s,critical_path_s,difference_s,reason\n";
  for (const PhaseDifference& phase : comparison.phases) {
    write_row(out, key_of(phase.phase), phase.analytic_s, phase.simulated_s, comparison.critical.mean[phase.phase], phase.reason);
  }
  const std::string_view reason = comparison.reasons.empty() ? std::string_view{} : std::string_view(comparison.reasons.front());
  write_row(out, "step", comparison.analytic.step_s, comparison.simulated.step_s, comparison.critical.step_s, reason);
}

class CompareCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "compare.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Comparison>(); }
  void write(const Report& report, std::ostream& out) const override { write_comparison(report.get<Comparison>(), out); }
};

const ReporterRegistry::Registration<CompareCsv> compare_csv_registration("compare-csv");

}  // namespace
}  // namespace rehearse::sim

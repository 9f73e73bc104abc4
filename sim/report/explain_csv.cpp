// explain.csv: one row per feature that could be switched (docs/output-formats.md).
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

void write_explanation(const Explanation& explanation, std::ostream& out) {
  out << "feature,from,to,step_s,change_s,peak_bytes,fits,refusal\n";
  for (const auto* list : {&explanation.switches, &explanation.idle}) {
    for (const FeatureSwitch& s : *list) {
      csv_row(out, s.feature, s.from, s.to, s.step_s, s.step_s - explanation.now.step_s, s.peak_bytes, s.fits ? "true" : "false", "");
    }
  }
  for (const FeatureSwitch& s : explanation.refused) csv_row(out, s.feature, s.from, s.to, "", "", "", "", s.refusal);
}

class ExplainCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "explain.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Explanation>(); }
  void write(const Report& report, std::ostream& out) const override { write_explanation(report.get<Explanation>(), out); }
};

const ReporterRegistry::Registration<ExplainCsv> explain_csv_registration("explain-csv");

}  // namespace
}  // namespace rehearse::sim

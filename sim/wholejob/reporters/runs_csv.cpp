// runs.csv: one row per run (docs/output-formats.md).
#include <ostream>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/wholejob/reporters/numbers.hpp"

namespace rehearse::sim {
namespace {

class RunsCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "runs.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* whole = report.find<WholeJobReport>();
    return whole != nullptr && !whole->runs.empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    const std::vector<Quantity> quantities = quantities_of(report.get<WholeJobReport>());
    out << "seed";
    for (const Quantity& quantity : quantities) out << ',' << csv_cell(quantity.key);
    for (std::size_t i = 0; i < cause_count; ++i) out << ',' << key_of(static_cast<Cause>(i)) << "_s";
    out << '\n';
    for (const RunResult& run : report.get<WholeJobReport>().runs) {
      out << run.seed;
      for (const Quantity& quantity : quantities) {
        const auto value = quantity.of_run(run);
        out << ',' << (value ? csv_cell(*value) : "");
      }
      for (const Ns ns : run.account.ns) out << ',' << csv_cell(to_s(ns));
      out << '\n';
    }
  }
};

const ReporterRegistry::Registration<RunsCsv> runs_csv_registration("whole-job-runs");

}  // namespace
}  // namespace rehearse::sim

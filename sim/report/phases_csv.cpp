// phases.csv: where the time of every rank goes; one row per method, rank and phase (docs/output-formats.md).
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

void write_rank(const StepResult& result, const RankResult& rank, std::ostream& out) {
  for (std::size_t i = 0; i < phase_count; ++i) {
    const double seconds = rank.phases.seconds[i];
    csv_row(out, result.method, rank.rank, rank.stage, rank.ranks, key_of(static_cast<Phase>(i)), seconds, seconds / result.step_s);
  }
}

class PhasesCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "phases.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return !steps_of(report).empty(); }
  void write(const Report& report, std::ostream& out) const override {
    out << "method,rank,stage,ranks,phase,seconds,share\n";
    for (const StepResult* result : steps_of(report)) {
      for (const RankResult& rank : result->ranks) write_rank(*result, rank, out);
    }
  }
};

const ReporterRegistry::Registration<PhasesCsv> phases_csv_registration("phases-csv");

}  // namespace
}  // namespace rehearse::sim

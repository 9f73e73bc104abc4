// tune.csv: a row for each of the best plans and of the front's; and best.yaml: the best plan as a job.
#include <ostream>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/tune/report.hpp"

namespace rehearse::sim {
namespace {

void write_rows(const TuneReport& report, std::string_view list, const std::vector<TunedPlan>& plans, std::ostream& out) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Candidate& candidate = plans[i].candidate;
    out << list << ',' << i + 1;
    for (std::size_t g = 0; g < report.goals.size(); ++g) out << ',' << csv_cell(GoalValues::shown(report.goals[g], candidate.goals[g]));
    out << ',' << csv_cell(candidate.step_s) << ',' << csv_cell(candidate.peak_bytes) << ',';
    const auto& confirmed = plans[i].confirmed;
    if (confirmed && confirmed->refused.empty()) out << csv_cell(confirmed->step_s);
    out << ',';
    if (confirmed && confirmed->rank > 0) out << confirmed->rank;
    for (const auto& [key, value] : plans[i].settings) out << ',' << csv_field(value);
    out << ',' << csv_field(plans[i].text) << '\n';
  }
}

class TuneCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "tune.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<TuneReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const TuneReport& tune = report.get<TuneReport>();
    out << "list,rank";
    for (const Goal goal : tune.goals) out << ',' << (goal == Goal::step ? "goal_step" : goals().of(goal));
    out << ",step_s,peak_bytes,simulated_step_s,simulated_rank";
    const std::vector<TunedPlan>& some = tune.best.empty() ? tune.front : tune.best;
    for (const auto& [key, value] : some.empty() ? Settings{} : some.front().settings) out << ',' << csv_field(key);
    out << ",plan\n";
    write_rows(tune, "best", tune.best, out);
    write_rows(tune, "front", tune.front, out);
  }
};

class BestYaml final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "best.yaml"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    return report.has<TuneReport>() && !report.get<TuneReport>().best.empty();
  }
  void write(const Report& report, std::ostream& out) const override { out << report.get<TuneReport>().best_yaml; }
};

const ReporterRegistry::Registration<TuneCsv> tune_csv_registration("tune-csv");
const ReporterRegistry::Registration<BestYaml> best_yaml_registration("tune-best");

}  // namespace
}  // namespace rehearse::sim

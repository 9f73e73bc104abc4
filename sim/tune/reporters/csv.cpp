// tune.csv: a row for each of the best plans and of the front's, with --all for every plan that was evaluated; and best.yaml: the best plan
// as a job.
#include <ostream>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/tune/report.hpp"

namespace rehearse::sim {
namespace {

// `rank`: "" of a plan that has none; `fits`: what does not has no goals.
void write_row(const TuneReport& report, std::string_view list, std::string_view rank, const TunedPlan& plan, bool fits,
               std::ostream& out) {
  const Candidate& candidate = plan.candidate;
  out << list << ',' << rank;
  for (std::size_t g = 0; g < report.goals.size(); ++g)
    out << ',' << (fits ? csv_cell(GoalValues::shown(report.goals[g], candidate.goals[g])) : "");
  out << ',' << csv_cell(candidate.step_s) << ',' << csv_cell(candidate.peak_bytes) << ',' << csv_cell(candidate.needed_bytes) << ',';
  if (plan.confirmed && plan.confirmed->refused.empty()) out << csv_cell(plan.confirmed->step_s);
  out << ',';
  if (plan.confirmed && plan.confirmed->rank > 0) out << plan.confirmed->rank;
  out << ',';
  if (list == "best") out << candidate.twins;
  for (const auto& [key, value] : plan.settings) out << ',' << csv_field(value);
  out << ',' << csv_field(plan.text) << '\n';
}

void write_rows(const TuneReport& report, std::string_view list, const std::vector<TunedPlan>& plans, std::ostream& out) {
  for (std::size_t i = 0; i < plans.size(); ++i) write_row(report, list, fmt::format("{}", i + 1), plans[i], true, out);
}

// Their keys are those of every plan of the space.
Settings settings_of(const TuneReport& report) {
  for (const auto* plans : {&report.best, &report.front}) {
    if (!plans->empty()) return plans->front().settings;
  }
  return report.nearest ? report.nearest->settings : Settings{};
}

class TuneCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "tune.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<TuneReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const TuneReport& tune = report.get<TuneReport>();
    out << "list,rank";
    for (const Goal goal : tune.goals) out << ',' << (goal == Goal::step ? "goal_step" : goals().of(goal));
    out << ",step_s,peak_bytes,needed_bytes,simulated_step_s,simulated_rank,twins";
    for (const auto& [key, value] : settings_of(tune)) out << ',' << csv_field(key);
    out << ",plan\n";
    write_rows(tune, "best", tune.best, out);
    write_rows(tune, "front", tune.front, out);
    if (!tune.each_evaluated) return;
    tune.each_evaluated([&](const TunedPlan& plan, Fit fit) { write_row(tune, name_of(fit), "", plan, fit == Fit::yes, out); });
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

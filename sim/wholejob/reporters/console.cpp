// Whole jobs for people, on standard output.
#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>

#include "config/quantity.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/wholejob/reasons.hpp"
#include "sim/wholejob/reporters/numbers.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::human_quantity;

std::string time_text(double seconds) { return human_quantity(seconds, Dimension::time); }
std::string share_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string text_of(Quantity::Unit unit, double value) {
  switch (unit) {
    case Quantity::Unit::share:
      return share_text(value);
    case Quantity::Unit::seconds:
      return time_text(value);
    case Quantity::Unit::tokens_per_s:
      return fmt::format("{:.0f}", value);
    case Quantity::Unit::count:
      break;
  }
  return value == std::round(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

void print(Table table, bool colour, std::ostream& out) {
  table.bold_header = colour;
  out << '\n';
  table.print(out);
}

void print_plan(const WholeJobPlan& plan, std::ostream& out) {
  constexpr std::string_view stores[] = {"", "local disks", "shared storage", "memory"};
  const CheckpointTimes& checkpoint = plan.checkpoint;
  const bool fails = plan.formula_input.failures_per_s > 0;
  fmt::print(out, "\nstep {} ({}); a checkpoint of {} to {} every {} steps ({}){}\n", time_text(plan.step_s), plan.step_method,
             human_quantity(checkpoint.bytes, Dimension::bytes), stores[static_cast<std::size_t>(checkpoint.store)], plan.training.interval,
             time_text(static_cast<double>(plan.training.interval) * plan.step_s),
             fails ? fmt::format(", the optimum by formula is {}", optimum_interval_steps(plan.formula_input)) : "");
  fmt::print(out, "saving holds training up for {}, loading takes {}\n", time_text(checkpoint.blocking_s), time_text(checkpoint.load_s));
  if (!fails) return;
  fmt::print(out, "{:.3g} failures a day, one every {}; {} to recover from one\n", plan.formula_input.failures_per_s * seconds_per_day,
             time_text(1 / plan.formula_input.failures_per_s), time_text(plan.formula_input.repair_s));
}

bool ever(const std::vector<RunResult>& runs, const Quantity& quantity) {
  for (const RunResult& run : runs) {
    if (quantity.of_run(run).value_or(0) != 0) return true;
  }
  return quantity.by_formula.has_value();
}

Table quantity_table(const WholeJobReport& report) {
  const bool many = report.runs.size() > 1;
  Table table{.columns = {{"", Align::left}, {many ? "mean" : "simulated"}}};
  if (many) {
    for (const char* title : {"95 % from", "to", "5 %", "median", "95 %"}) table.columns.push_back({title});
  }
  table.columns.push_back({"formula"});
  for (const Quantity& quantity : quantities_of(report)) {
    if (!ever(report.runs, quantity)) continue;
    std::vector<std::string> row{std::string(quantity.name)};
    if (const auto all = statistics_of(quantity, report.runs)) {
      row.push_back(text_of(quantity.unit, all->mean));
      if (many) {
        for (const double value : {all->low, all->high, all->p5, all->p50, all->p95}) row.push_back(text_of(quantity.unit, value));
      }
    }
    row.resize(table.columns.size());
    if (quantity.by_formula) row.back() = text_of(quantity.unit, *quantity.by_formula);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table cause_table(const std::vector<RunResult>& runs) {
  Table table{.columns = {{"where the time goes", Align::left}, {"time"}, {"share"}}};
  const double wall_s = statistics_over(runs, [](const RunResult& run) { return to_s(run.wall); }).mean;
  for (std::size_t i = 0; i < cause_count; ++i) {
    const double seconds = statistics_over(runs, [&](const RunResult& run) { return to_s(run.account.ns[i]); }).mean;
    if (seconds > 0) table.rows.push_back({std::string(key_of(static_cast<Cause>(i))), time_text(seconds), share_text(seconds / wall_s)});
  }
  return table;
}

Table sweep_table(const WholeJobReport& report) {
  Table table{.columns = {{report.sweep_key, Align::left},
                          {"interval steps"},
                          {"ETTR"},
                          {"95 % from"},
                          {"to"},
                          {"formula"},
                          {"total time"},
                          {"optimum steps"}}};
  for (const SweepPoint& point : report.sweep) {
    table.rows.push_back({point.value, fmt::format("{}", point.plan.training.interval), share_text(point.ettr.mean),
                          share_text(point.ettr.low), share_text(point.ettr.high), share_text(point.formula.ettr),
                          time_text(point.total_s.mean), fmt::format("{}", optimum_interval_steps(point.plan.formula_input))});
  }
  return table;
}

std::string fault_text(const HistoryEntry& entry) {
  if (!entry.fault) return "";
  const Fault& fault = *entry.fault;
  std::string text = fmt::format("{}: {}", fault.label, components.of(fault.component));
  text +=
      fault.nodes > 1 ? fmt::format(", nodes {} to {}", fault.node, fault.node + fault.nodes - 1) : fmt::format(", node {}", fault.node);
  if (fault.kind == FaultKind::slow) return text + fmt::format(", {:.3g} times as long", fault.slowdown);
  return text + fmt::format(", {} level", fault_levels.of(fault.level));
}

std::string detail_text(const HistoryEntry& entry) {
  if (!entry.why.empty()) return entry.why;
  if (entry.lost_steps > 0) return fmt::format("{} steps rolled back", entry.lost_steps);
  if (entry.step > 0) return fmt::format("step {}", time_text(to_s(entry.step)));
  return entry.duration > 0 ? fmt::format("for {}", time_text(to_s(entry.duration))) : "";
}

Table history_table(const History& history) {
  Table table{.columns = {{"time"}, {"event", Align::left}, {"step"}, {"", Align::left}, {"fault", Align::left}}};
  for (const HistoryEntry& entry : history) {
    table.rows.push_back({clock_text(entry.at), entry.event, fmt::format("{}", entry.steps), detail_text(entry), fault_text(entry)});
  }
  return table;
}

// The formula beside the runs: what they spend on each cause more than it, and why.
void print_differences(const WholeJobReport& report, std::ostream& out) {
  const std::vector<EttrDifference> differences = differences_of(report);
  if (differences.empty()) return;
  const double ettr = statistics_over(report.runs, [](const RunResult& run) { return run.ettr(); }).mean;
  fmt::print(out, "\nETTR {:+.2f} points against the formula; of the time, in points:\n", 100 * (ettr - report.formula.ettr));
  for (const EttrDifference& d : differences) fmt::print(out, "- {:+.2f} {}: {}\n", d.points, d.cause, d.reason);
}

// With --timeline: the steps that failures strike.
void print_struck_steps(const std::vector<StruckStep>& steps, bool colour, std::ostream& out) {
  if (steps.empty()) return;
  Table table{
      .columns = {
          {"failure"}, {"time"}, {"step"}, {"into it"}, {"of"}, {"simulated", Align::left}, {"of"}, {"lost after"}, {"", Align::left}}};
  for (const StruckStep& step : steps) {
    table.rows.push_back({std::to_string(step.failure), clock_text(step.at), std::to_string(step.steps), time_text(to_s(step.spent)),
                          time_text(to_s(step.all)), step.what, time_text(step.step_s), time_text(step.lost_s), step.folder});
  }
  print(table, colour, out);
}

void print_states(const StateCounts& states, std::ostream& out) {
  if (states.met == 0) return;
  fmt::print(out, "\n{} states of a cluster that is not well; {} steps were simulated for them, the others look the same to the job\n",
             states.met, states.worked_out);
}

void print_unfinished(const std::vector<RunResult>& runs, std::ostream& out) {
  const auto given_up = std::ranges::count_if(runs, [](const RunResult& run) { return run.finished == 0; });
  if (given_up > 0)
    fmt::print(out, "\n{} of {} runs given up: they lose more than 95 % of their time, or meet more than a million failures\n", given_up,
               runs.size());
}

class WholeJobConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<WholeJobReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const WholeJobReport& whole = report.get<WholeJobReport>();
    print_job(report.job, out);
    if (!whole.sweep.empty()) return print(sweep_table(whole), report.colour, out);
    print_plan(whole.plan, out);
    if (whole.replay) print(history_table(whole.history), report.colour, out);
    print(quantity_table(whole), report.colour, out);
    print(cause_table(whole.runs), report.colour, out);
    print_struck_steps(whole.struck_steps, report.colour, out);
    print_states(whole.states, out);
    print_differences(whole, out);
    print_unfinished(whole.runs, out);
    if (whole.runs.size() > 1)
      fmt::print(out, "\n{} runs, seeds {} to {}\n", whole.runs.size(), whole.runs.front().seed, whole.runs.back().seed);
  }
};

const ReporterRegistry::Registration<WholeJobConsole> whole_job_console_registration("whole-job-console");

}  // namespace
}  // namespace rehearse::sim

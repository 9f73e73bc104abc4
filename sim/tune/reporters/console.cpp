// A search on the console: the best plans, what holds them back, how much each value of a key costs, and where all points went.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "config/quantity.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/tune/report.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::human_quantity;

void print(Table table, bool colour, std::ostream& out) {
  if (table.rows.empty()) return;
  table.bold_header = colour;
  out << '\n';
  table.print(out);
}

std::string change(double goal, double best) {
  if (goal == best || best == 0) return "";
  return fmt::format("{:+.1f} %", 100 * (goal - best) / std::abs(best));
}

std::string bytes_text(double bytes) { return human_quantity(bytes, Dimension::bytes); }

std::string confirmed_text(const TunedPlan& plan) {
  if (!plan.confirmed) return "";
  if (!plan.confirmed->refused.empty()) return "refused";
  return plan.confirmed->shortage.empty() ? GoalValues::text(Goal::step, plan.confirmed->step_s) : "does not fit";
}

// "3: overlap.tp, cuda_graphs"
std::string twins_text(const TunedPlan& plan) {
  return plan.free_keys.empty() ? "" : fmt::format("{}: {}", plan.candidate.twins, fmt::join(plan.free_keys, ", "));
}

bool any_twins(const TuneReport& report) {
  return std::ranges::any_of(report.best, [](const TunedPlan& plan) { return plan.candidate.twins > 0; });
}

// What the simulation has against plans of the table.
void print_objections(const TuneReport& report, std::ostream& out) {
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    const auto& confirmed = report.best[i].confirmed;
    if (!confirmed || confirmed->good()) continue;
    if (confirmed->refused.empty()) {
      fmt::print(out, "\nplan {}: {}\n", i + 1, confirmed->shortage);
    } else {
      fmt::print(out, "\nplan {}: the simulation refuses it: {}\n", i + 1, confirmed->refused);
    }
  }
}

Table best_table(const TuneReport& report) {
  Table table;
  table.columns = {{""}};
  for (const Goal goal : report.goals) table.columns.push_back({std::string(goals().of(goal))});
  table.columns.push_back({"change"});
  const bool step = std::ranges::find(report.goals, Goal::step) != report.goals.end(),
             simulated = report.best.front().confirmed.has_value(), twins = any_twins(report);
  const bool whole = report.best.front().interval_steps > 0;
  if (!step) table.columns.push_back({"step"});
  if (simulated) table.columns.insert(table.columns.end(), {{"simulated"}, {"rank"}});
  if (whole) table.columns.push_back({"checkpoint every"});
  table.columns.insert(table.columns.end(), {{"memory"}, {"fits"}, {"plan", Align::left}, {"held back by", Align::left}});
  if (twins) table.columns.push_back({"twins", Align::left});
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    const TunedPlan& plan = report.best[i];
    std::vector<std::string> row{fmt::format("{}", i + 1)};
    for (std::size_t g = 0; g < report.goals.size(); ++g) row.push_back(GoalValues::text(report.goals[g], plan.candidate.goals[g]));
    row.push_back(change(plan.candidate.goals[0], report.best.front().candidate.goals[0]));
    if (!step) row.push_back(GoalValues::text(Goal::step, plan.candidate.step_s));
    if (simulated) row.push_back(confirmed_text(plan));
    if (simulated) row.push_back(plan.confirmed && plan.confirmed->rank > 0 ? fmt::format("{}", plan.confirmed->rank) : "");
    if (whole) row.push_back(fmt::format("{:.0f} steps", plan.interval_steps));
    const std::string fits = plan.fits ? fmt::format("{:.0f} %", 100 * plan.fits->chance) : "";
    row.insert(row.end(), {bytes_text(plan.candidate.needed_bytes), fits, plan.text, plan.held_back});
    if (twins) row.push_back(twins_text(plan));
    table.rows.push_back(std::move(row));
  }
  return table;
}

constexpr std::size_t shown_of_front = 20;

Table front_table(const TuneReport& report) {
  Table table;
  for (const Goal goal : report.goals) table.columns.push_back({std::string(goals().of(goal))});
  table.columns.push_back({"plan", Align::left});
  for (std::size_t i = 0; i < std::min(shown_of_front, report.front.size()); ++i) {
    std::vector<std::string> row;
    for (std::size_t g = 0; g < report.goals.size(); ++g)
      row.push_back(GoalValues::text(report.goals[g], report.front[i].candidate.goals[g]));
    row.push_back(report.front[i].text);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// "8: best, 4: +1.2 %, 16: +8.0 %, not 1, 2"
std::string values_text(const Sensitivity& key, double best) {
  std::vector<std::pair<double, std::string>> known;
  std::vector<std::string> parts, others;
  for (const ValueOfKey& value : key.values) {
    if (value.goal) {
      known.emplace_back(*value.goal, value.value);
    } else {
      others.push_back(value.value);
    }
  }
  std::ranges::stable_sort(known, {}, &std::pair<double, std::string>::first);
  for (const auto& [goal, value] : known)
    parts.push_back(fmt::format("{}: {}", value, rounded(goal) == rounded(best) ? "best" : change(goal, best)));
  if (!others.empty()) parts.push_back(fmt::format("not {}", fmt::join(others, ", ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Table sensitivity_table(const TuneReport& report) {
  Table table{.columns = {{"key", Align::left},
                          {report.exhaustive ? "the best plan with each value (not: none fits)"
                                             : "the best plan with each value (not: none fits, or it is a quarter worse)",
                           Align::left}}};
  for (const Sensitivity& key : report.sensitivity) {
    if (key.values.size() > 1) table.rows.push_back({key.key, values_text(key, report.best.front().candidate.goals[0])});
  }
  return table;
}

std::string may_run_out_text(const MostNeed& most) {
  return fmt::format(
      "evaluated, may run out of memory: they fit, but not if they need {:.0f} % more, as runs did ({}); --fits likely takes them",
      100 * (most.factor - 1), most.basis);
}

Table count_table(const TuneReport& report) {
  Table table{.columns = {{"points"}, {"what became of them", Align::left}}};
  const auto add = [&](std::uint64_t points, std::string what) {
    if (points > 0) table.rows.push_back({fmt::format("{}", points), std::move(what)});
  };
  add(report.evaluated - report.unfit, "evaluated, fit");
  add(report.may_run_out, may_run_out_text(report.most_need));
  add(report.unfit - report.may_run_out, "evaluated, do not fit");
  for (std::size_t i = 0; i < cut_count; ++i) add(report.cut[i], fmt::format("left out: {}", name_of(static_cast<Cut>(i))));
  for (const RefusedPoints& rule : report.refused) add(rule.points, fmt::format("refused: {}, e.g. {}", rule.key, rule.example));
  add(report.points - report.decided, "not decided: the search was ended");
  add(report.points, "in all");
  return table;
}

void print_nearest(const TuneReport& report, std::ostream& out) {
  const bool ended = report.decided < report.points;
  if (ended) fmt::print(out, "\nno plan that fits was found before the search was ended\n");
  if (!report.nearest) return ended ? void() : fmt::print(out, "\nno plan fits: every point is refused\n");
  const Candidate& nearest = report.nearest->candidate;
  if (report.may_run_out > 0)
    fmt::print(out, "\nno plan surely fits; --fits likely takes the {} that may run out of memory\n", report.may_run_out);
  if (nearest.lacks_bytes > 0)
    return fmt::print(out, "\n{} nearest lacks {} ({})\n", ended ? "the" : "no plan fits: the", bytes_text(nearest.lacks_bytes),
                      report.nearest->text);
  fmt::print(out, "\n{} nearest ({}) needs more memory than its hosts have\n", ended ? "the" : "no plan fits: the", report.nearest->text);
}

void print_settings(const TunedPlan& plan, std::ostream& out) {
  std::vector<std::string> sets;
  for (const auto& [key, value] : plan.settings)
    sets.push_back(value.find_first_of(" {[") == std::string::npos ? fmt::format("--set {}={}", key, value)
                                                                   : fmt::format("--set '{}={}'", key, value));
  fmt::print(out, "\nthe best: {}\n", fmt::join(sets, " "));
}

class TuneConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<TuneReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const TuneReport& tune = report.get<TuneReport>();
    fmt::print(out, "{}: {} on {}\n", report.job.name, report.job.model, report.job.cluster);
    if (tune.best.empty()) {
      print_nearest(tune, out);
    } else {
      print(best_table(tune), report.colour, out);
      if (any_twins(tune))
        fmt::print(
            out, "\ntwins: how many more plans are the same in every number; they differ in the keys named, which have no effect there\n");
      print_settings(tune.best.front(), out);
      print_objections(tune, out);
      for (const std::string& line : tune.order_changes) fmt::print(out, "\nthe simulation puts them in another order: {}\n", line);
      if (tune.front.size() > 1) {
        fmt::print(out, "\n{} plans that no other beats in every goal\n", tune.front.size());
        print(front_table(tune), report.colour, out);
        if (tune.front.size() > shown_of_front)
          fmt::print(out, "... and {} more: tune.csv of -o DIR\n", tune.front.size() - shown_of_front);
      }
      print(sensitivity_table(tune), report.colour, out);
    }
    print(count_table(tune), report.colour, out);
  }
};

const ReporterRegistry::Registration<TuneConsole> tune_console_registration("tune-console");

}  // namespace
}  // namespace rehearse::sim

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "config/yaml_text.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/whole_job_options.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/wholejob/simulate_run.hpp"
#include "sim/wholejob/struck_step.hpp"

namespace rehearse::cli {
namespace {

struct ReplayOptions {
  std::shared_ptr<JobOptions> job;
  std::string faults, step;
  std::vector<std::string> timelines;
  bool lines = false;
};

// Simulates the step in a process of its own, which writes its files: SimGrid allows one simulation per process.
sim::StruckStep simulate_struck_step(const sim::WholeJobPlan& plan, const sim::History& history, int number, const std::string& folder) {
  const sim::HistoryEntry& failure = sim::failure_in_step(history, number);
  const sim::StepUnderWay& step = *failure.step_under_way;
  sim::StruckStep struck{.failure = number,
                         .at = failure.at,
                         .what = {},
                         .steps = failure.steps + failure.lost_steps,
                         .spent = step.spent,
                         .all = step.all,
                         .folder = fmt::format("{}/failure-{}", folder, number)};
  struck.step_s = sim::simulated_step_s(*plan.job, step.state);
  struck.at_s = step.done * struck.step_s;
  const sim::Job job = sim::struck_job(plan, step, *failure.fault, struck.at_s);
  struck.what = job.system.simulation.faults.failures.front().text;
  const std::vector<double> answer = sim::run_in_child([&]() -> std::vector<double> {
    const sim::Simulation simulation = sim::simulate(job);
    const sim::Aftermath& after = simulation.aftermath.value();
    const sim::OutputFolder out(struck.folder);
    static_cast<void>(out.write(sim::Report(sim::summary_of(job)).add(&simulation.timeline).add(&after)));
    return {after.detected ? 1.0 : 0.0, after.lost_s};
  });
  struck.detected = answer.at(0) > 0;
  struck.lost_s = answer.at(1);
  return struck;
}

std::vector<sim::StruckStep> struck_steps(const sim::WholeJobPlan& plan, const ReplayOptions& options) {
  constexpr int most = 1'000'000;
  if (options.timelines.empty()) return {};
  const std::string& folder = options.job->folder();
  if (folder.empty()) throw config::InputError("--timeline writes files", "say where with -o DIR");
  const sim::History history = sim::history_of(plan, plan.job->system.simulation.seed);
  std::vector<sim::StruckStep> steps;
  for (const std::string& number : options.timelines)
    steps.push_back(simulate_struck_step(plan, history, parse_count("--timeline", number, 1, most), folder));
  return steps;
}

Exit replay(const ReplayOptions& options) {
  auto settings = settings_of_step(options.step);
  settings.emplace_back("faults", config::yaml_text(options.faults));
  const sim::Job job = options.job->load(settings);
  sim::WholeJobReport report = planned(plan_with_step(job, options.step));
  report.replay = true;
  report.struck_steps = struck_steps(report.plan, options);
  report.runs.push_back(sim::simulate_run(report.plan, job.system.simulation.seed, &report.history, &report.states));
  const std::string reporter = options.lines ? "whole-job-history" : "whole-job-console";
  options.job->deliver_as(sim::Report(sim::summary_of(job)).add(&report), reporter, "whole-job-json");
  return verdict(report);
}

class Replay final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Play a history of faults against a job, event by event"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse replay llama3-405b-54-days history.csv\n"
           "  rehearse replay job.yaml last-month.csv --set recovery.policy=shrink --lines\n"
           "  rehearse replay job.yaml rail-switch-flapping -o out      out/history.jsonl holds the events\n"
           "  rehearse replay job.yaml last-month.csv --timeline 1 --timeline 3 -o out     out/failure-3/timeline.json: the step it "
           "struck\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<ReplayOptions>();
    options->job = JobOptions::declare(app);
    app.add_option("FAULTS", options->faults, "A trace (.csv), a fault scenario (.yaml), or the name of a ready-made one")->required();
    declare_step(app, options->step);
    app.add_option(
           "--timeline", options->timelines,
           "Simulate the step that the N-th failure strikes and write its timeline below the folder of -o; may be given several times")
        ->type_name("N")
        ->allow_extra_args(false);
    app.add_flag("--lines", options->lines, "Print the events as JSON Lines instead of tables");
    return [options] { return replay(*options); };
  }
};

const CommandRegistry::Registration<Replay> replay_registration("replay");

}  // namespace
}  // namespace rehearse::cli

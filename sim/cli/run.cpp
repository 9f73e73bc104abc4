#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <thread>

#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/whole_job_options.hpp"
#include "sim/wholejob/simulate_run.hpp"

namespace rehearse::cli {
namespace {

struct RunOptions {
  std::shared_ptr<JobOptions> job;
  std::string step, runs = "1", jobs, sweep;
};

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

// KEY=V1,V2,...; commas in brackets belong to the value.
Sweep parse_sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw config::InputError(fmt::format("--sweep takes key=value,value,..., not '{}'", text),
                             "for example --sweep checkpoint.interval=10,20,40");
  }
  Sweep sweep{text.substr(0, equals), {""}};
  int depth = 0;
  for (const char c : text.substr(equals + 1)) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0) {
      sweep.values.emplace_back();
    } else {
      sweep.values.back() += c;
    }
  }
  return sweep;
}

int jobs_of(const RunOptions& options) {
  constexpr int most = 256;
  if (!options.jobs.empty()) return parse_count("--jobs", options.jobs, 1, most);
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(most)));
}

std::vector<sim::RunResult> simulate(const sim::WholeJobPlan& plan, const RunOptions& options, int runs,
                                     sim::StateCounts* states = nullptr) {
  ProgressBar bar("running");
  return sim::simulate_runs(
      plan, plan.job->system.simulation.seed, runs, jobs_of(options), [&](double share) { bar.update(share); }, states);
}

Exit run_sweep(const RunOptions& options, int runs) {
  const Sweep sweep = parse_sweep(options.sweep);
  sim::WholeJobReport report;
  report.sweep_key = sweep.key;
  const sim::Job base = options.job->load();
  Exit exit = Exit::fine;
  for (const std::string& value : sweep.values) {
    const sim::Job job = options.job->load({{sweep.key, value}});
    const sim::WholeJobPlan plan = plan_with_step(job, options.step);
    const std::vector<sim::RunResult> results = simulate(plan, options, runs);
    sim::SweepPoint point{value, plan, sim::formula(plan.formula_input),
                          sim::statistics_over(results, [](const sim::RunResult& run) { return run.ettr(); }),
                          sim::statistics_over(results, [](const sim::RunResult& run) { return sim::to_s(run.wall); })};
    point.plan.job = nullptr;
    if (fit_verdict(job) != Exit::fine) exit = Exit::answer_is_no;
    report.sweep.push_back(std::move(point));
  }
  options.job->deliver(sim::Report(sim::summary_of(base), "whole-job-").add(&report));
  return exit;
}

Exit run(const RunOptions& options) {
  constexpr int most_runs = 1'000'000;
  const int runs = parse_count("--runs", options.runs, 1, most_runs);
  static_cast<void>(jobs_of(options));  // refused also where one run needs none
  if (!options.sweep.empty()) return run_sweep(options, runs);
  const sim::Job job = options.job->load();
  sim::WholeJobReport report = planned(plan_with_step(job, options.step));
  if (runs == 1) {
    report.runs.push_back(sim::simulate_run(report.plan, job.system.simulation.seed, &report.history, &report.states));
  } else {
    report.runs = simulate(report.plan, options, runs, &report.states);
  }
  options.job->deliver(sim::Report(sim::summary_of(job), "whole-job-").add(&report));
  return verdict(report);
}

class Run final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Run the whole training job with failures, checkpoints and recovery"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse run llama3-405b-54-days --runs 100\n"
           "  rehearse run job.yaml --step '27.8 s' --set 'faults={all: {source: poisson, rate: 0.005 /day}}'\n"
           "  rehearse run job.yaml --sweep checkpoint.interval=5,10,20,40,auto --runs 50\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<RunOptions>();
    options->job = JobOptions::declare(app);
    declare_step(app, options->step);
    app.add_option("--runs", options->runs, "Runs, with seeds from the job's on; means and percentiles over them")->type_name("N");
    app.add_option("--jobs", options->jobs, "Runs at the same time, each in a process of its own; default: as many as there are processors")
        ->type_name("N");
    app.add_option("--sweep", options->sweep, "Run for each value of a key and compare, e.g. checkpoint.interval=10,20,40")
        ->type_name("KEY=V,V,...");
    return [options] { return run(*options); };
  }
};

const CommandRegistry::Registration<Run> run_registration("run");

}  // namespace
}  // namespace rehearse::cli

#include "sim/compare/compare.hpp"

#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <thread>

#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/trace_options.hpp"
#include "sim/cli/whole_job_options.hpp"
#include "sim/compare/methods.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/report/expected_band.hpp"
#include "sim/wholejob/simulate_run.hpp"

namespace rehearse::cli {
namespace {

Exit within_tolerance(double difference, double tolerance) {
  if (std::abs(difference) <= tolerance) return Exit::fine;
  spdlog::warn("simulated and analytic step differ by {:+.2f} %, more than the {} % allowed", 100 * difference, 100 * tolerance);
  return Exit::answer_is_no;
}

sim::FeatureEffects run_features(const sim::Job& job) {
  ProgressBar bar("features");
  return sim::effects_of_features(job, [&](double share) { bar.update(share); });
}

struct CompareOptions {
  std::shared_ptr<JobOptions> job;
  std::shared_ptr<TraceOptions> traces;
  std::string tolerance, runs = "20";
  bool whole = false, features = false;
};

// The whole job, simulated with several seeds, beside (36)-(41).
Exit compare_whole(CompareOptions& options) {
  constexpr int most_runs = 1'000'000;
  const int runs = parse_count("--runs", options.runs, 1, most_runs);
  const double tolerance = options.tolerance.empty() ? INFINITY : parse_percentage("--tolerance", options.tolerance);
  const sim::Job job = options.job->load();
  sim::WholeJobReport report = planned(plan_with_step(job, ""));
  {
    ProgressBar bar("comparing");
    const int processes = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    report.runs = sim::simulate_runs(report.plan, job.system.simulation.seed, runs, processes, [&](double share) { bar.update(share); });
  }
  options.job->deliver(sim::Report(sim::summary_of(job), "whole-job-").add(&report));
  const double ettr = sim::statistics_over(report.runs, [](const sim::RunResult& run) { return run.ettr(); }).mean;
  if (std::abs(ettr - report.formula.ettr) <= tolerance) return cli::verdict(report);
  spdlog::warn("simulated and predicted ETTR differ by {:+.2f} points, more than the {} allowed", 100 * (ettr - report.formula.ettr),
               100 * tolerance);
  return Exit::answer_is_no;
}

Exit compare(CompareOptions& all) {
  if (all.whole) return compare_whole(all);
  JobOptions& options = *all.job;
  all.traces->check();
  const std::string& tolerance_text = all.tolerance;
  const double tolerance = tolerance_text.empty() ? INFINITY : parse_percentage("--tolerance", tolerance_text);
  const sim::Job job = options.load();
  if (!job.system.simulation.faults.failures.empty()) {
    throw config::InputError(
        "'" + job.system.simulation.faults.failures.front().text + "': the formula knows no step in which something fails",
        "rehearse simulate shows it");
  }
  const sim::CompiledJob compiled(job);
  sim::AllocatorTrainings trainings(job, *compiled.into_layers);
  sim::Comparison comparison = sim::begin_comparison(job, compiled, trainings);
  warn_of_shortage(comparison.analytic);
  sim::FeatureEffects effects;
  if (all.features) effects = run_features(job);
  {
    ProgressBar bar("comparing");
    sim::finish_comparison(
        job, compiled, trainings, [&](double share) { bar.update(share); }, comparison);
  }
  all.traces->write(sim::summary_of(job), comparison.timeline);
  options.deliver(sim::Report(sim::summary_of(job))
                      .own(sim::expected_bands(job, comparison.needed_share))
                      .own(sim::StepResults{{&comparison.analytic, &comparison.simulated, &comparison.critical}})
                      .add(&comparison.timeline)
                      .own(all.traces->style())
                      .add(&comparison)
                      .add(all.features ? &effects : nullptr));
  const Exit fits = fit_verdict({&comparison.analytic, &comparison.simulated});
  const Exit agrees = within_tolerance(comparison.difference, tolerance);
  return fits == Exit::fine ? agrees : fits;
}

// Each in a process of its own. Fits as far as the last one does.
Exit compare_methods(JobOptions& options, const std::string& list) {
  const std::vector<sim::Method> methods = sim::parse_methods(list);
  const sim::Job base = options.load({});
  if (!base.workload.model.moe) {
    throw config::InputError("--methods compares ways to run layers with experts, and model '" + base.workload.model.name + "' has none");
  }
  sim::MethodResults results;
  for (const sim::Method& method : methods) results.push_back({method.name, sim::simulate_in_child(options.load(method.sets))});
  options.deliver(sim::Report(sim::summary_of(base), "methods ").add(&results));
  return results.back().simulated.memory.fits() ? Exit::fine : Exit::answer_is_no;
}

class Compare final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Predict and simulate a step, or a whole job; explain the difference"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse compare llama2-70b-128-a100 -o out\n"
           "  rehearse compare job.yaml --tolerance 5          exit code 1 when they differ by more than 5 %\n"
           "  rehearse compare job.yaml --features             what each of its features gains or costs, formula against timeline\n"
           "  rehearse compare llama3-405b-54-days --whole     the whole job: where its time goes against the formula\n"
           "  rehearse compare memfine-64g --methods full-recompute,chunks=8,chunks=auto\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<CompareOptions>();
    options->job = JobOptions::declare(app);
    options->job->declare_faults(app);
    options->traces = TraceOptions::declare(app);
    auto* tolerance = app.add_option("--tolerance", options->tolerance,
                                     "Largest difference, in percent of the analytic step (--whole: in points of ETTR); exit code 1 beyond")
                          ->type_name("PCT");
    auto* features =
        app.add_flag("--features", options->features, "Also simulate the job without each of its features: what each gains or costs");
    auto* whole = app.add_flag("--whole", options->whole, "The whole job: its ETTR simulated with several seeds and by formula");
    app.add_option("--runs", options->runs, "With --whole: so many seeds, from the job's on; default 20")->type_name("N")->needs(whole);
    auto methods = std::make_shared<std::string>();
    app.add_option(
           "--methods", *methods,
           "Simulate the job under several methods instead, side by side: full-recompute, chunks=N, chunks=auto (layers with experts); "
           "of a job that serves: apart, together")
        ->type_name("LIST")
        ->check(CLI::Validator([](const std::string& list) { return list.empty() ? "names no method" : ""; }, ""))
        ->excludes(whole)
        ->excludes(features)
        ->excludes(tolerance);
    whole->excludes(features)->excludes("--fault");
    for (const char* trace : {"--trace-per-rank", "--trace-args"}) app.get_option(trace)->excludes(whole)->excludes("--methods");
    return [options, methods] { return methods->empty() ? compare(*options) : compare_methods(*options->job, *methods); };
  }
};

const CommandRegistry::Registration<Compare> compare_registration("compare");

}  // namespace
}  // namespace rehearse::cli

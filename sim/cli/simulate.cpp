#include "sim/engine/simulate.hpp"

#include <CLI/App.hpp>
#include <utility>

#include "sim/cli/collective_options.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/trace_options.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/report/expected_band.hpp"
#include "sim/report/training_cost.hpp"

namespace rehearse::cli {
namespace {

Exit simulate(JobOptions& options, TraceOptions& traces) {
  traces.check();
  const sim::Job job = options.load();
  const sim::CompiledJob compiled(job);
  sim::AllocatorTrainings trainings(job, *compiled.into_layers);
  sim::StepResult formula = memory_by_formula(job, *compiled.into_layers);
  const double needed_share = sim::needed_share(formula.memory);
  trainings.add_to(formula.memory);
  warn_of_shortage(formula);
  const bool timeline = options.writes_files() || traces.per_rank();
  sim::Simulation simulation = [&] {
    ProgressBar bar("simulating");
    return sim::simulate(
        job, *compiled.for_simulation, [&](double share) { bar.update(share); }, timeline);
  }();
  sim::Report report(sim::summary_of(job));
  report.add(simulation.aftermath || timeline ? &simulation.timeline : nullptr).own(traces.style());
  traces.write(report.job, simulation.timeline);
  if (simulation.aftermath) {
    report.family = "failure-";
    options.deliver(report.add(&*simulation.aftermath));
    return Exit::fine;
  }
  trainings.add_to(simulation.result);
  options.deliver(
      report.own(sim::expected_bands(job, needed_share)).own(sim::training_cost(job)).own(sim::StepResults{{&simulation.result}}));
  return fit_verdict({&simulation.result});
}

Exit simulate_collective(JobOptions& options, const CollectiveOptions& collective) {
  const sim::Job job = collective.load(options);
  const sim::LoneCollectives results = collective.run(job);
  sim::JobSummary about;
  about.cluster = job.system.cluster.name;
  about.gpus = job.system.gpus;
  options.deliver(sim::Report(about, "collective-").add(&results));
  return Exit::fine;
}

class Simulate final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Simulate one training step (or more) on the job's cluster"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse simulate llama2-70b-128-a100 -o out     then open out/timeline.json in https://ui.perfetto.dev\n"
           "  rehearse simulate job.yaml --trace-per-rank traces --trace-gzip          a trace for each rank, for tools that compare "
           "ranks\n"
           "  rehearse simulate job.yaml --set simulation.ranks=all\n"
           "  rehearse simulate job.yaml --set simulation.collectives=step --seed 7\n"
           "  rehearse simulate job.yaml --fault 'gpu 5 slow 1.3'                a straggler\n"
           "  rehearse simulate job.yaml --fault 'gpu 5 at 3.2 s' -o out         a GPU dies; the timeline shows who waits for it\n"
           "  rehearse simulate job.yaml --fault 'gpus 1 % slow 1.1 to 1.5'      one GPU in a hundred, drawn with the seed\n"
           "  rehearse simulate job.yaml --fault 'rail 0 down from 1 s for 20 ms every 0.5 s'\n"
           "  rehearse simulate job.yaml --faults rail-switch-flapping --at '65 min'\n"
           "  rehearse simulate dgx-h100-ndr400 --gpus 64 --collective all-reduce --size 128MiB      as nccl-tests measure it\n"
           "  rehearse simulate dgx-h100-ndr400 --gpus 64 --collective all-gather --size 8..8GiB --algorithm ring\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = JobOptions::declare(app);
    options->declare_faults(app);
    auto traces = TraceOptions::declare(app);
    auto collective = CollectiveOptions::declare(app);
    app.get_option("--trace-per-rank")->excludes("--collective");
    app.get_option("--trace-args")->excludes("--collective");
    return [options, traces, collective] {
      return collective->given() ? simulate_collective(*options, *collective) : simulate(*options, *traces);
    };
  }
};

const CommandRegistry::Registration<Simulate> simulate_registration("simulate");

}  // namespace
}  // namespace rehearse::cli

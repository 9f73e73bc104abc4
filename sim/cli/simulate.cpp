#include "sim/engine/simulate.hpp"

#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/progress_bar.hpp"

namespace rehearse::cli {
namespace {

Exit simulate(JobOptions& options) {
  const sim::Job job = options.load();
  warn_of_shortage(job);
  const sim::Simulation simulation = [&] {
    ProgressBar bar("simulating");
    return sim::simulate(job, [&](double share) { bar.update(share); });
  }();
  if (simulation.aftermath) {
    options.deliver({.job = sim::summary_of(job), .timeline = &simulation.timeline, .aftermath = &*simulation.aftermath}, "failure-");
    return Exit::fine;
  }
  options.deliver({.job = sim::summary_of(job), .results = {&simulation.result}, .timeline = &simulation.timeline});
  return fit_verdict({&simulation.result});
}

class Simulate final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Simulate one training step (or more) on the job's cluster"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse simulate llama2-70b-128-a100 -o out     then open out/timeline.json in https://ui.perfetto.dev\n"
           "  rehearse simulate job.yaml --set simulation.ranks=all\n"
           "  rehearse simulate job.yaml --set simulation.collectives=step --seed 7\n"
           "  rehearse simulate job.yaml --fault 'gpu 5 slow 1.3'                a straggler\n"
           "  rehearse simulate job.yaml --fault 'gpu 5 at 3.2 s' -o out         a GPU dies; the timeline shows who waits for it\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = JobOptions::declare(app);
    options->declare_faults(app);
    return [options] { return simulate(*options); };
  }
};

const CommandRegistry::Registration<Simulate> registration("simulate");

}  // namespace
}  // namespace rehearse::cli

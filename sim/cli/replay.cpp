#include <CLI/App.hpp>

#include "sim/cli/command.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/whole_job_options.hpp"
#include "sim/wholejob/simulate_run.hpp"

namespace rehearse::cli {
namespace {

struct ReplayOptions {
  std::shared_ptr<JobOptions> job;
  std::string faults, step;
  bool lines = false;
};

// As a value of the key `faults`: a path or a name, in quotes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

Exit replay(const ReplayOptions& options) {
  const sim::Job job = options.job->load({{"faults", quoted(options.faults)}});
  sim::WholeJobReport report = planned(plan_with_step(job, options.step));
  report.replay = true;
  report.runs.push_back(sim::simulate_run(report.plan, job.simulation.seed, &report.history));
  const std::string reporter = options.lines ? "whole-job-history" : "whole-job-console";
  options.job->deliver_as({.job = sim::summary_of(job), .whole_job = &report}, reporter, "whole-job-json");
  return verdict(report);
}

class Replay final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Play a history of faults against a job, event by event"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse replay llama3-405b-54-days history.csv\n"
           "  rehearse replay job.yaml last-month.csv --set recovery.policy=shrink --lines\n"
           "  rehearse replay job.yaml rail-switch-flapping -o out      out/history.jsonl holds the events\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<ReplayOptions>();
    options->job = JobOptions::declare(app);
    app.add_option("FAULTS", options->faults, "A trace (.csv), a fault scenario (.yaml), or the name of a ready-made one")->required();
    declare_step(app, options->step);
    app.add_flag("--lines", options->lines, "Print the events as JSON Lines instead of tables");
    return [options] { return replay(*options); };
  }
};

const CommandRegistry::Registration<Replay> registration("replay");

}  // namespace
}  // namespace rehearse::cli

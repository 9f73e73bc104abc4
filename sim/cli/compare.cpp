#include "sim/compare/compare.hpp"

#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <cmath>

#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/job/refusal.hpp"

namespace rehearse::cli {
namespace {

sim::Comparison run_comparison(const sim::Job& job) {
  ProgressBar bar("comparing");
  return sim::compare(job, [&](double share) { bar.update(share); });
}

Exit verdict(double difference, double tolerance) {
  if (std::abs(difference) <= tolerance) return Exit::fine;
  spdlog::warn("simulated and analytic step differ by {:+.2f} %, more than the {} % allowed", 100 * difference, 100 * tolerance);
  return Exit::answer_is_no;
}

Exit compare(JobOptions& options, const std::string& tolerance_text) {
  const double tolerance = tolerance_text.empty() ? INFINITY : parse_percentage("--tolerance", tolerance_text);
  const sim::Job job = options.load();
  if (!job.simulation.faults.failures.empty()) {
    sim::refuse(job.resolved, "simulation.faults", "the formula knows no step in which something fails", "rehearse simulate shows it");
  }
  warn_of_shortage(job);
  const sim::Comparison comparison = run_comparison(job);
  options.deliver({.job = sim::summary_of(job),
                   .results = {&comparison.analytic, &comparison.simulated, &comparison.critical},
                   .timeline = &comparison.timeline,
                   .comparison = &comparison});
  const Exit fits = fit_verdict({&comparison.analytic, &comparison.simulated});
  const Exit agrees = verdict(comparison.difference, tolerance);
  return fits == Exit::fine ? agrees : fits;
}

class Compare final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Predict and simulate a step; explain the difference phase by phase"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse compare llama2-70b-128-a100 -o out\n"
           "  rehearse compare job.yaml --tolerance 5          exit code 1 when they differ by more than 5 %\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto tolerance = std::make_shared<std::string>();
    auto options = JobOptions::declare(app);
    options->declare_faults(app);
    app.add_option("--tolerance", *tolerance, "Largest difference of the step, in percent of the analytic one; exit code 1 beyond")
        ->type_name("PCT");
    return [options, tolerance] { return compare(*options, *tolerance); };
  }
};

const CommandRegistry::Registration<Compare> registration("compare");

}  // namespace
}  // namespace rehearse::cli

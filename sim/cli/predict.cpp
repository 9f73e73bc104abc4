#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <memory>

#include "config/table.hpp"
#include "sim/api/prediction.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"

namespace rehearse::cli {
namespace {

Exit predict(JobOptions& options, double price) {
  const sim::Job job = options.load();
  const sim::StepFaults& faults = job.system.simulation.faults;
  if (!faults.failures.empty() || !faults.slow.none())
    spdlog::warn("the formula does not know simulation.faults: this is the healthy step");
  const sim::Report report = sim::prediction(job, price);
  options.deliver(report);
  return fit_verdict({&report.get<sim::StepResult>()});
}

class Predict final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Predict one training step by formula, in milliseconds"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse predict llama2-70b-128-a100\n"
           "  rehearse predict job.yaml --set parallel.tp=4 --set batch.global=512\n"
           "  rehearse predict job.yaml --set training.tokens=15e12 --price 2.5     days, GPU-hours and money as well\n"
           "  rehearse predict job.yaml --json | jq .results.analytic.step_s\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = JobOptions::declare(app);
    auto price = std::make_shared<double>(0);
    app.add_option("--price", *price, "Of a GPU for an hour, in any currency: what training.tokens, .steps or .time cost")
        ->check(CLI::Validator(
            [](const std::string& text) {
              const auto number = config::number_in(text);
              return number && *number >= 0 && *number <= 1e6 ? "" : "takes a number from 0 to 1000000, such as 2.5";
            },
            ""));
    return [options, price] { return predict(*options, *price); };
  }
};

const CommandRegistry::Registration<Predict> predict_registration("predict");

}  // namespace
}  // namespace rehearse::cli

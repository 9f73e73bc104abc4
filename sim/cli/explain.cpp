#include "sim/compare/explain.hpp"

#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"

namespace rehearse::cli {
namespace {

Exit explain(JobOptions& options) {
  const sim::Job job = options.load();
  const sim::Explanation explanation = sim::explain(job);
  options.deliver(sim::Report(sim::summary_of(job)).own(sim::StepResults{{&explanation.now}}).add(&explanation));
  return fit_verdict({&explanation.now});
}

class Explain final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "What switching each feature of a job would change, best first"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse explain llama2-70b-128-a100\n"
           "  rehearse explain job.yaml --set recompute=full -o out      also as out/explain.csv\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    return [options = JobOptions::declare(app)] { return explain(*options); };
  }
};

const CommandRegistry::Registration<Explain> explain_registration("explain");

}  // namespace
}  // namespace rehearse::cli

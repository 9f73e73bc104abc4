#include "sim/cli/whole_job_options.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "config/quantity.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/cli/fit.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/memory/allocator_peaks.hpp"

namespace rehearse::cli {
namespace {

double given_step_s(const std::string& text) {
  std::string why;
  const auto seconds = config::parse_quantity(text, config::Dimension::time, why);
  if (!seconds) throw config::InputError(fmt::format("--step takes predicted, simulated or a time, not '{}': {}", text, why));
  if (*seconds < 1e-6 || *seconds > sim::longest_job_s)
    throw config::InputError(fmt::format("--step must be between 1 us and 100 years, not {}", text));
  return *seconds;
}

}  // namespace

void declare_step(CLI::App& app, std::string& step) {
  app.add_option(
         "--step", step,
         "Time of one step: predicted (by formula), simulated, or a time such as '27.8 s'; default: as the job says, else predicted")
      ->type_name("HOW");
}

std::vector<std::pair<std::string, std::string>> settings_of_step(const std::string& step) {
  if (step.empty() || step == "predicted" || step == "simulated") return {};
  static_cast<void>(given_step_s(step));
  return {{"training.step", step}};
}

sim::WholeJobPlan plan_with_step(const sim::Job& job, const std::string& step) {
  if (step.empty() && job.whole.step_s > 0) return sim::plan_whole_job(job, job.whole.step_s, "given");
  if (step.empty() || step == "predicted") return sim::plan_whole_job(job, sim::with_allocator(job, sim::predict(job)).step_s, "predicted");
  if (step == "simulated") return sim::plan_whole_job(job, sim::simulated_step_s(job, {}), "simulated");
  return sim::plan_whole_job(job, given_step_s(step), "given");
}

sim::WholeJobReport planned(const sim::WholeJobPlan& plan) {
  sim::WholeJobReport report;
  report.plan = plan;
  report.formula = sim::formula(plan.formula_input);
  return report;
}

Exit verdict(const sim::WholeJobReport& report) {
  const auto finished = [](const sim::RunResult& run) { return run.finished == 1; };
  const Exit ends = std::ranges::all_of(report.runs, finished) ? Exit::fine : Exit::answer_is_no;
  const Exit fits = fit_verdict(*report.plan.job);
  return fits == Exit::fine ? ends : fits;
}

}  // namespace rehearse::cli

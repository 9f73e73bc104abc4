#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <optional>
#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/set_option.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/whole_file.hpp"
#include "sim/validate/regret.hpp"
#include "sim/validate/validation_report.hpp"

namespace rehearse::cli {
namespace {

// Percentage points of error below which a case counts as unchanged: what tables show.
constexpr double change_threshold_pct = 0.05;

struct ValidateOptions {
  std::vector<std::string> files, sets;
  std::string csv, compare_to;
  bool simulate = false, json = false, summary = false, regret = false;
};

sim::Validation run(const ValidateOptions& options) {
  const std::vector<sim::MeasuredCase> cases = sim::read_cases(options.files);
  sim::ValidationOptions how{.simulate = options.simulate, .sets = {}};
  for (const std::string& set : options.sets) how.sets.push_back(parse_set(set));
  ProgressBar bar("validating");
  sim::Validation validation{
      .outcomes = sim::run_cases(cases, how, [&](double share) { bar.update(share); }), .summaries = {}, .verdicts = {}};
  validation.summaries = sim::summarise_errors(validation.outcomes);
  validation.verdicts = sim::summarise_verdicts(validation.outcomes);
  return validation;
}

void write_csv(const sim::Report& report, const std::string& path) {
  sim::SignalsHeld signals;
  sim::WholeFiles csv(signals);
  csv.write(path, [&](std::ostream& out) { sim::ReporterRegistry::get("validation-csv").write(report, out); });
  for (const std::string& written : csv.put_in_place()) spdlog::info("wrote {}", written);
}

Exit validate(const ValidateOptions& options) {
  std::optional<sim::Json> before;
  if (!options.compare_to.empty()) before = sim::read_stored_validation(options.compare_to);
  const sim::Validation validation = run(options);
  sim::Report report;
  report.colour = colour_allowed(Stream::out);
  report.add(&validation);
  if (options.summary) report.own(sim::SummaryAlone{});
  if (options.regret) report.own(sim::regrets_of(validation.outcomes));
  if (before) report.own(sim::validation_changes(*before, sim::validation_json(validation), change_threshold_pct));
  if (!options.csv.empty()) write_csv(report, options.csv);
  std::ostringstream text;
  const char* reporter = options.json ? "validation-json" : options.regret ? "validation-regret" : "validation-console";
  sim::ReporterRegistry::get(reporter).write(report, text);
  print_result(text.str());
  const bool fine = std::ranges::all_of(validation.outcomes, [](const sim::Outcome& outcome) { return outcome.failed.empty(); });
  return fine ? Exit::fine : Exit::answer_is_no;
}

class Validate final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Run measured cases and print how far predictions are off"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse validate tests/measured/cases/korthikanti.yaml\n"
           "  rehearse validate tests/measured/cases/*.yaml --summary\n"
           "  rehearse validate tests/measured/cases/*.yaml --regret\n"
           "  rehearse validate cases.yaml --simulate -o cases.csv\n"
           "  rehearse validate cases.yaml --json > before.json; rehearse validate cases.yaml --compare-to before.json\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<ValidateOptions>();
    app.add_option("FILE", options->files, "Case files: lists of jobs with what was measured (docs/validation.md)")->required();
    app.add_flag("--simulate", options->simulate,
                 "Simulate each case as well: folded, pipelines stage by stage unless the case says otherwise");
    app.add_option("--set", options->sets, "Set a key of every job, e.g. simulation.granularity=layer; may be given several times")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_flag("--summary", options->summary, "Print the table per group alone");
    app.add_flag("--regret", options->regret,
                 "Where cases share a sweep: what the plan that we would have picked costs against the best one");
    app.add_flag("--json", options->json, "Print JSON instead of tables");
    app.add_option("-o,--csv", options->csv, "Write one row per case and metric into this file")->type_name("FILE");
    app.add_option("--compare-to", options->compare_to, "Say what changed since this validation, stored with --json")->type_name("FILE");
    return [options] { return validate(*options); };
  }
};

const CommandRegistry::Registration<Validate> validate_registration("validate");

}  // namespace
}  // namespace rehearse::cli

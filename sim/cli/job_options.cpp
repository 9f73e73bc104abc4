#include "sim/cli/job_options.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <sstream>
#include <utility>

#include "sim/cli/number.hpp"
#include "sim/cli/terminal.hpp"

namespace rehearse::cli {
namespace {

std::pair<std::string, std::string> parse_set(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw config::InputError(fmt::format("--set takes key=value, not '{}'", text), "for example --set parallel.tp=4");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

std::shared_ptr<JobOptions> JobOptions::declare(CLI::App& app) {
  auto options = std::make_shared<JobOptions>();
  app.add_option("JOB", options->path_, "A job file, or the name of a ready-made job (rehearse list jobs)")->required();
  app.add_option("--set", options->sets_, "Set a key of the job, e.g. parallel.tp=4; may be given several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--seed", options->seed_, "Seed of everything random; default: the job's")->type_name("N");
  app.add_flag("--json", options->json_, "Print result.json instead of tables");
  app.add_option("-o,--output", options->output_, "Write result.json, phases.csv, resolved-job.yaml and more into this folder")
      ->type_name("DIR");
  return options;
}

sim::Job JobOptions::load() {
  if (!output_.empty()) folder_.emplace(output_);
  sim::JobRequest request{.path = path_, .sets = {}, .seed = {}};
  for (const std::string& text : sets_) request.sets.push_back(parse_set(text));
  if (!seed_.empty()) request.seed = parse_seed(seed_);
  return sim::load_job(request);
}

void JobOptions::deliver(sim::Report report) const {
  if (folder_) {
    for (const std::string& path : folder_->write(report)) spdlog::info("wrote {}", path);
  }
  report.colour = colour_allowed(Stream::out);
  std::ostringstream text;
  sim::ReporterRegistry::get(json_ ? "json" : "console").write(report, text);
  print_result(text.str());
}

}  // namespace rehearse::cli

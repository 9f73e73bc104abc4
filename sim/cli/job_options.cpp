#include "sim/cli/job_options.hpp"

#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <map>
#include <sstream>

#include "config/data_dir.hpp"
#include "config/tree.hpp"
#include "config/yaml_text.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/set_option.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/report/page/page.hpp"

namespace rehearse::cli {

namespace {

// Pipes (`<(...)` of a shell) and devices give what they hold once.
bool is_read_once(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status);
}

const std::string& text_of_pipe(const std::string& path) {
  static std::map<std::string, std::string> texts;
  const auto known = texts.find(path);
  return known != texts.end() ? known->second : texts.emplace(path, config::read_file_text(path)).first->second;
}

}  // namespace

sim::JobRequest job_named(const std::string& path_or_name) {
  if (path_or_name == "-") return {.path = "stdin", .sets = {}, .seed = {}, .faults = {}, .text = text_of_pipe("/dev/stdin")};
  if (is_read_once(path_or_name)) return {.path = path_or_name, .sets = {}, .seed = {}, .faults = {}, .text = text_of_pipe(path_or_name)};
  return {.path = path_or_name, .sets = {}, .seed = {}};
}

std::shared_ptr<JobOptions> JobOptions::declare(CLI::App& app) {
  auto options = std::make_shared<JobOptions>();
  app.add_option("JOB", options->path_, "A job file, the name of a ready-made job (rehearse list jobs), or - for standard input")
      ->required();
  app.add_option("--set", options->sets_, "Set a key of the job, e.g. parallel.tp=4; may be given several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--seed", options->seed_, "Seed of failures (routing has moe.routing.seed); default: the job's")
      ->check(CLI::Validator([](const std::string& text) { return text.empty() ? "needs a number" : ""; }, ""))
      ->type_name("N");
  app.add_flag("--json", options->json_, "Print result.json instead of tables");
  auto* output =
      app.add_option("-o,--output", options->output_, "Write result.json, phases.csv, resolved-job.yaml and more into this folder")
          ->type_name("DIR")
          ->check(CLI::Validator([](const std::string& folder) { return folder.empty() ? "names no folder" : ""; }, ""));
  app.add_flag("--html", options->html_, "Also write report.html there: all of it as one page for browsers")->needs(output);
  return options;
}

JobOptions JobOptions::of(const CLI::App& command) {
  const auto text = [&](const char* option) { return command.count(option) > 0 ? command[option]->as<std::string>() : std::string(); };
  JobOptions options;
  options.path_ = text("JOB");
  options.seed_ = text("--seed");
  options.output_ = text("--output");
  options.sets_ = command["--set"]->results();
  options.json_ = command.count("--json") > 0;
  options.html_ = command.count("--html") > 0;
  return options;
}

sim::KindRequest JobOptions::request() {
  sim::KindRequest request = sim::kind_request(job_request());
  request.writes_files = writes_files();
  return request;
}

void JobOptions::declare_faults(CLI::App& app) {
  app.add_option("--fault", faults_,
                 "Something goes wrong in the step, e.g. 'gpu 5 at 3.2 s' or 'gpu 5 slow 1.3'; may be given several times")
      ->type_name("FAULT")
      ->allow_extra_args(false);
  app.add_option("--faults", scenario_,
                 "What a fault scenario (.yaml, .csv or a name) has in store for the step; default: the job's faults")
      ->type_name("SCENARIO");
  app.add_option("--at", scenario_at_, "When the step begins in the scenario's history, e.g. '36 h'; default with --faults: 0 s")
      ->type_name("TIME");
}

sim::Job JobOptions::load(const std::vector<std::pair<std::string, std::string>>& more) {
  return sim::tuned(sim::load_job(job_request(more)));
}

sim::JobRequest JobOptions::job_request(const std::vector<std::pair<std::string, std::string>>& more) {
  if (!output_.empty()) folder_.emplace(output_);
  sim::JobRequest request = job_named(path_);
  request.faults = faults_;
  for (const std::string& text : sets_) request.sets.push_back(parse_set(text));
  request.sets.insert(request.sets.end(), more.begin(), more.end());
  if (!scenario_.empty()) request.sets.emplace_back("faults", config::yaml_text(scenario_));
  if (!scenario_.empty() || !scenario_at_.empty()) request.faults.push_back("scenario at " + (scenario_at_.empty() ? "0 s" : scenario_at_));
  if (!seed_.empty()) request.seed = parse_seed(seed_);
  return request;
}

bool JobOptions::names_cluster() const {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path_, ignored)) return config::Node::load_file(path_).find("gpus_per_node").has_value();
  return config::data_file("workloads/jobs", path_).empty() && !config::data_file("platforms/clusters", path_).empty();
}

sim::Job JobOptions::load_cluster(int gpus) {
  if (!output_.empty()) folder_.emplace(output_);
  std::vector<std::pair<std::string, std::string>> sets;
  for (const std::string& text : sets_) sets.push_back(parse_set(text));
  return sim::cluster_alone(path_, gpus, sets);
}

void JobOptions::deliver(const sim::Report& report) const {
  deliver_by(json_ ? sim::json_reporter(report) : sim::console_reporter(report), report);
}

void JobOptions::deliver_as(const sim::Report& report, const std::string& reporter, const std::string& json_reporter) const {
  deliver_by(sim::ReporterRegistry::get(json_ ? json_reporter : reporter), report);
}

void JobOptions::deliver_by(const sim::Reporter& reporter, sim::Report report) const {
  if (folder_) {
    if (html_) report.own(sim::PageWanted{});
    for (const std::string& path : folder_->write(report)) spdlog::info("wrote {}", path);
    for (const std::string& path : folder_->left_over(report)) spdlog::warn("{} is of an earlier command, not of this one", path);
  }
  report.colour = colour_allowed(Stream::out);
  std::ostringstream text;
  reporter.write(report, text);
  print_result(text.str());
}

}  // namespace rehearse::cli

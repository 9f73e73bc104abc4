// What every command about a job takes: JOB, --set, --seed, --json, -o. And what it does with its answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/job/job.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/report/output_folder.hpp"
#include "sim/report/reporter.hpp"

namespace CLI {
class App;
}

namespace rehearse::cli {

// JOB as it was given: a job file, a ready-made name, or "-", the job on standard input.
[[nodiscard]] sim::JobRequest job_named(const std::string& path_or_name);

class JobOptions {
 public:
  // Declares the options on `app`, which fills them in when it parses.
  [[nodiscard]] static std::shared_ptr<JobOptions> declare(CLI::App& app);

  // As a command was given them whose JOB is of another kind than training.
  [[nodiscard]] static JobOptions of(const CLI::App& command);
  // What they ask of that kind, but for the command's own options. Refuses a -o folder that cannot be written to before any work is done.
  [[nodiscard]] sim::KindRequest request();

  // --fault, --faults and --at as well, for commands that simulate a step.
  void declare_faults(CLI::App& app);

  // Refuses a -o folder that cannot be written to before any work is done, then loads the job.
  // `more` comes after the --set options.
  [[nodiscard]] sim::Job load(const std::vector<std::pair<std::string, std::string>>& more = {});

  // The same document not yet read, for commands that fill in its plan.
  [[nodiscard]] sim::JobRequest job_request(const std::vector<std::pair<std::string, std::string>>& more = {});

  [[nodiscard]] const std::string& folder() const { return output_; }  // of -o; "": not given
  // Whether JOB is a cluster (ready-made, or a file of one) instead of a job.
  [[nodiscard]] bool names_cluster() const;
  // The same of that cluster alone and so many of its GPUs (0: as sim::cluster_alone() says).
  [[nodiscard]] sim::Job load_cluster(int gpus);
  [[nodiscard]] bool writes_files() const { return folder_.has_value(); }  // after load()

  // Writes the files of -o, then prints the report: the tables, or result.json when --json is given, by the reporters of its family.
  void deliver(const sim::Report& report) const;
  // The same with a reporter of the command's choice, unless --json is given.
  void deliver_as(const sim::Report& report, const std::string& reporter, const std::string& json_reporter) const;

 private:
  void deliver_by(const sim::Reporter& reporter, sim::Report report) const;

  std::string path_, seed_, output_, scenario_, scenario_at_;
  std::vector<std::string> sets_, faults_;
  bool json_ = false, html_ = false;
  std::optional<sim::OutputFolder> folder_;
};

}  // namespace rehearse::cli

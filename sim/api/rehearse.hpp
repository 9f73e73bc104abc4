// Rehearse as a library: load a job, predict its step by formula, simulate it. Link with find_package(rehearse) and rehearse::rehearse
// (docs/library.md). This header needs the standard library alone, and is all that is installed.
//
//   const rehearse::Job job = rehearse::Job::load("llama2-70b-128-a100", {{"parallel.tp", "4"}});
//   const rehearse::Step step = rehearse::predict(job);
//   std::cout << step.seconds << " s, fits: " << step.fits << '\n';
//
// Wrong input throws rehearse::Error, whose what() has file, line, column and a suggestion. Jobs and steps are values; everything here may
// be used by several threads at once. The same job gives the same numbers as the program.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rehearse::sim {
struct Job;
}

namespace rehearse {

class Error : public std::runtime_error {
 public:
  struct Place {
    std::string file;          // "": not known
    int line = 0, column = 0;  // from 1; 0: not known
  };
  Error(const std::string& whole, Place where, std::string message, std::string suggestion)
      : std::runtime_error(whole), where_(std::move(where)), message_(std::move(message)), suggestion_(std::move(suggestion)) {}

  // The parts of what(); the suggestion may be empty.
  [[nodiscard]] const Place& where() const { return where_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const std::string& suggestion() const { return suggestion_; }

 private:
  Place where_;
  std::string message_, suggestion_;
};

// Keys of the job (rehearse list keys) and their values as in YAML.
using Settings = std::vector<std::pair<std::string, std::string>>;

class Job {
 public:
  // A job file, or the name of a ready-made job. Those lie in $REHEARSE_DATA, else where this package was installed. Jobs that serve, and
  // other kinds than training, are refused.
  [[nodiscard]] static Job load(const std::string& path_or_name, const Settings& settings = {});
  // The same job with some keys set otherwise, without reading files again. Not for keys below model, cluster and software.
  [[nodiscard]] Job with(const Settings& settings) const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] int gpus() const;
  [[nodiscard]] std::string resolved_yaml() const;  // every name replaced by what it names, every default filled in
  [[nodiscard]] const sim::Job& implementation() const { return *job_; }

 private:
  explicit Job(std::shared_ptr<const sim::Job> job) : job_(std::move(job)) {}
  std::shared_ptr<const sim::Job> job_;
};

struct PhaseTime {
  std::string phase;   // "compute", "exposed_tp", ..., "bubble", "waiting"
  double seconds = 0;  // mean over all ranks; all phases add up to the step
};

struct Step {
  double seconds = 0;
  double tokens_per_second = 0;  // of all GPUs
  double mfu = 0;                // model FLOP utilisation, 0 to 1
  bool fits = false;             // into the memory of GPUs and hosts
  double peak_bytes = 0;         // of the fullest GPU
  std::vector<PhaseTime> phases;
};

[[nodiscard]] Step predict(const Job& job);
// In a child process, of which there may be several at once. A job with a failure in its step is refused.
[[nodiscard]] Step simulate(const Job& job);

// What `rehearse predict JOB --set ... --json` prints, to the byte; of jobs of every kind.
[[nodiscard]] std::string predict_json(const std::string& path_or_name, const Settings& settings = {});
// The same of a job that is given itself, as the program reads it from standard input (`rehearse predict -`).
[[nodiscard]] std::string predict_text_json(const std::string& job, const Settings& settings = {});

}  // namespace rehearse

// A resolved job: every name replaced by what it names, every default filled in, every check passed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.hpp"
#include "sim/job/resolved_text.hpp"
#include "sim/job/whole_job.hpp"
#include "sim/system.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

struct JobParts;

struct Job {
  std::string name;  // file name without folder and .yaml
  workloads::Workload workload;
  System system;
  WholeJob whole;
  // How many of the simulated steps differ: all where tokens are routed anew in each, otherwise one.
  [[nodiscard]] int distinct_steps() const;
  config::Node given;     // the document as the user wrote it, with what was set: where complaints point
  ResolvedText resolved;  // the whole job with names replaced by inline content and all defaults; load_job() of its text gives the same job
  std::shared_ptr<const JobParts> parts;  // as their files say them
};

struct JobRequest {
  std::string path;                                       // a job file; or a name in workloads/jobs
  std::vector<std::pair<std::string, std::string>> sets;  // --set key=value, in order
  std::optional<std::uint64_t> seed;                      // --seed
  std::vector<std::string> faults = {};                   // --fault: further items of simulation.faults
  std::optional<std::string> text = {};                   // the job itself, called `path`; files that it names are looked for from "."
};

// Throws config::InputError with position. Never returns a job that cannot be predicted.
[[nodiscard]] Job load_job(const JobRequest& request);

// From a document already read (a measured case's `job`). Model names are also looked up in `models` when given (a map of name to model).
[[nodiscard]] Job read_job(config::Node node, const std::string& name, const config::Node& models = {});

using Settings = std::vector<std::pair<std::string, std::string>>;  // key and value, as --set takes them

// The same job with some keys of its own set otherwise, without reading its files again: what was left out keeps the value that it had.
// Not for keys below model, cluster and software. Throws config::InputError where the keys do not go together.
[[nodiscard]] Job with_settings(const Job& job, const Settings& settings);

// FNV-1a of the resolved job's text, as 16 hex digits: stands in every result.
[[nodiscard]] std::string input_hash(const Job& job);

}  // namespace rehearse::sim

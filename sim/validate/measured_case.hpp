// A measured case: a job plus what somebody measured when it ran (docs/validation.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/validate/metric.hpp"

namespace rehearse::sim {

struct MeasuredCase {
  std::string id;
  std::string group;   // for the summary
  std::string source;  // who printed the measurement, and where
  std::string sweep;   // runs of one name were made to be compared with one another; empty: of none
  config::Node job;
  config::Node models;  // models that the file's cases may name; absent when there is no models.yaml
  Metrics measured;
  // Whether it ran or ended out of memory: `measured: {fits: ...}`, and true of a case whose step was timed.
  std::optional<bool> fits;
  MemoryReading memory;               // what peak_memory_gib counts, and where
  std::vector<std::string> inferred;  // fields of the job that the source does not state
};

// The cases of all files, in order. Throws config::InputError with position for what is no case file; a job in it that cannot be run is no
// such error. Ids must differ, over all files.
[[nodiscard]] std::vector<MeasuredCase> read_cases(const std::vector<std::string>& paths);

}  // namespace rehearse::sim

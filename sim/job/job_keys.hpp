// All keys of a job file. Reading, hints, the resolved job, `list keys`, `schema` and docs/job-format.md come from here.
#pragma once

#include "config/keys.hpp"
#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim {

// A job on its way from its file, or back.
struct JobDocument {
  int format = 1;  // raised when a key changes its meaning or goes away
  Job job = {};
  JobParts parts = {};
  config::Node models = {};  // further models by name
};

// Read in this order: a key may use what stands before it. `faults` and `simulation.faults` are read when the GPUs are known.
[[nodiscard]] const config::Keys<JobDocument>& job_keys();

// A file as a whole.
[[nodiscard]] config::Shape job_shape();

}  // namespace rehearse::sim

// A job written out in full.
#pragma once

#include "config/node.hpp"
#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim {

struct JobParts {
  Part model, cluster, gpu, software;
};

// Everything that `job` holds, and the sections of `node` that concern whole jobs, with every name replaced by what it names.
[[nodiscard]] config::Node resolved_job(const config::Node& node, const Job& job, const JobParts& parts);

}  // namespace rehearse::sim

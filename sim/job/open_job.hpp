// A job whose plan is still to be found: for tuning.
#pragma once

#include "sim/job/job.hpp"

namespace rehearse::sim {

// The document that a request asks for, with everything that it sets; and what the job is called.
[[nodiscard]] config::Node given_document(const JobRequest& request);
[[nodiscard]] std::string name_of(const JobRequest& request);

// Appends what goes wrong (--fault) to simulation.faults.
void add_faults(config::Node& document, const std::vector<std::string>& more);

// A job of which every key is read and checked by itself, and the number of GPUs settled, but not whether the parts of its plan go
// together: what follows from them (dp, shard_group) is left as it was read. Not for predicting; a plan has to be put into it first.
[[nodiscard]] Job read_open_job(config::Node node, const std::string& name);

}  // namespace rehearse::sim

// Reading what a serving job stands on: a cluster, or parts of different machines and the network between them.
#pragma once

#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// Into the job, and as it is resolved into the document. Throws InputError.
void read_parts(ServingJob& job, config::Node& document, const config::Node& node);

}  // namespace rehearse::sim

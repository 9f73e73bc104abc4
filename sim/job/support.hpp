// What the job format can say and this version does not simulate.
#pragma once

#include "config/node.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// Throws InputError at the first such setting, naming it: nothing in a job is ignored silently.
void check_support(const config::Node& job, const workloads::Workload& workload, const topology::ClusterSpec& cluster);

}  // namespace rehearse::sim

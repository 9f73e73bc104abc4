// What the fields of a job mean together. Each check throws InputError that names the values, and where possible what would work.
#pragma once

#include "config/node.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Fills in job.system.gpus from the layout and the cluster where it is left out.
void settle_gpu_count(const config::Node& node, Job& job);
// Fills in job.system.gpus and parallel.dp from one another, the layout and the cluster.
void settle_gpus(const config::Node& node, Job& job);
// Refuses by the first rule that does not hold (sim/job/rules).
void check_rules(const config::Node& node, const workloads::Workload& workload, const System& system);
// Counted tokens: every step, layer and micro-batch, and sender where they are named, has some, and they name no others.
void check_counts(const config::Node& node, const workloads::Workload& workload, int steps);

}  // namespace rehearse::sim

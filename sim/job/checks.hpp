// What the fields of a job mean together. Each check throws InputError that names the values, and where possible what would work.
#pragma once

#include "config/node.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Fills in job.system.gpus and parallel.dp from one another, the layout and the cluster.
void settle_gpus(const config::Node& node, Job& job);

// How the model is cut: layers over stages, heads and widths over tp, the sequence over cp.
void check_layout(const config::Node& node, const workloads::Workload& workload);
// The batch, the schedule and what they ask of one another.
void check_batch(const config::Node& node, const workloads::Workload& workload);
// What is kept or computed on the host: the cluster says what its nodes have.
void check_host(const config::Node& node, const Job& job);
// recompute.full_layers, once the layers can be split.
void check_recomputed_layers(const config::Node& node, const workloads::Workload& workload);
// Modules that the model does not have cannot be recomputed.
void check_recomputed_modules(const config::Node& node, const workloads::Workload& workload);
// How experts are spread and routed to in so many simulated steps, in chunks or not.
void check_experts(const config::Node& node, const workloads::Workload& workload, int steps);
// The GPU can compute in the job's precision.
void check_precision(const config::Node& node, const Job& job);

}  // namespace rehearse::sim

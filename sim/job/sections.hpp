// The sections of a job, read into a workload: types, ranges and defaults; what they mean together is checked in checks.hpp.
#pragma once

#include "config/node.hpp"
#include "sim/job/job.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

inline constexpr int most_gpus = 1'000'000;

// parallel; dp stays 0 when it is left out.
void read_parallel(const config::Node& job, workloads::Parallel& parallel);
void read_batch(const config::Node& job, workloads::Batch& batch);
void read_precision(const config::Node& job, workloads::Precision& precision);
// attention, schedule, recompute, optimizer, offload, overlap. Needs workload.parallel.
void read_optimisations(const config::Node& job, workloads::Workload& workload);
// moe. Its files are relative to the job's.
void read_experts(const config::Node& job, workloads::ExpertPlan& experts);
[[nodiscard]] SimulationOptions read_simulation(const config::Node& job);
// simulation.faults and timeout. Needs job.system.gpus, the cluster, the seed and job.whole.
void read_step_faults(const config::Node& node, Job& job);
// training, checkpoint, faults and recovery describe whole jobs, not steps.
[[nodiscard]] WholeJob read_whole_job(const config::Node& job, const FaultContext& context);

}  // namespace rehearse::sim

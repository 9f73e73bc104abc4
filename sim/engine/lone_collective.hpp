// One collective alone on an idle cluster, as nccl-tests measure it: by formula and executed on SimGrid.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/job/job.hpp"
#include "workloads/operators.hpp"

namespace rehearse::sim {

struct LoneCollective {
  workloads::CollectiveKind kind = workloads::CollectiveKind::all_reduce;
  std::string algorithm, protocol;
  int gpus = 0, gpus_per_node = 0;
  double bytes = 0;  // of the buffer, as nccl-tests count it
  double formula_s = 0, simulated_s = 0;
  double algbw_bytes_per_s = 0, busbw_bytes_per_s = 0;  // simulated
};
using LoneCollectives = std::vector<LoneCollective>;

// Among all GPUs of the job, which need not have a model: cluster, GPU, software, gpus and simulation options. In a child process each.
[[nodiscard]] LoneCollective run_alone(const Job& job, workloads::CollectiveKind kind, double bytes);

// A job of nothing but a cluster (a file, or the name of a ready-made one) with these simulation options, and of so many of its GPUs; 0:
// all of them, or when the cluster has no size those of one scale-up domain. Throws config::InputError.
[[nodiscard]] Job cluster_alone(const std::string& cluster, int gpus, const std::vector<std::pair<std::string, std::string>>& sets);

// The job on so many of its cluster's GPUs, one group of them all.
[[nodiscard]] Job one_group(Job job, int gpus);

}  // namespace rehearse::sim

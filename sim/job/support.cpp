#include "sim/job/support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/job/refusal.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Workload;

// One row per setting; `value` says what of it is used, "" when nothing is. A feature that becomes simulated loses its row.
struct Unsupported {
  std::string_view path;
  std::string (*value)(const Workload&);
};

const std::array rows{
    Unsupported{"optimizer.kind", [](const Workload& w) { return w.optimizer.kind == "adam" ? "" : config::shown(w.optimizer.kind); }},
    Unsupported{"offload.activations",
                [](const Workload& w) { return std::string(w.overlap.ep && w.offload_activations ? "true with overlap.ep" : ""); }},
    Unsupported{"optimizer.shard_group",
                [](const Workload& w) {
                  const int whole = workloads::replica_sync(w).ranks;
                  if (!w.model.moe || w.optimizer.shard_group == 0 || w.optimizer.shard_group == whole) return std::string();
                  return fmt::format("{} for a model with experts (other than dp*cp = {})", w.optimizer.shard_group, whole);
                }},
};

std::string not_simulated(std::string_view path, std::string_view value) {
  return fmt::format("{}: {} is not simulated by this version", path, value);
}

void check_schedule(const Node& job, const std::string& schedule) {
  const std::vector<std::string> known = workloads::ScheduleRegistry::names();
  if (std::find(known.begin(), known.end(), schedule) != known.end()) return;
  refuse(job, "schedule", "schedule cannot be " + config::shown(schedule), config::suggestion(schedule, known));
}

}  // namespace

void check_support(const Node& job, const Workload& workload, const topology::ClusterSpec& cluster) {
  check_schedule(job, workload.schedule);
  if (cluster.intra_kind == topology::IntraNode::none && cluster.gpus_per_node > 1 && cluster.supernode_gpus == 0) {
    refuse(job, "cluster", not_simulated("cluster", "nodes whose GPUs meet over their NICs alone (intra_node: {kind: none})"),
           "gpus_per_node: 1, or the bandwidth and latency of their links");
  }
  for (const Unsupported& row : rows) {
    const std::string value = row.value(workload);
    if (!value.empty()) refuse(job, row.path, not_simulated(row.path, value));
  }
}

}  // namespace rehearse::sim

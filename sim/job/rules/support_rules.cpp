// A feature that becomes simulated loses its rule.
#include <fmt/format.h>

#include "config/input_error.hpp"
#include "sim/job/rules/rule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

std::string not_simulated(std::string_view path, std::string_view value) {
  return fmt::format("{}: {} is not simulated by this version", path, value);
}

const Rule linked_nodes{"cluster",
                        [](const Workload&, const System& system) {
                          const topology::ClusterSpec& cluster = system.cluster;
                          return cluster.intra_kind != topology::IntraNode::none || cluster.gpus_per_node == 1 ||
                                 cluster.supernode_gpus > 0;
                        },
                        [](const Workload&, const System&) {
                          return Refusal{not_simulated("cluster", "nodes whose GPUs meet over their NICs alone (intra_node: {kind: none})"),
                                         "gpus_per_node: 1, or the bandwidth and latency of their links"};
                        }};

const Rule adam{"optimizer.kind", [](const Workload& w, const System&) { return w.optimizer.kind == "adam"; },
                [](const Workload& w, const System&) { return Refusal{not_simulated("optimizer.kind", config::shown(w.optimizer.kind))}; }};

const Rule offload_without_pairs{
    "offload.activations", [](const Workload& w, const System&) { return !(w.overlap.ep && w.offload_activations); },
    [](const Workload&, const System&) { return Refusal{not_simulated("offload.activations", "true with overlap.ep")}; }};

const Rule experts_shard_over_all{
    "optimizer.shard_group",
    [](const Workload& w, const System&) { return !w.model.moe || w.optimizer.shard_group == workloads::replica_sync(w).ranks; },
    [](const Workload& w, const System&) {
      const std::string value =
          fmt::format("{} for a model with experts (other than dp*cp = {})", w.optimizer.shard_group, workloads::replica_sync(w).ranks);
      return Refusal{not_simulated("optimizer.shard_group", value)};
    }};

}  // namespace

std::vector<Rule> support_rules() { return {linked_nodes, adam, offload_without_pairs, experts_shard_over_all}; }

}  // namespace rehearse::sim

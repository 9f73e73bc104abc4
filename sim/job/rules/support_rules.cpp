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

const Rule muon{"optimizer.kind",
                [](const Workload& w, const System&) { return !w.optimizer.muon() || (w.optimizer.zero_stage < 2 && !w.optimizer.on_cpu); },
                [](const Workload&, const System&) {
                  return Refusal{not_simulated("optimizer.kind", "muon with zero2, zero3 or on the host"), "optimizer.sharding: zero1"};
                }};

const Rule muon_of_plain_layers{
    "optimizer.kind", [](const Workload& w, const System&) { return !w.optimizer.muon() || w.model.plain_layers(); },
    [](const Workload&, const System&) {
      return Refusal{not_simulated("optimizer.kind", "muon for a model with a mixer, a pattern or a gate"), "optimizer.kind: adam"};
    }};

const Rule policy_of_plain_layers{
    "recompute", [](const Workload& w, const System&) { return !w.recompute.every_second_product() || w.model.plain_layers(); },
    [](const Workload&, const System&) {
      return Refusal{not_simulated("recompute", "every second product for a model with a mixer, a pattern or a gate")};
    }};

const Rule policy_of_whole_experts{
    "recompute", [](const Workload& w, const System&) { return !w.recompute.every_second_product() || !w.model.narrows(); },
    [](const Workload&, const System&) {
      return Refusal{not_simulated("recompute", "every second product for experts narrower than their layer (moe.latent)"),
                     "recompute: none or full"};
    }};

const Rule flash_in_few_bits{
    "precision.attention",
    [](const Workload& w, const System&) { return !w.precision.attention || w.attention == workloads::Attention::flash; },
    [](const Workload&, const System&) {
      return Refusal{not_simulated("precision.attention", "a type of its own without attention: flash")};
    }};

const Rule whole_head_alone{
    "parallel.sp", [](const Workload& w, const System&) { return !(w.fusions.whole_head && w.parallel.sp && w.parallel.tp > 1); },
    [](const Workload&, const System&) {
      return Refusal{not_simulated("parallel.sp", "true beside a stack's whole_head"), "software: {whole_head: false}"};
    }};

const Rule offload_without_pairs{
    "offload.activations", [](const Workload& w, const System&) { return !(w.overlap.ep && w.offload_activations); },
    [](const Workload&, const System&) { return Refusal{not_simulated("offload.activations", "true with overlap.ep")}; }};

const Rule weights_alone{
    "offload.weights", [](const Workload& w, const System&) { return !(w.offload_weights && w.offload_activations); },
    [](const Workload&, const System&) { return Refusal{not_simulated("offload.weights", "true with offload.activations")}; }};

const Rule weights_of_dense_layers{
    "offload.weights", [](const Workload& w, const System&) { return !w.offload_weights || !w.model.moe; },
    [](const Workload&, const System&) { return Refusal{not_simulated("offload.weights", "true for a model with experts")}; }};

const Rule experts_shard_over_all{
    "optimizer.shard_group",
    [](const Workload& w, const System&) { return !w.model.moe || w.optimizer.shard_group == workloads::replica_sync(w).ranks; },
    [](const Workload& w, const System&) {
      const std::string value =
          fmt::format("{} for a model with experts (other than dp*cp = {})", w.optimizer.shard_group, workloads::replica_sync(w).ranks);
      return Refusal{not_simulated("optimizer.shard_group", value)};
    }};

}  // namespace

std::vector<Rule> support_rules() {
  return {linked_nodes,
          muon,
          muon_of_plain_layers,
          policy_of_plain_layers,
          policy_of_whole_experts,
          flash_in_few_bits,
          whole_head_alone,
          offload_without_pairs,
          weights_alone,
          weights_of_dense_layers,
          experts_shard_over_all};
}

}  // namespace rehearse::sim

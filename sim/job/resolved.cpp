#include "sim/job/resolved.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/yaml_text.hpp"
#include "sim/job/names.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using config::yaml_text;
using workloads::Workload;

std::string model_text(const workloads::Model& model) {
  std::string out =
      fmt::format("{{name: {}, layers: {}, hidden: {}, heads: {}, kv_heads: {}, head_dim: {}, ffn: {}, activation: {}, vocab: {}, ",
                  yaml_text(model.name), model.layers, model.hidden, model.heads, model.kv_heads, model.head_dim, model.ffn,
                  workloads::activations.of(model.activation), model.vocab);
  out += fmt::format("tied_embeddings: {}, positions: {}, biases: {}, norm: {}, dropout: {}", model.tied_embeddings,
                     workloads::positions.of(model.positions), model.biases, workloads::norms.of(model.norm), model.dropout);
  if (model.moe) {
    out += fmt::format(", moe: {{experts: {}, top_k: {}, shared: {}, ffn: {}, first_dense: {}, every: {}}}", model.moe->experts,
                       model.moe->top_k, model.moe->shared, model.moe->ffn, model.moe->first_dense, model.moe->every);
  }
  if (model.mla) {
    out += fmt::format(", mla: {{q_lora: {}, kv_lora: {}, qk_nope: {}, qk_rope: {}, v: {}}}", model.mla->q_lora, model.mla->kv_lora,
                       model.mla->qk_nope, model.mla->qk_rope, model.mla->v);
  }
  return out + fmt::format(", mtp: {}}}", model.mtp);
}

std::string parallel_text(const workloads::Parallel& parallel) {
  std::string out = fmt::format("{{tp: {}, cp: {}, pp: {}, dp: {}, ep: {}, etp: {}, vpp: {}, cp_comm: {}, sp: {}, order: {}", parallel.tp,
                                parallel.cp, parallel.pp, parallel.dp, parallel.ep, parallel.etp, parallel.vpp,
                                workloads::context_comms.of(parallel.cp_comm), parallel.sp, fmt::join(parallel.order, "-"));
  if (!parallel.layers_per_stage.empty()) out += fmt::format(", layers_per_stage: [{}]", fmt::join(parallel.layers_per_stage, ", "));
  return out + "}";
}

std::string precision_text(const workloads::Precision& precision) {
  return fmt::format("{{compute: {}, weights: {}, gradients: {}, optimizer: {}}}", name_of(precision.compute), name_of(precision.weights),
                     name_of(precision.gradients), name_of(precision.optimizer));
}

std::string recompute_text(const workloads::Recompute& recompute) {
  if (recompute.full_layers >= 0) return fmt::format("{{full_layers: {}}}", recompute.full_layers);
  if (recompute.modules.empty()) return std::string(workloads::recompute_kinds.of(recompute.kind));
  std::vector<std::string_view> names;
  for (const workloads::RecomputeModule module : recompute.modules) names.push_back(workloads::recompute_modules.of(module));
  return fmt::format("{{modules: [{}]}}", fmt::join(names, ", "));
}

std::string optimizer_text(const workloads::Optimizer& optimizer) {
  return fmt::format("{{kind: {}, sharding: {}, shard_group: {}, device: {}}}", yaml_text(optimizer.kind),
                     zero_stages.of(optimizer.zero_stage), optimizer.shard_group, optimizer.on_cpu ? "cpu" : "gpu");
}

std::string overlap_text(const workloads::Overlap& overlap) {
  return fmt::format("{{tp: {}, tp_splits: {}, cp: {}, ep: {}, pp: {}, dp_gradients: {}, dp_parameters: {}}}", overlap.tp,
                     overlap.tp_splits, overlap.cp, overlap.ep, overlap.pp, overlap.dp_gradients, overlap.dp_parameters);
}

std::string routing_text(const workloads::ExpertPlan& experts) {
  if (experts.routing == "balanced") return "balanced";
  std::string way = fmt::format("{}: {}", experts.routing, experts.skew);
  if (experts.routing == "counts") {
    std::vector<std::string> rows;
    for (const workloads::RoutedTokens& row : experts.counts) {
      const std::string sender = experts.senders == workloads::Senders::own ? fmt::format("{}, ", row.sender) : "";
      rows.push_back(fmt::format("[{}, {}, {}, {}{}, {}]", row.step, row.layer, row.microbatch, sender, row.expert, row.tokens));
    }
    way = fmt::format("counts: [{}]", fmt::join(rows, ", "));
  }
  return fmt::format("{{{}, senders: {}, seed: {}}}", way, workloads::senders.of(experts.senders), experts.seed);
}

std::string experts_text(const workloads::ExpertPlan& experts) {
  const std::string capacity = experts.capacity_factor > 0 ? fmt::format("{}", experts.capacity_factor) : "none";
  const std::string nodes = experts.nodes_per_token > 0 ? fmt::format(", nodes_per_token: {}", experts.nodes_per_token) : "";
  const std::string chunks = experts.chunks == 0 ? "auto" : std::to_string(experts.chunks);
  return fmt::format("{{routing: {}, capacity_factor: {}{}, dispatcher: {}, chunks: {}, thresholds: [{}], chunk_recompute: {}}}",
                     routing_text(experts), capacity, nodes, workloads::dispatchers.of(experts.dispatcher), chunks,
                     fmt::join(experts.thresholds, ", "), experts.chunk_recompute);
}

std::string simulation_text(const SimulationOptions& options) {
  return fmt::format("{{granularity: {}, collectives: {}, routing: {}, algorithm: {}, solver: {}, ranks: {}, steps: {}, seed: {}}}",
                     granularities.of(options.granularity), fidelities.of(options.collectives), routings.of(options.routing),
                     options.algorithm, solvers.of(options.solver), options.all_ranks ? "all" : "folded", options.steps, options.seed);
}

void set_optimisations(const Workload& workload, Node& out) {
  out.set("precision", precision_text(workload.precision));
  out.set("attention", workloads::attentions.of(workload.attention));
  out.set("schedule", workload.schedule);
  out.set("recompute", recompute_text(workload.recompute));
  out.set("optimizer", optimizer_text(workload.optimizer));
  out.set("offload", fmt::format("{{activations: {}}}", workload.offload_activations));
  out.set("overlap", overlap_text(workload.overlap));
  if (workload.model.moe) out.set("moe", experts_text(workload.experts));
}

// Sets a key of a section to another node.
void copy_into(Node& out, const std::string& section, const std::string& key, const Node& value) {
  Node copy = out.at(section);
  copy.set_child(key, value);
  out.set_child(section, copy);
}

}  // namespace

Node resolved_job(const Node& node, const Job& job, const JobParts& parts) {
  const Workload& workload = job.workload;
  Node cluster = named(parts.cluster);
  cluster.set_child("gpu", named(parts.gpu));
  Node out;
  out.set("name", yaml_text(job.name));
  out.set("model", model_text(workload.model));
  out.set_child("cluster", cluster);
  out.set("gpus", std::to_string(job.system.gpus));
  out.set("parallel", parallel_text(workload.parallel));
  out.set_child("software", named(parts.software));
  out.set("batch",
          fmt::format("{{global: {}, micro: {}, sequence: {}}}", workload.batch.global, workload.batch.micro, workload.batch.sequence));
  set_optimisations(workload, out);
  out.set("cuda_graphs", job.system.software.replays_graphs ? "true" : "false");
  out.set("simulation", simulation_text(job.system.simulation));
  if (const auto simulation = node.find("simulation")) {
    for (const std::string key : {"faults", "timeout"}) {
      if (const auto given = simulation->find(key)) copy_into(out, "simulation", key, *given);
    }
  }
  for (const std::string_view key : {"training", "checkpoint", "recovery"}) {
    if (const auto section = node.find(key)) out.set_child(key, *section);
  }
  if (job.whole.faults.resolved()) out.set_child("faults", job.whole.faults.resolved());
  Node resolved = Node::load_text(out.to_yaml(), job.name);
  // What is refused of a whole job later on is refused where the user wrote it.
  for (const std::string_view key : {"training", "checkpoint", "recovery"}) {
    if (const auto section = node.find(key)) resolved.set_child(key, *section);
  }
  return resolved;
}

}  // namespace rehearse::sim

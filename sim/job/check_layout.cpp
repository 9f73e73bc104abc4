#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/job/checks.hpp"
#include "sim/job/refusal.hpp"
#include "workloads/names.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Workload;

void check_given_split(const Node& node, const Workload& workload) {
  const auto& [parallel, layers] = std::pair(workload.parallel, workload.parallel.layers_per_stage);
  const std::int64_t chunks = std::int64_t{parallel.pp} * parallel.vpp;
  if (static_cast<std::int64_t>(layers.size()) != chunks) {
    refuse(node, "parallel.layers_per_stage",
           fmt::format("layers_per_stage has {} entries, but pp*vpp = {}*{} = {}", layers.size(), parallel.pp, parallel.vpp, chunks));
  }
  const auto sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != workload.model.layers) {
    refuse(node, "parallel.layers_per_stage",
           fmt::format("layers_per_stage adds up to {}, but model '{}' has {} layers", sum, workload.model.name, workload.model.layers));
  }
}

void check_even_split(const Node& node, const Workload& workload) {
  const workloads::Parallel& parallel = workload.parallel;
  const int layers = workload.model.layers;
  const std::int64_t chunks = std::int64_t{parallel.pp} * parallel.vpp;
  const auto chunks_text =
      parallel.vpp > 1 ? fmt::format("pp*vpp = {}*{} = {}", parallel.pp, parallel.vpp, chunks) : fmt::format("pp = {}", chunks);
  if (layers < chunks) {
    refuse(node, parallel.vpp > 1 ? "parallel.vpp" : "parallel.pp",
           fmt::format("model '{}' has {} layers, fewer than {}", workload.model.name, layers, chunks_text));
  }
  if (parallel.vpp > 1 && layers % chunks != 0) {
    refuse(node, "parallel.vpp", fmt::format("model '{}' has {} layers, not a multiple of {}", workload.model.name, layers, chunks_text),
           "give layers_per_stage for an uneven split");
  }
}

void check_stages(const Node& node, const Workload& workload) {
  const workloads::Parallel& parallel = workload.parallel;
  if (parallel.vpp > 1 && parallel.pp == 1) refuse(node, "parallel.vpp", fmt::format("vpp ({}) needs pp > 1", parallel.vpp));
  if (parallel.layers_per_stage.empty()) {
    check_even_split(node, workload);
  } else {
    check_given_split(node, workload);
  }
}

void check_divides(const Node& node, std::string_view what, int size, int tp) {
  if (size % tp == 0) return;
  refuse(node, "parallel.tp", fmt::format("the model's {} ({}) is not a multiple of tp ({})", what, size, tp));
}

void check_tensor_parallel(const Node& node, const Workload& workload) {
  const workloads::Model& model = workload.model;
  const int tp = workload.parallel.tp;
  check_divides(node, "heads", model.heads, tp);
  check_divides(node, "ffn", model.ffn, tp);
  // Fewer key/value heads than ranks are replicated.
  if (model.heads > 0 && model.kv_heads % tp != 0 && tp % model.kv_heads != 0) {
    refuse(node, "parallel.tp", fmt::format("neither of kv_heads ({}) and tp ({}) is a multiple of the other", model.kv_heads, tp));
  }
  const int etp = workload.parallel.etp;
  if (tp % etp != 0) refuse(node, "parallel.etp", fmt::format("tp ({}) is not a multiple of etp ({})", tp, etp));
}

void check_sequence(const Node& node, const Workload& workload) {
  const workloads::Parallel& parallel = workload.parallel;
  const int sequence = workload.batch.sequence;
  if (parallel.cp > 1 && workload.attention == workloads::Attention::unfused) {
    refuse(node, node.find("attention") ? "attention" : "parallel.cp", "context parallelism (cp > 1) needs attention: flash");
  }
  // Each rank has one block from either end, so that causal work is balanced; exchanged for heads, the whole sequence.
  const int per_rank = parallel.cp > 1 && parallel.cp_comm != workloads::ContextComm::all_to_all ? 2 : 1;
  const int blocks = per_rank * parallel.cp;
  if (sequence % blocks != 0) {
    const std::string what = per_rank == 2 ? fmt::format("2*cp = 2*{} = {}", parallel.cp, blocks) : fmt::format("cp = {}", blocks);
    refuse(node, "batch.sequence", fmt::format("sequence ({}) is not a multiple of {}", sequence, what),
           fmt::format("sequence: {} would work", multiples_near(sequence, blocks)));
  }
  if (!parallel.sp) return;
  if (parallel.tp == 1) refuse(node, "parallel.sp", "sp needs tp > 1");
  if (sequence / parallel.cp % parallel.tp != 0) {
    refuse(node, "batch.sequence",
           fmt::format("with sp, sequence/cp ({}/{} = {}) must be a multiple of tp ({})", sequence, parallel.cp, sequence / parallel.cp,
                       parallel.tp));
  }
}

// All-to-all context parallelism gives each rank whole sequences of a share of the heads.
void check_context_parallel(const Node& node, const Workload& workload) {
  const workloads::Parallel& parallel = workload.parallel;
  if (parallel.cp_comm != workloads::ContextComm::all_to_all || workload.model.heads == 0) return;
  const auto check = [&](const char* what, int heads) {
    const int on_gpu = std::max(1, heads / parallel.tp);
    if (on_gpu % parallel.cp == 0) return;
    refuse(node, "parallel.cp_comm",
           fmt::format("all-to-all needs the model's {} on a GPU ({}/{} = {}) to be a multiple of cp ({})", what, heads, parallel.tp,
                       on_gpu, parallel.cp),
           "cp_comm: ring or all-gather would work");
  };
  check("heads", workload.model.heads);
  check("kv_heads", workload.model.kv_heads);
}

void check_shard_group(const Node& node, const Workload& workload) {
  const int whole = workloads::replica_sync(workload).ranks;
  const int group = workload.optimizer.shard_group;
  if (group == whole) return;
  if (workloads::ScheduleRegistry::get(workload.schedule).mirrors()) {
    refuse(node, "optimizer.shard_group", fmt::format("shard_group ({}) with schedule {}", group, workload.schedule),
           fmt::format("leave it out to shard over all {} ranks with the same parameters", whole));
  }
  if (workload.optimizer.zero_stage == 0) {
    refuse(node, "optimizer.shard_group", fmt::format("shard_group ({}) without sharding", group),
           "sharding: zero1, zero2 or zero3, or leave shard_group out");
  }
  if (whole % group == 0) return;
  refuse(node, "optimizer.shard_group",
         fmt::format("shard_group ({}) does not divide dp*cp = {}*{} = {}", group, workload.parallel.dp, workload.parallel.cp, whole));
}

}  // namespace

void check_layout(const Node& node, const Workload& workload) {
  check_stages(node, workload);
  check_tensor_parallel(node, workload);
  check_sequence(node, workload);
  check_context_parallel(node, workload);
  check_shard_group(node, workload);
}

void check_recomputed_modules(const Node& node, const Workload& workload) {
  for (const workloads::RecomputeModule module : workload.recompute.modules) {
    if (workloads::has_module(workload.model, module)) continue;
    refuse(node, "recompute.modules", fmt::format("the model has no {} to recompute", workloads::recompute_modules.of(module)));
  }
}

void check_recomputed_layers(const Node& node, const Workload& workload) {
  if (workload.recompute.full_layers < 0) return;
  int most = 0;
  for (const auto& stage : workloads::split_layers(workload)) {
    most = std::max(most, std::accumulate(stage.begin(), stage.end(), 0, [](int sum, const auto& chunk) { return sum + chunk.layers; }));
  }
  if (workload.recompute.full_layers <= most) return;
  refuse(node, "recompute.full_layers",
         fmt::format("full_layers ({}) is more than any stage has ({})", workload.recompute.full_layers, most));
}

}  // namespace rehearse::sim

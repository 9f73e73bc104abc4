#include <fmt/ranges.h>

#include <array>

#include "sim/export/megatron_parts.hpp"
#include "sim/import/megatron_arguments.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using workloads::DType;
using workloads::Parallel;
using workloads::Workload;

// Stages in the order of the model: "Ett|tt|ttL".
std::string layout(const Workload& work) {
  std::string text = "E";
  for (std::size_t stage = 0; stage < work.parallel.layers_per_stage.size(); ++stage) {
    if (stage > 0) text += '|';
    text += std::string(static_cast<std::size_t>(work.parallel.layers_per_stage[stage]), 't');
  }
  return text + std::string(static_cast<std::size_t>(work.model.mtp), 'm') + 'L';
}

void write_degrees(const Workload& work, Arguments& out) {
  const Parallel& parallel = work.parallel;
  out.add("tensor-model-parallel-size", parallel.tp);
  out.add("pipeline-model-parallel-size", parallel.pp);
  if (parallel.pp > 1 && !parallel.layers_per_stage.empty()) {
    out.add("pipeline-model-parallel-layout", "'" + layout(work) + "'");
  } else if (parallel.pp > 1 && parallel.vpp > 1) {
    out.add("num-virtual-stages-per-pipeline-rank", parallel.vpp);
  }
  if (parallel.cp > 1) {
    constexpr std::array names{"p2p", "all_gather", "a2a"};
    out.add("context-parallel-size", parallel.cp);
    out.add("cp-comm-type", names[static_cast<std::size_t>(parallel.cp_comm)]);
  }
  if (work.model.moe) {
    out.add("expert-model-parallel-size", parallel.ep);
    out.add("expert-tensor-parallel-size", parallel.etp);
  }
  out.flag_if(parallel.sp && parallel.tp > 1, "sequence-parallel");
  out.flag_if(parallel.order == std::vector<std::string>{"tp", "cp", "ep", "pp", "dp"}, "use-tp-pp-dp-mapping");
}

void write_precision(const workloads::Precision& precision, Arguments& out) {
  const bool narrow = is_narrow(precision.compute);
  out.flag_if(precision.compute == DType::fp16, "fp16");
  out.flag_if(narrow || precision.compute == DType::bf16, "bf16");
  if (precision.compute == DType::fp8) {
    out.add("fp8-format", "hybrid");
    if (precision.recipe != workloads::Scaling::delayed && !by_rows(precision.recipe))  // it has no word for rows
      out.add("fp8-recipe", std::string(workloads::scalings.of(precision.recipe)));
    out.flag_if(precision.param_gather == DType::fp8, "fp8-param-gather");
  }
  if (precision.compute == DType::fp4) {
    out.add("fp4-format", "e2m1");
    if (precision.recipe == workloads::Scaling::nvfp4) out.add("fp4-recipe", "nvfp4");  // it has a word for no other
  }
  if (narrow && precision.wide_layers() > 0) {
    out.flag("first-last-layers-bf16");
    out.add("num-layers-at-start-in-bf16", precision.bf16_at_start);
    out.add("num-layers-at-end-in-bf16", precision.bf16_at_end);
  }
  out.flag_if(precision.compute != DType::fp32 && precision.gradients == DType::bf16, "grad-reduce-in-bf16");
  out.flag_if(precision.activation_input == DType::fp8, "activation-func-fp8-input-store");
}

// Of the modules that Megatron-Core has a name for: it has none for the activation function of a dense MLP.
std::string megatron_modules(const std::vector<workloads::RecomputeModule>& modules) {
  std::string names;
  for (const workloads::RecomputeModule module : modules) {
    if (module == workloads::RecomputeModule::mlp_act) continue;
    names += (names.empty() ? "" : " ") + std::string(workloads::recompute_modules.of(module));
  }
  return names;
}

void write_recompute(const workloads::Recompute& recompute, int vpp, Arguments& out) {
  using workloads::RecomputeKind;
  const std::string modules = megatron_modules(recompute.modules);
  if (recompute.kind == RecomputeKind::none || (modules.empty() && !recompute.modules.empty())) return;
  const bool full = recompute.kind == RecomputeKind::full;
  out.add("recompute-granularity", full ? "full" : "selective");
  if (full) {
    out.add("recompute-method", recompute.full_layers < 0 ? "uniform" : "block");
    out.add("recompute-num-layers",
            recompute.full_layers < 0 ? 1 : (recompute.full_layers + vpp - 1) / vpp);  // block: of each virtual stage
    out.flag_if(recompute.shards_inputs, "distribute-saved-activations");
    return;
  }
  if (!modules.empty()) out.add("recompute-modules", modules);
}

void write_optimizer(const Workload& work, Arguments& out) {
  constexpr std::array fsdp{"no_shard", "optim", "optim_grads", "optim_grads_params"};
  const workloads::Optimizer& optimizer = work.optimizer;
  if (optimizer.muon()) return out.add("optimizer", optimizer.zero_stage == 0 ? "muon" : "dist_muon");  // which has no other switches
  out.add("optimizer", "adam");
  out.flag_if(optimizer.zero_stage > 0, "use-distributed-optimizer");
  if (optimizer.zero_stage > 1) {
    out.flag("use-megatron-fsdp");
    out.add("data-parallel-sharding-strategy", fsdp[static_cast<std::size_t>(optimizer.zero_stage)]);
  }
  const int replicas = work.parallel.dp * work.parallel.cp;
  if (optimizer.zero_stage > 0 && optimizer.shard_group > 0 && optimizer.shard_group < replicas)
    out.add("num-distributed-optimizer-instances", replicas / optimizer.shard_group);
  out.flag_if(optimizer.on_cpu, "optimizer-cpu-offload");
}

void write_overlap(const Workload& work, Arguments& out) {
  out.flag_if(work.overlap.dp_gradients && !work.optimizer.muon(), "overlap-grad-reduce");
  out.flag_if(work.overlap.dp_parameters && !work.optimizer.muon(), "overlap-param-gather");
  out.flag_if(work.overlap.tp && work.parallel.tp > 1, "tp-comm-overlap");
  out.flag_if(work.overlap.ep && work.model.moe, "overlap-moe-expert-parallel-comm");
  out.flag_if(work.overlap.delay_wgrad && work.model.moe, "delay-wgrad-compute");
  // Megatron's sends run beside the next micro-batch with virtual stages alone.
  out.flag_if(work.parallel.vpp > 1 && !work.overlap.pp, "no-overlap-p2p-communication");
}

void write_dispatch(const Workload& work, Arguments& out) {
  using workloads::Dispatcher;
  if (!work.model.moe) return;
  const Dispatcher dispatcher = work.experts.dispatcher;
  out.add("moe-token-dispatcher-type", dispatcher == Dispatcher::hierarchical ? "flex"
                                       : dispatcher == Dispatcher::allgather  ? "allgather"
                                                                              : "alltoall");
  if (dispatcher == Dispatcher::hierarchical) {
    if (work.fusions.dispatch_kernels == workloads::DispatchKernels::hybridep)
      out.add("moe-flex-dispatcher-backend", "hybridep");
    else
      out.flag("moe-enable-deepep");
  }
  if (work.experts.capacity_factor > 0) out.add("moe-expert-capacity-factor", work.experts.capacity_factor);
  out.flag_if(work.experts.pad_to == workloads::ExpertPlan::to_capacity, "moe-pad-expert-input-to-capacity");
  out.flag_if(work.experts.pad_to == megatron_multiple(work.precision.compute, work.precision.recipe),
              "moe-router-padding-for-quantization");
}

}  // namespace

void write_megatron_plan(const Job& job, Arguments& out) {
  const Workload& work = job.workload;
  write_degrees(work, out);
  out.add("micro-batch-size", work.batch.micro);
  out.add("global-batch-size", work.batch.global);
  write_precision(work.precision, out);
  out.add("attention-backend", work.attention == workloads::Attention::flash ? "flash" : "unfused");
  write_recompute(work.recompute, work.parallel.vpp, out);
  write_optimizer(work, out);
  write_overlap(work, out);
  write_dispatch(work, out);
  const auto& fusions = job.system.software.fusions;
  out.flag_if(fusions.contains("cross_entropy") && fusions.at("cross_entropy"), "cross-entropy-loss-fusion");
  out.flag_if(work.model.moe && work.fusions.permutation, "moe-permute-fusion");
  if (work.fusions.vocab_multiple != workloads::KernelFusions{}.vocab_multiple)
    out.add("make-vocab-size-divisible-by", work.fusions.vocab_multiple);
  if (job.system.software.replays_graphs) out.add("cuda-graph-impl", "local");
  if (!work.graphs.empty()) {
    out.add("cuda-graph-impl", "transformer_engine");
    std::vector<std::string_view> scopes;
    for (const workloads::GraphScope scope : work.graphs) scopes.push_back(workloads::graph_scopes.of(scope));
    out.add("cuda-graph-scope", fmt::format("{}", fmt::join(scopes, " ")));
  }
  const bool alone = work.parallel.pp == 1 && work.recompute.kind == workloads::RecomputeKind::none;  // else it refuses to offload
  if (alone && work.offload_activations && work.offload_layers > 0 && work.offload_share == 1) {
    out.flag("cpu-offloading");
    out.add("cpu-offloading-num-layers", work.offload_layers);
  }
}

}  // namespace rehearse::sim

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "sim/job/rules/rule.hpp"
#include "workloads/names.hpp"
#include "workloads/operators/section.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

bool computes(const Workload& w, const System& system) { return system.gpu.peak_flops_per_s.contains(w.precision.compute); }

Refusal other_precision(const Workload& w, const System& system) {
  std::vector<std::string_view> known;
  for (const auto& [type, peak] : system.gpu.peak_flops_per_s) known.push_back(workloads::name_of(type));
  return {fmt::format("GPU '{}' does not compute in {}", system.gpu.name, workloads::name_of(w.precision.compute)),
          fmt::format("it does in {}", fmt::join(known, ", "))};
}

// Refused at the part of it where there is one.
const Rule precision{"precision.compute", computes, other_precision, "precision"};

const Rule attention{
    "precision.attention",
    [](const Workload& w, const System& system) {
      return !w.precision.attention || system.gpu.peak_flops_per_s.contains(*w.precision.attention);
    },
    [](const Workload& w, const System& system) {
      return Refusal{fmt::format("GPU '{}' does not compute in {}", system.gpu.name, workloads::name_of(*w.precision.attention))};
    }};

workloads::DType of_attention(const Workload& w) {
  return w.precision.attention.value_or(bytes_of(w.precision.compute) < 2 ? workloads::DType::bf16 : w.precision.compute);
}

// No kernel of flash attention computes in fp32; unfused attention is products.
const Rule flash_priced{"attention",
                        [](const Workload& w, const System& system) {
                          const bool flash = w.model.heads > 0 && w.attention == workloads::Attention::flash;
                          return !flash || system.gpu.cost->prices(workloads::OperatorClass::attention, of_attention(w));
                        },
                        [](const Workload& w, const System& system) {
                          return Refusal{
                              fmt::format("GPU '{}' has no line for attention in {}", system.gpu.name, workloads::name_of(of_attention(w))),
                              w.parallel.cp == 1 ? "attention: unfused, or precision.attention: bf16" : "precision.attention: bf16"};
                        },
                        "precision"};

const Rule head{
    "precision.head",
    [](const Workload& w, const System& system) { return !w.precision.head || system.gpu.peak_flops_per_s.contains(*w.precision.head); },
    [](const Workload& w, const System& system) {
      return Refusal{fmt::format("GPU '{}' does not compute in {}", system.gpu.name, workloads::name_of(*w.precision.head))};
    }};

const Rule experts_computed{
    "precision.experts",
    [](const Workload& w, const System& system) {
      return !w.precision.experts || system.gpu.peak_flops_per_s.contains(*w.precision.experts);
    },
    [](const Workload& w, const System& system) {
      return Refusal{fmt::format("GPU '{}' does not compute in {}", system.gpu.name, workloads::name_of(*w.precision.experts))};
    }};

const Rule experts_there{"precision.experts", [](const Workload& w, const System&) { return !w.precision.experts || w.model.moe; },
                         [](const Workload& w, const System&) {
                           return Refusal{fmt::format("model '{}' has no experts", w.model.name), "precision.compute is of all products"};
                         }};

// Narrower than 16 bits, or in that of the layers' other operators.
bool experts_fit(const Workload& w, const System&) {
  const workloads::DType experts = w.precision.of_experts(), compute = w.precision.compute;
  return bytes_of(experts) < 2 || experts == (bytes_of(compute) < 2 ? workloads::DType::bf16 : compute);
}

const Rule experts_in_few_bits{"precision.experts", experts_fit, [](const Workload& w, const System&) {
                                 return Refusal{
                                     fmt::format("products of experts in {} beside others in {} are not simulated by this version",
                                                 name_of(*w.precision.experts), name_of(w.precision.compute)),
                                     "experts: fp8 beside compute: bf16, or experts: bf16 beside compute: fp8"};
                               }};

const Rule narrow_input{"precision.activation_input",
                        [](const Workload& w, const System&) { return !w.precision.activation_input || w.model.gated(); },
                        [](const Workload& w, const System&) {
                          return Refusal{fmt::format("the activation function of model '{}' has no gate", w.model.name),
                                         "precision.activation_input is of gated MLPs"};
                        }};

const Rule narrower_input{
    "precision.activation_input",
    [](const Workload& w, const System&) {
      return !w.precision.activation_input || bytes_of(*w.precision.activation_input) < std::max(2.0, bytes_of(w.precision.compute));
    },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("precision.activation_input {} is no narrower than what it is of", name_of(*w.precision.activation_input)),
                     "precision.activation_input: fp8"};
    }};

const Rule gathers{"precision.param_gather",
                   [](const Workload& w, const System&) {
                     return !w.precision.param_gather || bytes_of(*w.precision.param_gather) <= bytes_of(w.precision.weights);
                   },
                   [](const Workload& w, const System&) {
                     return Refusal{fmt::format("precision.param_gather {} is wider than the weights", name_of(*w.precision.param_gather)),
                                    "it is the type in which layers' weights are gathered: fp8 for example"};
                   }};

// Of the products of layers, which all read what is gathered.
workloads::DType widest(const workloads::Precision& precision) {
  return bytes_of(precision.of_experts()) > bytes_of(precision.compute) ? precision.of_experts() : precision.compute;
}

const Rule gathers_as_computed{"precision.param_gather",
                               [](const Workload& w, const System&) {
                                 return !w.precision.param_gather || bytes_of(widest(w.precision)) <= bytes_of(*w.precision.param_gather);
                               },
                               [](const Workload& w, const System&) {
                                 return Refusal{fmt::format("precision.param_gather {} has fewer bits than products in {}",
                                                            name_of(*w.precision.param_gather), name_of(widest(w.precision))),
                                                "precision.compute: fp8"};
                               }};

// torchao's Float8LinearConfig refuses both; frozen weights stay as they come.
const Rule gathers_by_tensor{
    "precision.param_gather",
    [](const Workload& w, const System&) {
      return !w.precision.param_gather || bytes_of(*w.precision.param_gather) >= 2 || w.lora.on() || !by_rows(w.precision.recipe);
    },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("weights that are scaled by row are not gathered in {}", name_of(*w.precision.param_gather)),
                     "precision.recipe: tensorwise, or param_gather: bf16"};
    }};

const Rule orthogonal{"optimizer.kind",
                      [](const Workload& w, const System& system) {
                        return !w.optimizer.muon() || system.gpu.peak_flops_per_s.contains(workloads::DType::bf16);
                      },
                      [](const Workload&, const System& system) {
                        return Refusal{fmt::format("muon's products are in bf16, in which GPU '{}' does not compute", system.gpu.name)};
                      }};

const Rule scales{"precision.recipe",
                  [](const Workload& w, const System&) {
                    const workloads::Scaling recipe = w.precision.recipe;
                    const bool four = w.precision.in_fp4() && !w.precision.in_fp8();
                    if (recipe == workloads::Scaling::nvfp4) return four;
                    return recipe == workloads::Scaling::delayed || w.precision.in_fp8() ||
                           (four && recipe == workloads::Scaling::blockwise);
                  },
                  [](const Workload& w, const System&) {
                    if (w.precision.recipe == workloads::Scaling::nvfp4)
                      return Refusal{"precision.recipe nvfp4 is of products in fp4", "precision.compute: fp4"};
                    return Refusal{"precision.recipe is of products in fp8", "precision.compute: fp8"};
                  }};

// Layers at the ends that stay in bf16 beside others in fewer bits.
const Rule wide_ends{"precision",
                     [](const Workload& w, const System&) {
                       const workloads::Precision& p = w.precision;
                       if (p.wide_layers() == 0) return true;
                       return (p.in_fp8() || p.in_fp4()) && p.wide_layers() <= w.model.layers;
                     },
                     [](const Workload& w, const System&) {
                       const workloads::Precision& p = w.precision;
                       if (!p.in_fp8() && !p.in_fp4())
                         return Refusal{"bf16_at_start and bf16_at_end are of products in fp8 or fp4", "precision.compute: fp8"};
                       return Refusal{fmt::format("bf16_at_start {} and bf16_at_end {} are more than the {} layers of model '{}'",
                                                  p.bf16_at_start, p.bf16_at_end, w.model.layers, w.model.name),
                                      "leave some of them in fewer bits"};
                     }};

// Transformer Engine's recipes are delayed, tensorwise, blockwise and mxfp8 (Megatron-Core's --fp8-recipe); scales of rows are torchao's,
// which casts weights in each pass.
const Rule rows_of_torchao{
    "precision.recipe",
    [](const Workload& w, const System&) { return !by_rows(w.precision.recipe) || !w.precision.in_fp8() || !w.fusions.casts_weights; },
    [](const Workload& w, const System& system) {
      return Refusal{fmt::format("stack '{}' has no recipe {}, which is torchao's: it casts weights once a step (casts_weights)",
                                 system.software.name, workloads::scalings.of(w.precision.recipe)),
                     "precision.recipe: tensorwise or blockwise, or software: torchtitan"};
    }};

const Rule offloaded{"offload.layers", [](const Workload& w, const System&) { return w.offload_layers < 0 || w.offload_activations; },
                     [](const Workload&, const System&) { return Refusal{"offload.layers needs offload.activations: true"}; }};

const Rule offloaded_share{"offload.share", [](const Workload& w, const System&) { return w.offload_share == 1 || w.offload_activations; },
                           [](const Workload&, const System&) { return Refusal{"offload.share needs offload.activations: true"}; }};

const Rule offloaded_shards{
    "offload.weights",
    [](const Workload& w, const System&) { return !w.offload_weights || (w.optimizer.zero_stage == 3 && w.optimizer.on_cpu); },
    [](const Workload&, const System&) {
      return Refusal{"offload.weights needs weights in shards and their optimizer on the host",
                     "optimizer: {sharding: zero3, device: cpu}"};
    }};

bool has_host_memory(const System& system) { return system.cluster.host_memory.bytes > 0; }

Refusal no_host_memory(const Workload&, const System& system) {
  return {fmt::format("cluster '{}' does not say how much memory the host of a node has", system.cluster.name),
          "add for example host_memory: {size: 2 TiB, bandwidth: 400 GB/s} to it"};
}

const Rule room_for_activations{"offload.activations",
                                [](const Workload& w, const System& system) { return !w.offload_activations || has_host_memory(system); },
                                no_host_memory};
const Rule room_for_states{"optimizer.device",
                           [](const Workload& w, const System& system) { return !w.optimizer.on_cpu || has_host_memory(system); },
                           no_host_memory};

// Keys of stacks that would do nothing.
const Rule fused_casts{"software.fused_casts",
                       [](const Workload& w, const System&) {
                         return !w.fusions.fused_casts || bytes_of(w.precision.compute) >= 2 || workloads::may_fuse_casts(w.precision) ||
                                workloads::may_find_scales(w.precision);
                       },
                       [](const Workload& w, const System&) {
                         const std::string_view recipe = w.precision.compute == workloads::DType::fp8 ? " by this recipe" : "";
                         return Refusal{
                             fmt::format("fused_casts changes nothing for products in {}{}", name_of(w.precision.compute), recipe),
                             "precision: {compute: fp8, recipe: delayed} or mxfp8, or software: {fused_casts: false}"};
                       }};

// Of models that have such norms; others' stacks may say what they like of them.
const Rule sums_by_block{
    "software.sums_by_block",
    [](const Workload& w, const System&) {
      const bool norms = w.model.qk_norm && w.model.norm == workloads::Norm::rmsnorm;
      return !norms || w.fusions.norm || !w.fusions.sums_by_block;
    },
    [](const Workload&, const System&) {
      return Refusal{"sums_by_block is of fused norms over heads (fusions: {norm: true})", "software: {sums_by_block: false}"};
    }};

// Without ZeRO a model is whole whatever a stack says: deepspeed runs such jobs, too.
bool follows_whole_models(const Workload& w, const System& system) {
  const workloads::MemoryHabits& habits = system.software.memory.habits;
  return w.optimizer.zero_stage == 0 || (habits.order == workloads::TensorOrder::torch && !habits.sharded_master);
}

Refusal no_order_of(std::string_view key) {
  return {fmt::format("{} is of stacks whose tensors are taken in DeepSpeed's order (order: torch, masters apart)", key),
          fmt::format("software: {{memory: {{{}: false}}}}", key)};
}

const Rule loads_whole{
    "software.memory.loads_whole",
    [](const Workload& w, const System& system) { return !system.software.memory.habits.loads_whole || follows_whole_models(w, system); },
    [](const Workload&, const System&) { return no_order_of("loads_whole"); }};

const Rule joins_on_gpu{
    "software.memory.joins_on_gpu",
    [](const Workload& w, const System& system) { return !system.software.memory.habits.joins_on_gpu || follows_whole_models(w, system); },
    [](const Workload&, const System&) { return no_order_of("joins_on_gpu"); }};

const Rule saved_weights{
    "software.memory.saves_weights",
    [](const Workload& w, const System& system) { return !system.software.memory.habits.saves_weights || w.optimizer.zero_stage == 3; },
    [](const Workload&, const System&) {
      return Refusal{"saves_weights without zero3: weights that are whole are not gathered", "software: {memory: {saves_weights: false}}"};
    }};

const Rule host_updates{
    "optimizer.device",
    [](const Workload& w, const System& system) { return !w.optimizer.on_cpu || system.cluster.host_memory.bytes_per_s > 0; },
    [](const Workload&, const System& system) {
      return Refusal{fmt::format("cluster '{}' does not say how fast the host's memory is", system.cluster.name),
                     "add for example bandwidth: 400 GB/s to its host_memory"};
    }};

}  // namespace

std::vector<Rule> machine_rules() {
  return {precision,        attention,       flash_priced,        head,
          experts_computed, experts_there,   experts_in_few_bits, narrow_input,
          narrower_input,   gathers,         gathers_as_computed, orthogonal,
          scales,           wide_ends,       rows_of_torchao,     gathers_by_tensor,
          offloaded,        offloaded_share, offloaded_shards,    room_for_activations,
          room_for_states,  fused_casts,     sums_by_block,       loads_whole,
          joins_on_gpu,     saved_weights,   host_updates};
}

}  // namespace rehearse::sim

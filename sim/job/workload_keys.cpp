#include "sim/job/workload_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/job/limits.hpp"
#include "sim/job/names.hpp"
#include "workloads/model_limits.hpp"

namespace rehearse::sim {
namespace {

using config::Form;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using config::truth;
using config::whole;
using workloads::DType;
using workloads::Lora;
using workloads::most_layers;
using workloads::Optimizer;
using workloads::Overlap;
using workloads::Parallel;
using workloads::Precision;
using workloads::Recompute;
using workloads::Workload;

constexpr std::int64_t most_sequences = 10'000'000;  // in a global batch
constexpr std::int64_t longest_sequence = 100'000'000;
constexpr std::int64_t most_columns = 1'000'000;  // of a matrix

std::vector<std::string> split_at_dashes(const std::string& text) {
  std::vector<std::string> out{""};
  for (const char c : text) {
    if (c == '-') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

Form<std::vector<std::string>> order_form() {
  const auto read = [](const Node& node) {
    const std::vector<std::string> innermost_first{"tp", "cp", "ep", "dp", "pp"};
    std::vector<std::string> order = split_at_dashes(node.as_string());
    if (!std::is_permutation(order.begin(), order.end(), innermost_first.begin(), innermost_first.end())) {
      node.fail(fmt::format("parallel.order must name each of {} once, not {}", fmt::join(innermost_first, ", "),
                            config::shown(node.as_string())),
                "for example tp-cp-ep-dp-pp");
    }
    return order;
  };
  const auto write = [](const std::vector<std::string>& order) { return Node::scalar(fmt::format("{}", fmt::join(order, "-"))); };
  return {{.kind = Shape::Kind::text}, read, write};
}

// What a word for the precision as a whole stands for: narrow formats are used in the matrix products only.
Precision precision_of(DType type) {
  if (type == DType::fp32) return {type, type, type, type, type};
  const DType weights = type == DType::fp16 ? DType::fp16 : DType::bf16;
  return {type, weights, DType::fp32, DType::fp32, DType::fp32};
}

const Keys<Precision>& precision_keys() {
  using K = Key<Precision>;
  static const Keys<Precision> keys{
      K("compute", &Precision::compute, choice(workloads::dtypes), "Of the matrix products."),
      K("weights", &Precision::weights, choice(workloads::dtypes), "As stored and communicated."),
      K("gradients", &Precision::gradients, choice(workloads::dtypes), "As accumulated and reduced."),
      K("optimizer", &Precision::optimizer, choice(workloads::dtypes), "Master weights, and both moments unless they are named."),
      K("moments", &Precision::moments, choice(workloads::dtypes), "Both moments of Adam.")
          .otherwise("as optimizer", [](Precision& precision) { precision.moments = precision.optimizer; })
          .written_if([](const Precision& precision) { return precision.moments != precision.optimizer; }),
      K("attention", &Precision::attention, choice(workloads::dtypes), "Of core attention's products.")
          .otherwise("as compute, bf16 where that is fp8 or fp4"),
      K("param_gather", &Precision::param_gather, choice(workloads::dtypes),
        "Of the layers' weights as they are gathered by data-parallel ranks, and without zero3 as they are kept.")
          .otherwise("as weights"),
      K("recipe", &Precision::recipe, choice(workloads::scalings),
        "Scales of products in fp8, by the names of Megatron-Core's --fp8-recipe and torchao's recipes, and of fp4: what casts read and "
        "write.")
          .otherwise("as the stack's fp8_recipe; of fp4 on NVIDIA's GPUs nvfp4")
          .written_if([](const Precision& precision) {
            return precision.recipe != workloads::Scaling::delayed || precision.in_fp8() || precision.in_fp4();
          }),
      K("head", &Precision::head, choice(workloads::dtypes), "Of the products of the head.")
          .otherwise("as compute, bf16 where that is fp8 or fp4"),
      K("activation_input", &Precision::activation_input, choice(workloads::dtypes),
        "In which MLPs with a gate keep the input of their activation function (Megatron-Core's --activation-func-fp8-input-store).")
          .otherwise("as it is computed"),
      K("experts", &Precision::experts, choice(workloads::dtypes), "Of the products of routed experts.").otherwise("as compute"),
      K("bf16_at_start", &Precision::bf16_at_start, whole(0, most_layers),
        "So many first layers have their products in bf16 (Megatron-Core's --num-layers-at-start-in-bf16).")
          .written_if([](const Precision& precision) { return precision.bf16_at_start > 0; }),
      K("bf16_at_end", &Precision::bf16_at_end, whole(0, most_layers),
        "So many last layers have their products in bf16 (Megatron-Core's --num-layers-at-end-in-bf16).")
          .written_if([](const Precision& precision) { return precision.bf16_at_end > 0; }),
  };
  return keys;
}

const Keys<Recompute>& recompute_keys() {
  using K = Key<Recompute>;
  static const Keys<Recompute> keys{
      K("full_layers", &Recompute::full_layers, whole(1, most_layers), "So many layers of every GPU are recomputed in full.").otherwise(""),
      K("modules", &Recompute::modules, list_of(choice(workloads::recompute_modules)),
        "Modules of each layer, by the names of Megatron-Core's --recompute-modules.")
          .otherwise(""),
      K("kept", &Recompute::kept, list_of(choice(workloads::layer_outputs)),
        "What layers recomputed in full keep beside their input, by the names of Megatron-Core's modules.")
          .otherwise(""),
      K("shards_inputs", &Recompute::shards_inputs, truth(),
        "Each rank of tp keeps its part of the input of layers recomputed in full (Megatron-LM's --distribute-saved-activations).")
          .otherwise(""),
  };
  return keys;
}

// None twice, and one at least.
template <class Value>
void check_names(const Node& list, const std::vector<Value>& values, const char* example) {
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (std::find(values.begin(), value, *value) == value) continue;
    list.items()[static_cast<std::size_t>(value - values.begin())].fail(fmt::format("named twice in {}", list.path()));
  }
  if (values.empty()) list.fail(fmt::format("{} names nothing", list.path()), example);
}

template <class Value>
Form<std::vector<Value>> named_once(const Form<Value>& item, const char* example) {
  Form<std::vector<Value>> form = list_of(item);
  form.read = [read = form.read, example](const Node& node) {
    auto values = read(node);
    check_names(node, values, example);
    return values;
  };
  return form;
}

Recompute read_recompute(const Node& node) {
  if (!node.is_map()) return {.kind = workloads::recompute_kinds.read(node)};
  Recompute recompute;
  recompute_keys().read(node, recompute);
  recompute.kind = workloads::RecomputeKind::full;
  const auto modules = node.find("modules");
  if (!modules) {
    if (const auto kept = node.find("kept")) {
      check_names(*kept, recompute.kept, "recompute: full, or for example {kept: [linear_qkv]}");
    } else if (!recompute.shards_inputs) {
      static_cast<void>(node.at("full_layers"));
    }
    return recompute;
  }
  for (const char* other : {"full_layers", "kept", "shards_inputs"}) {
    if (node.find(other))
      node.fail(fmt::format("recompute takes {} or modules, not both", other), "modules are of layers that keep all else");
  }
  recompute.kind = workloads::RecomputeKind::selective;
  check_names(*modules, recompute.modules, "recompute: none, or for example [core_attn, layernorm]");
  return recompute;
}

Node write_recompute(const Recompute& recompute) {
  const bool word = recompute.full_layers < 0 && recompute.modules.empty() && recompute.kept.empty() && !recompute.shards_inputs;
  if (word) return Node::scalar(std::string(workloads::recompute_kinds.of(recompute.kind)), true);
  Node out;
  const auto write = [&](const char* key, bool said) {
    if (said) out.set_child(key, recompute_keys().find(key)->write(recompute));
  };
  write("full_layers", recompute.full_layers >= 0);
  write("modules", !recompute.modules.empty());
  write("kept", !recompute.kept.empty());
  write("shards_inputs", recompute.shards_inputs);
  return out;
}

}  // namespace

const Keys<Parallel>& parallel_keys() {
  using K = Key<Parallel>;
  const auto degree = [] { return whole(1, most_gpus); };
  static const Keys<Parallel> keys{
      K("tp", &Parallel::tp, degree(), "Tensor parallelism: ranks that share the matrices of each layer."),
      K("cp", &Parallel::cp, degree(), "Context parallelism: ranks that share each sequence."),
      K("pp", &Parallel::pp, degree(), "Pipeline stages."),
      K("dp", &Parallel::dp, degree(), "Replicas.").otherwise("gpus/(tp*cp*pp)", [](Parallel& p) { p.dp = 0; }),
      K("ep", &Parallel::ep, degree(), "Expert parallelism: ranks that share the experts of each layer."),
      K("etp", &Parallel::etp, degree(), "Tensor parallelism of the experts.").otherwise("tp", [](Parallel& p) { p.etp = p.tp; }),
      K("vpp", &Parallel::vpp, whole(1, 1000), "Virtual pipeline stages (model chunks) per GPU."),
      K("cp_comm", &Parallel::cp_comm, choice(workloads::context_comms),
        "How attention sees the whole sequence: ring attention, keys and values gathered, or heads exchanged (Ulysses).")
          .feature(),
      K("sp", &Parallel::sp, truth(), "Sequence parallelism on the tp group.").feature(),
      K("order", &Parallel::order, order_form(), "Innermost (same node) first, as in Megatron-LM; any order of the five."),
      K("layers_per_stage", &Parallel::layers_per_stage, list_of(whole(0, most_layers)),
        "Layers of each stage and chunk in model order: entry k*pp + s is chunk k of stage s.")
          .written_if([](const Parallel& p) { return !p.layers_per_stage.empty(); })
          .otherwise("evenly, what pp does not divide to the middle stages"),
  };
  return keys;
}

const Keys<workloads::Batch>& batch_keys() {
  using workloads::Batch;
  using K = Key<Batch>;
  static const Keys<Batch> keys{
      K("global", &Batch::global, whole(1, most_sequences), "Sequences of a step.").required(),
      K("micro", &Batch::micro, whole(1, most_sequences), "Sequences of a micro-batch.").required(),
      K("sequence", &Batch::sequence, whole(1, longest_sequence), "Tokens of a sequence.").required(),
      K("document_tokens", &Batch::document, whole(1, longest_sequence),
        "Tokens of each of the documents that a sequence is packed of; attention stays within a document.")
          .written_if([](const Batch& batch) { return batch.document > 0; })
          .otherwise("sequence"),
  };
  return keys;
}

const Keys<Lora>& lora_keys() {
  using K = Key<Lora>;
  static const Keys<Lora> keys{
      K("rank", &Lora::rank, whole(1, most_columns), "Of each adapter; scaling by alpha takes the same time whatever it is.").required(),
      K("targets", &Lora::targets, named_once(choice(workloads::lora_targets), "lora: {rank: 16, targets: [linear_qkv, linear_proj]}"),
        "Linear layers that have adapters, by the names of Megatron-Bridge (LoRA and CanonicalLoRA) or of HuggingFace's PEFT."),
      K("dropout", &Lora::dropout, config::number(0, 1),
        "Probability, of the adapters' inputs; above 0 there are kernels, and masks are kept."),
      K("weights", &Lora::weights, choice(workloads::dtypes),
        "Of the adapters, whose products, sums and casts are in it: PEFT has them in fp32 beside 16 bits.")
          .otherwise("as the products of layers in 16 bits")
          .written_if([](const Lora& lora) { return lora.weights.has_value(); }),
      K("base", &Lora::nf4, config::either_word("plain", "nf4"),
        "How layers keep their frozen matrices: as precision.weights, or in NormalFloat 4 (QLoRA), which each use dequantises.")
          .written_if([](const Lora& lora) { return lora.nf4; }),
  };
  return keys;
}

const Keys<Optimizer>& optimizer_keys() {
  using K = Key<Optimizer>;
  static const Keys<Optimizer> keys{
      K("kind", &Optimizer::kind, choice(workloads::optimizer_kinds), "Its algorithm; muon's tables, head and norms are Adam's."),
      K("sharding", &Optimizer::zero_stage, choice(zero_stages),
        "What the replicas share: none, zero1 (optimizer states: the distributed optimizer), zero2 (and gradients), zero3 (and weights: "
        "FSDP).")
          .feature(),
      K("shard_group", &Optimizer::shard_group, whole(1, most_gpus),
        "Ranks over which ZeRO shards; the others hold copies (hybrid sharding).")
          .otherwise("dp*cp"),
      K("no_sync", &Optimizer::no_sync, truth(),
        "zero2 and zero3: gradients lie whole until the last micro-batch, and are reduced once (FSDP's no_sync).")
          .feature(),
      K("device", &Optimizer::on_cpu, config::either_word("gpu", "cpu"), "Where states live and the update runs.").feature(),
  };
  return keys;
}

const Keys<Overlap>& overlap_keys() {
  using K = Key<Overlap>;
  static const Keys<Overlap> keys{
      K("tp", &Overlap::tp, truth(), "Products and the collectives of tensor parallelism in pieces beside each other.").feature(),
      K("tp_splits", &Overlap::tp_splits, whole(1, 1024), "So many pieces."),
      K("cp", &Overlap::cp, truth(), "Ring attention's passing on beside its computation.").feature(),
      K("ep", &Overlap::ep, truth(), "Forward of one micro-batch against backward of another (1f1b, interleaved-1f1b, dualpipe; moe.md).")
          .feature(),
      K("pp", &Overlap::pp, truth(), "Sends between stages behind the next micro-batch.").feature(),
      K("dp_gradients", &Overlap::dp_gradients, truth(), "Reduction of gradients behind backward.").feature(),
      K("dp_parameters", &Overlap::dp_parameters, truth(), "Gathering of parameters behind forward.").feature(),
      K("delay_wgrad", &Overlap::delay_wgrad, truth(),
        "With ep: experts' weight gradients beside the exchange that follows their input gradients (Megatron-Core's "
        "--delay-wgrad-compute).")
          .feature()
          .written_if([](const Overlap& overlap) { return overlap.delay_wgrad; }),
  };
  return keys;
}

const Keys<Workload>& offload_keys() {
  using K = Key<Workload>;
  static const Keys<Workload> keys{
      K("activations", &Workload::offload_activations, truth(), "To host memory between forward and backward, layer by layer.").feature(),
      K("layers", &Workload::offload_layers, config::word_or("all", -1, whole(1, most_layers)), "Of every GPU's share the first so many.")
          .written_if([](const Workload& workload) { return workload.offload_layers >= 0; }),
      K("share", &Workload::offload_share, config::number(0.001, 1),
        "Of their activations this part (Megatron-Kwai's ratio); the rest stays.")
          .written_if([](const Workload& workload) { return workload.offload_share < 1; }),
      K("weights", &Workload::offload_weights, truth(),
        "ZeRO-3's shards lie in host memory, beside the optimizer: every gather copies one up first (DeepSpeed's offload_param, FSDP's "
        "CPUOffload).")
          .written_if([](const Workload& workload) { return workload.offload_weights; }),
  };
  return keys;
}

Form<Precision> precision_form() {
  const auto read = [](const Node& node) {
    if (!node.is_map()) return precision_of(workloads::dtypes.read(node));
    Precision precision;
    precision_keys().read(node, precision);
    return precision;
  };
  return {config::either({choice(workloads::dtypes).shape, precision_keys().shape()}), read,
          [](const Precision& precision) { return precision_keys().write(precision); }};
}

Form<std::vector<workloads::GraphScope>> graph_scopes_form() {
  return named_once(choice(workloads::graph_scopes), "cuda_graphs: false, or for example [attn, moe_router]");
}

Form<Recompute> recompute_form() {
  return {config::either({choice(workloads::recompute_kinds).shape, recompute_keys().shape()}), read_recompute, write_recompute};
}

}  // namespace rehearse::sim

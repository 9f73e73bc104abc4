// The plan, batch, precision and the rest of a job in Megatron-LM's arguments, with the defaults of its parser.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/cost/software_keys.hpp"
#include "sim/import/megatron_arguments.hpp"
#include "sim/import/megatron_split.hpp"
#include "sim/job/parts.hpp"
#include "workloads/model_limits.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::DispatchKernels;

constexpr std::int64_t most_in_megatron = 1'000'000;
constexpr const char* megatron_stack = "megatron-core";  // whose kernels arguments switch, where nothing says another

struct MegatronDegrees {
  std::int64_t tp = 1, pp = 1, cp = 1, vpp = 1, layers = 0;
};

void set_degree(MegatronArguments& arguments, std::string_view name, const char* key, Draft& draft) {
  if (const auto value = arguments.take(name)) draft.set(std::string("parallel.") + key, *value);
}

std::int64_t degree(const Draft& draft, const char* key) {
  const auto value = draft.document().find_path(std::string("parallel.") + key);
  return value ? value->as_int(1, most_in_megatron) : 1;
}

void read_context_comm(MegatronArguments& arguments, Draft& draft) {
  const auto type = arguments.take("cp-comm-type");
  if (!type) return;
  const Node one = type->is_sequence() ? type->items().at(0) : *type;
  const std::string name = one.as_choice({"p2p", "all_gather", "allgather", "a2a", "a2a+p2p"});
  if (name == "a2a+p2p") one.fail("cp-comm-type a2a+p2p is not simulated", "p2p, all_gather or a2a");
  draft.set("parallel.cp_comm", name == "p2p" ? "ring" : name == "a2a" ? "all-to-all" : "all-gather");
}

MegatronDegrees read_degrees(MegatronArguments& arguments, Draft& draft) {
  set_degree(arguments, "tensor-model-parallel-size", "tp", draft);
  set_degree(arguments, "pipeline-model-parallel-size", "pp", draft);
  set_degree(arguments, "context-parallel-size", "cp", draft);
  set_degree(arguments, "expert-model-parallel-size", "ep", draft);
  if (draft.document().find_path("model.moe")) {
    set_degree(arguments, "expert-tensor-parallel-size", "etp", draft);
  } else if (arguments.take("expert-tensor-parallel-size")) {
    draft.ignore("expert-tensor-parallel-size (the model has no experts)");
  }
  MegatronDegrees degrees{degree(draft, "tp"), degree(draft, "pp"), degree(draft, "cp"), 1, 0};
  if (const auto layers = draft.document().find_path("model.layers")) degrees.layers = layers->as_int(1, 10'000);
  if (arguments.flag("sequence-parallel")) {
    degrees.tp > 1 ? draft.set("parallel.sp", "true") : draft.ignore("sequence-parallel (tensor parallelism is 1)");
  }
  read_context_comm(arguments, draft);
  if (arguments.flag("use-tp-pp-dp-mapping")) draft.set("parallel.order", "tp-cp-ep-pp-dp");
  return degrees;
}

void read_chunks(MegatronArguments& arguments, MegatronDegrees& degrees, Draft& draft) {
  auto chunks = arguments.take("num-virtual-stages-per-pipeline-rank");
  if (!chunks) chunks = arguments.take("virtual-pipeline-model-parallel-size");
  if (chunks) {
    degrees.vpp = chunks->as_int(1, 1000);
    if (degrees.pp > 1) return draft.set("parallel.vpp", *chunks);
    return draft.ignore("virtual pipeline stages (there is one stage)");
  }
  const auto layers = arguments.take("num-layers-per-virtual-pipeline-stage");
  if (!layers || degrees.layers == 0) return;
  const std::int64_t each = layers->as_int(1, 10'000);
  if (degrees.layers % (degrees.pp * each) != 0) {
    layers->fail(fmt::format("{} layers over {} stages are not a multiple of {} layers a virtual stage", degrees.layers, degrees.pp, each));
  }
  degrees.vpp = degrees.layers / degrees.pp / each;
  draft.set("parallel.vpp", degrees.vpp);
  draft.infer(fmt::format("parallel.vpp: {}, {} layers over {} stages by {}", degrees.vpp, degrees.layers, degrees.pp, each));
}

void read_megatron_batch(MegatronArguments& arguments, const MegatronDegrees& degrees, std::int64_t world, Draft& draft) {
  const auto micro = arguments.take("micro-batch-size"), global = arguments.take("global-batch-size");
  if (micro) {
    draft.set("batch.micro", *micro);
  } else {
    draft.need("batch.micro", "there is no --micro-batch-size");
  }
  const std::int64_t model_ranks = degrees.tp * degrees.pp * degrees.cp;
  if (global) {
    draft.set("batch.global", *global);
  } else if (micro && world > 0 && world % model_ranks == 0) {
    const std::int64_t sequences = micro->as_int(1, 10'000'000) * (world / model_ranks);
    draft.set("batch.global", sequences);
    draft.infer(fmt::format("batch.global: {}, a micro-batch for each replica: there is no --global-batch-size", sequences));
  } else {
    draft.need("batch.global", "there is no --global-batch-size");
  }
  if (arguments.take("rampup-batch-size") || arguments.take("step-batch-size-schedule"))
    draft.ignore("rampup-batch-size (the job is the step at the full batch)");
  if (const auto sequence = arguments.take("seq-length")) return draft.set("batch.sequence", *sequence);
  draft.need("batch.sequence", "there is no --seq-length");
}

constexpr std::array<std::string_view, 5> attention_backends{"flash", "fused", "unfused", "local", "auto"};  // AttnBackend of Megatron-Core

void read_attention(MegatronArguments& arguments, Draft& draft) {
  const bool flash = arguments.flag("use-flash-attn");
  const std::string implementation = arguments.choice("transformer-impl", {"transformer_engine", "local", "inference_optimized"});
  const auto backend = arguments.take("attention-backend");
  std::string name = backend ? backend->as_string() : "auto";
  if (name.find('.') != std::string::npos) name = name.substr(name.rfind('.') + 1);  // AttnBackend.flash
  if (std::ranges::find(attention_backends, name) == attention_backends.end())
    backend->fail(fmt::format("unknown attention-backend {}", config::shown(name)), "flash, fused, unfused, local or auto");
  const bool apart = name == "unfused" || name == "local" || (name == "auto" && implementation == "local" && !flash);
  draft.set("attention", apart ? "unfused" : "flash");
  if (name == "auto" && !flash) draft.infer(fmt::format("attention: {}, what 'auto' comes to", apart ? "unfused" : "flash"));
}

void read_modules(MegatronArguments& arguments, Draft& draft) {
  const auto modules = arguments.take("recompute-modules");
  if (!modules) return draft.set("recompute", "selective");
  std::vector<Node> all;
  for (const Node& module : modules->is_sequence() ? modules->items() : std::vector{*modules}) {
    const std::string name = module.as_choice({"core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"});
    if (name == "moe") module.fail("recomputing a whole layer of experts (moe) is not simulated", "moe_act, or recompute-granularity full");
    all.push_back(module);
  }
  draft.set("recompute.modules", Node::list(all));
}

// The first so many layers of every TransformerBlock, which is a virtual stage.
void set_full_layers(const std::optional<Node>& layers, const MegatronDegrees& degrees, Draft& draft) {
  std::int64_t each = layers ? layers->as_int(1, 10'000) : 1;
  if (degrees.vpp == 1) return layers ? draft.set("recompute.full_layers", *layers) : draft.set("recompute.full_layers", each);
  const std::int64_t stages = degrees.pp * degrees.vpp;
  if (degrees.layers > 0) each = std::min(each, (degrees.layers + stages - 1) / stages);
  draft.set("recompute.full_layers", each * degrees.vpp);
  draft.infer(fmt::format("recompute.full_layers: {}, {} in each of a GPU's {} virtual stages", each * degrees.vpp, each, degrees.vpp));
}

void read_recompute(MegatronArguments& arguments, const MegatronDegrees& degrees, Draft& draft) {
  const bool activations = arguments.flag("recompute-activations");
  const auto granularity = arguments.take("recompute-granularity");
  const std::string method = arguments.choice("recompute-method", {"uniform", "block"});
  const auto layers = arguments.take("recompute-num-layers");
  const bool shards_inputs = arguments.flag("distribute-saved-activations");
  if (!granularity && !activations) {
    if (arguments.take("recompute-modules")) draft.ignore("recompute-modules (recompute-granularity is not given)");
    return;
  }
  if (!granularity || granularity->as_choice({"full", "selective"}) == "selective") return read_modules(arguments, draft);
  if (shards_inputs) draft.set("recompute.shards_inputs", "true");
  if (method == "block") return set_full_layers(layers, degrees, draft);
  if (!shards_inputs) draft.set("recompute", "full");
  if (layers && layers->as_int(1, 10'000) > 1) {
    draft.infer(fmt::format("recompute: full keeps the input of every layer, where {} layers at once keep one", layers->as_string()));
  }
}

void read_sharding(MegatronArguments& arguments, const MegatronDegrees& degrees, std::int64_t world, Draft& draft) {
  const bool distributed = arguments.flag("use-distributed-optimizer");
  const bool fsdp = arguments.flag("use-megatron-fsdp") || arguments.flag("use-custom-fsdp"), torch = arguments.flag("use-torch-fsdp2");
  const auto strategy = arguments.take("data-parallel-sharding-strategy");
  const auto instances = arguments.take("num-distributed-optimizer-instances");
  std::string sharding = distributed ? "zero1" : "none";
  if (fsdp && strategy) {
    const std::string name = strategy->as_choice({"no_shard", "optim", "optim_grads", "optim_grads_params"});
    sharding = name == "no_shard" ? "none" : name == "optim" ? "zero1" : name == "optim_grads" ? "zero2" : "zero3";
  } else if (strategy) {
    draft.ignore("data-parallel-sharding-strategy (megatron-fsdp is not switched on)");
  }
  if (torch) sharding = "zero3";
  if (!draft.document().find_path("optimizer.sharding")) draft.set("optimizer.sharding", sharding);  // DeepSpeed has said it
  if (!instances || instances->as_int(1, most_in_megatron) == 1) return;
  const std::int64_t replicas = world / (degrees.tp * degrees.pp), groups = instances->as_int(1, most_in_megatron);
  if (replicas == 0 || replicas % groups != 0)
    instances->fail(fmt::format("{} replicas are not a multiple of {} instances", replicas, groups));
  draft.set("optimizer.shard_group", replicas / groups);
}

void read_optimizer(MegatronArguments& arguments, const MegatronDegrees& degrees, std::int64_t world, Draft& draft) {
  if (const auto given = arguments.take("optimizer")) {
    const std::string kind = given->as_string();
    if (kind == "muon" || kind == "dist_muon") {
      draft.set("optimizer.kind", "muon");
      if (kind == "dist_muon") draft.set("optimizer.sharding", "zero1");
    } else if (kind != "adam" && kind != "adamw") {
      given->fail(fmt::format("optimizer '{}' is not simulated", kind), "adam or muon");
    }
  }
  read_sharding(arguments, degrees, world, draft);
  const bool on_host = arguments.flag("optimizer-cpu-offload");
  const auto fraction = arguments.take("optimizer-offload-fraction");
  if (!on_host) return;
  if (fraction && fraction->as_number(0, 1) < 1) fraction->fail("a part of the optimizer on the host is not simulated", "1");
  draft.set("optimizer.device", "cpu");
}

void read_overlap(MegatronArguments& arguments, const MegatronDegrees& degrees, Draft& draft) {
  const auto switch_on = [&](const char* name, const char* key) {
    if (arguments.flag(name)) draft.set(std::string("overlap.") + key, "true");
  };
  switch_on("overlap-grad-reduce", "dp_gradients");
  switch_on("overlap-param-gather", "dp_parameters");
  switch_on("overlap-moe-expert-parallel-comm", "ep");
  switch_on("delay-wgrad-compute", "delay_wgrad");
  if (arguments.flag("tp-comm-overlap") && degrees.tp > 1) draft.set("overlap.tp", "true");
  // Sends run beside the next micro-batch with virtual stages alone.
  const bool off = arguments.flag("no-overlap-p2p-communication");
  static_cast<void>(arguments.truth("overlap-p2p-comm"));
  if (degrees.pp > 1) draft.set("overlap.pp", degrees.vpp > 1 && !off ? "true" : "false");
}

void read_padding(MegatronArguments& arguments, Draft& draft) {
  const bool older = arguments.flag("moe-router-padding-for-fp8"), to_multiple = arguments.flag("moe-router-padding-for-quantization");
  if (arguments.flag("moe-pad-expert-input-to-capacity")) return draft.set("moe.pad_to", "capacity");
  if (!older && !to_multiple) return;
  const auto compute = draft.document().find_path("precision.compute"), recipe = draft.document().find_path("precision.recipe");
  const auto multiple = megatron_multiple(workloads::dtypes.read(compute ? *compute : draft.document().at("precision")),
                                          recipe ? workloads::scalings.read(*recipe) : workloads::Scaling::delayed);
  if (multiple) return draft.set("moe.pad_to", *multiple);
  draft.puzzle("moe-router-padding-for-quantization (in fp4 to 32 or 128, by version: --set moe.pad_to)");
}

void read_dispatch(MegatronArguments& arguments, Draft& draft) {
  if (!draft.document().find_path("model.moe")) return;
  if (const auto type = arguments.take("moe-token-dispatcher-type")) {
    const std::string name = type->as_choice({"allgather", "alltoall", "alltoall_seq", "flex"});
    draft.set("moe.dispatcher", name == "flex" ? "hierarchical" : name == "allgather" ? "allgather" : "alltoall");
  } else {
    draft.set("moe.dispatcher", "allgather");
    draft.infer("moe.dispatcher: allgather, Megatron's default");
  }
  if (const auto factor = arguments.take("moe-expert-capacity-factor"); factor && factor->as_number(-1e6, 1e6) > 0) {
    draft.set("moe.capacity_factor", *factor);
  }
  read_padding(arguments, draft);
}

// MindSpeed's own arguments, on Ascend.
bool is_mindspeed(const MegatronArguments& arguments) {
  constexpr std::array names{"use-mc2", "use-fused-rmsnorm", "use-fused-rotary-pos-emb", "use-fused-swiglu",
                             "use-fused-ring-attention-update"};
  return std::ranges::any_of(names, [&](const char* name) { return arguments.has(name); });
}

// What the stack's file says, as it is and as it was changed before.
workloads::KernelFusions kernels_of(const Draft& draft) {
  const Part part = find_part(draft.document().find("software").value_or(Node::scalar(megatron_stack)), software_part);
  return kernel_fusions(read_software(part.node, part.name));
}

void change_stack(Draft& draft, const std::string& key, std::string_view value) {
  if (!draft.document().find("software")) draft.set("software", megatron_stack);
  draft.override_with("software." + key, value);
}

// Tokens sorted by expert, and added up again, by a kernel each when it is told to. own: the stack is one whose kernels are switched so.
void read_permutation(MegatronArguments& arguments, bool own, Draft& draft) {
  const bool fused = arguments.flag("moe-permute-fusion");
  if (!draft.document().find_path("model.moe")) {
    if (fused) draft.ignore("moe-permute-fusion (the model has no experts)");
    return;
  }
  if (!own || kernels_of(draft).permutation == fused) return;
  change_stack(draft, "experts.permutation", fused ? "true" : "false");
  if (!fused) draft.infer("software.experts.permutation: false, without --moe-permute-fusion");
}

// Whose kernels send tokens, where that is not what the stack does.
void read_dispatch_kernels(MegatronArguments& arguments, bool own, Draft& draft) {
  if (!draft.document().find_path("model.moe")) return;
  const bool deep = arguments.flag("moe-enable-deepep");
  const auto backend = arguments.take("moe-flex-dispatcher-backend");
  const DispatchKernels asked = backend ? dispatch_kernels().read(*backend) : DispatchKernels::deepep;  // Megatron's default
  const DispatchKernels sends = deep ? DispatchKernels::deepep : asked;
  if (draft.document().at("moe").at("dispatcher").as_string() != "hierarchical" || !own) return;
  if (kernels_of(draft).dispatch_kernels != sends) change_stack(draft, "experts.dispatch_kernels", dispatch_kernels().of(sends));
}

// Kernels that Megatron runs apart when it is told to; the stack as it is otherwise. Cross entropy is fused when it is told to.
void read_fusions(MegatronArguments& arguments, Draft& draft) {
  const bool fused = arguments.flag("cross-entropy-loss-fusion");
  const bool own = !draft.document().find("software") && !is_mindspeed(arguments);  // neither older arguments' nor Ascend's
  if (!fused && own) {
    draft.set("software", "megatron-lm");
    draft.infer("software: megatron-lm, without --cross-entropy-loss-fusion");
  }
  read_permutation(arguments, own, draft);
  read_dispatch_kernels(arguments, own, draft);
  static constexpr std::pair<const char*, const char*> switches[] = {{"no-masked-softmax-fusion", "softmax"},
                                                                     {"no-bias-swiglu-fusion", "activation"},
                                                                     {"no-bias-gelu-fusion", "activation"},
                                                                     {"no-bias-dropout-fusion", "dropout_add"},
                                                                     {"no-rope-fusion", "rope"},
                                                                     {"no-gradient-accumulation-fusion", "gradient_accumulation"}};
  const std::string activation = draft.document().find_path("model.activation").value_or(Node::scalar("")).as_string();
  for (const auto& [name, fusion] : switches) {
    const bool off = arguments.flag(name);
    const bool other =
        (activation == "swiglu") == (std::string_view(name) == "no-bias-gelu-fusion") && std::string_view(fusion) == "activation";
    if (!off || other) continue;
    change_stack(draft, std::string("fusions.") + fusion, "false");
  }
}

void read_vocabulary_padding(MegatronArguments& arguments, Draft& draft) {
  const std::int64_t otherwise = workloads::KernelFusions{}.vocab_multiple;
  const std::int64_t multiple = arguments.whole("make-vocab-size-divisible-by", otherwise, 1, workloads::widest);
  if (multiple == otherwise) return;
  change_stack(draft, "vocab_multiple", std::to_string(multiple));
}

void read_world(std::int64_t world, const MegatronDegrees& degrees, Draft& draft) {
  if (world > 0) return draft.set("gpus", world);
  draft.need("gpus", fmt::format("the file does not say on how many; a replica takes {}", degrees.tp * degrees.pp * degrees.cp));
}

// Scopes that are a part of a layer; none, or the full iteration, is all of it.
void read_graphs(MegatronArguments& arguments, Draft& draft) {
  const auto graphs = arguments.take("cuda-graph-impl"), scope = arguments.take("cuda-graph-scope");
  const bool replayed = arguments.flag("enable-cuda-graph") || arguments.flag("external-cuda-graph");
  if (!replayed && (!graphs || graphs->as_string() == "none")) {
    if (scope) draft.ignore("cuda-graph-scope (there are no graphs)");
    return;
  }
  std::vector<Node> parts;
  for (const Node& part : !scope ? std::vector<Node>{} : scope->is_sequence() ? scope->items() : std::vector{*scope}) {
    const std::string name = part.as_string();
    if (name == "full" || name == "full_iteration") return draft.set("cuda_graphs", "true");
    if (!workloads::graph_scopes.find(name))
      part.fail(fmt::format("graphs of {} are not simulated", config::shown(name)),
                "attn, mlp, moe_router, moe_preprocess or full_iteration");
    parts.push_back(part);
  }
  draft.set("cuda_graphs", parts.empty() ? Node::scalar("true") : Node::list(parts));
}

}  // namespace

void read_megatron_plan(MegatronArguments& arguments, std::int64_t world, Draft& draft) {
  MegatronDegrees degrees = read_degrees(arguments, draft);
  read_chunks(arguments, degrees, draft);
  read_megatron_split(arguments, {.layers = degrees.layers, .pp = degrees.pp, .vpp = degrees.vpp}, draft);
  read_world(world, degrees, draft);
  read_megatron_batch(arguments, degrees, world, draft);
  read_megatron_precision(arguments, draft);
  read_attention(arguments, draft);
  read_recompute(arguments, degrees, draft);
  read_optimizer(arguments, degrees, world, draft);
  read_overlap(arguments, degrees, draft);
  read_dispatch(arguments, draft);
  read_fusions(arguments, draft);
  read_vocabulary_padding(arguments, draft);
  read_graphs(arguments, draft);
  const std::int64_t offloaded = arguments.whole("cpu-offloading-num-layers", 0, 0);  // the number is the switch
  static_cast<void>(arguments.flag("cpu-offloading"));
  if (offloaded > 0) {
    draft.set("offload.activations", "true");
    draft.set("offload.layers", offloaded);
  }
  draft.need("cluster", "the file does not say on which machines (rehearse list clusters)");
}

}  // namespace rehearse::sim

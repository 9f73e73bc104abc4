// The keys of platforms/software/*.yaml.
#include <algorithm>
#include <array>

#include "sim/cost/engine_habits.hpp"
#include "sim/cost/software_keys.hpp"
#include "workloads/model_limits.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Key;
using config::Keys;
using config::Node;
using config::truth;
using config::whole;
using workloads::KernelFusions;
using workloads::PassCopies;
using workloads::PassKernels;
using workloads::PassTimes;

constexpr double most_copies = 1000;

struct Fusion {
  const char* name;
  bool KernelFusions::*field;
  const char* means;
};
constexpr std::array<Fusion, 8> all_fusions{
    {{"softmax", &KernelFusions::softmax, "Unfused attention: scale, mask and softmax in one kernel."},
     {"norm", &KernelFusions::norm, "RMSNorm in one kernel."},
     {"activation", &KernelFusions::activation, "Bias and activation, or gate and product, in one kernel."},
     {"dropout_add", &KernelFusions::dropout_add, "Bias, dropout and residual in one kernel."},
     {"rope", &KernelFusions::rope, "Rotary embedding in one kernel."},
     {"cross_entropy", &KernelFusions::cross_entropy, "Vocabulary-parallel loss without fp32 intermediates."},
     {"gradient_accumulation", &KernelFusions::gradient_accumulation, "Products of weight gradients add into the gradient buffer."},
     {"optimizer", &KernelFusions::optimizer, "The whole update in one pass."}}};

// What a stack does with experts; left out it is as KernelFusions has it.
constexpr std::array<Fusion, 11> expert_habits{
    {{"grouped_gemm", &KernelFusions::grouped_gemm, "One kernel for all of a rank's experts."},
     {"low_precision_dispatch", &KernelFusions::low_precision_dispatch, "8-bit layers: tokens travel to their experts in 8 bits."},
     {"permutation", &KernelFusions::permutation, "Tokens are sorted by expert, and added up again, by a kernel each."},
     {"gathers_counts", &KernelFusions::gathers_counts, "What each rank has for each expert is gathered before tokens are dispatched."},
     {"exchanges_weights", &KernelFusions::exchanges_weights, "After the all-to-all of tokens another one has their weights."},
     {"stacked", &KernelFusions::stacked_experts,
      "Without grouped products: experts' weights are parts of one tensor, to whose gradient each adds a whole one."},
     {"replays_dispatch", &KernelFusions::replays_dispatch,
      "recompute: full takes what was dispatched to experts, and combined, from memory, and exchanges nothing."},
     {"eager", &KernelFusions::eager_experts,
      "Their activation function and its gate are operators of their own also where a compiler fuses what is around them."},
     {"gathered_biases", &KernelFusions::gathered_biases, "Biases are gathered by token and added at once, not expert by expert."},
     {"fills_blocks", &KernelFusions::fills_blocks,
      "Their rows are filled up to whole blocks for products in 8 or 4 bits, where dispatcher, padding or capacity have not; not in "
      "graphs."},
     {"kept_copies", &KernelFusions::kept_copies,
      "dispatcher: allgather keeps what it gathers, and its tokens' copies before they are sorted, until backward."}}};

// One of a stack's kernels, as a key has it.
constexpr auto kernels(auto KernelFusions::*field) {
  return [field](auto& software) -> auto& { return software.kernels.*field; };
}

Key<Software> fusion_key(const Fusion& fusion) {
  return Key<Software>(
      fusion.name, truth().shape, [name = fusion.name](const Node& node, Software& software) { software.fusions[name] = node.as_bool(); },
      {}, fusion.means);
}

const Keys<Software>& fusion_keys() {
  static const Keys<Software> keys([] {
    std::vector<Key<Software>> all;
    for (const Fusion& fusion : all_fusions) all.push_back(fusion_key(fusion).required());
    return all;
  }());
  return keys;
}

const Keys<PassCopies>& copies_keys() {
  using K = Key<PassCopies>;
  static const Keys<PassCopies> keys{
      K("forward", &PassCopies::forward, config::number(0, most_copies), "In forward.").required(),
      K("backward", &PassCopies::backward, config::number(0, most_copies), "In backward.").required(),
  };
  return keys;
}

const Keys<PassTimes>& times_keys() {
  using K = Key<PassTimes>;
  static const Keys<PassTimes> keys{
      K("forward", &PassTimes::forward, config::number(1, 100), "In forward.").required(),
      K("backward", &PassTimes::backward, config::number(1, 100), "In backward.").required(),
  };
  return keys;
}

const Keys<Software>& experts_keys() {
  using K = Key<Software>;
  const auto habit = [](const Fusion& fusion) { return fusion_key(fusion).otherwise(KernelFusions{}.*fusion.field ? "true" : "false"); };
  static const Keys<Software> keys{
      habit(expert_habits[0]),
      habit(expert_habits[1]),
      habit(expert_habits[2]),
      habit(expert_habits[3]),
      habit(expert_habits[4]),
      habit(expert_habits[5]),
      habit(expert_habits[6]),
      habit(expert_habits[7]),
      habit(expert_habits[8]),
      habit(expert_habits[9]),
      habit(expert_habits[10]),
      K("issue", &Software::experts_issue_s, config::quantity(Dimension::time),
        "Per kernel on the host, on top of the driver's launch, of routing, permutations and experts.")
          .otherwise("issue"),
      K("routing_kernels", kernels(&KernelFusions::routing_kernels), mapping(pass_keys()),
        "What the host issues to route a layer's tokens."),
      K("permutation_kernels", kernels(&KernelFusions::permutation_kernels), mapping(pass_keys()),
        "For each of the two permutations around the all-to-all."),
      K("sorting_kernels", kernels(&KernelFusions::sorting_kernels), mapping(pass_keys()),
        "With another dispatcher: for each of the two sorts by expert around the experts that it leaves to the host (not HybridEP)."),
      K("pairing_kernels", kernels(&KernelFusions::pairing_kernels), mapping(pass_keys()), "For each piece of a layer with overlap.ep."),
      K("loop_kernels", kernels(&KernelFusions::loop_kernels), mapping(pass_keys()),
        "Without grouped products: for each expert, beside those."),
      K("pair_copies", kernels(&KernelFusions::pair_copies), mapping(copies_keys()),
        "Reads and writes of the states of pairs of token and expert beside permutations and sums."),
      K("product_copies", kernels(&KernelFusions::product_copies), mapping(copies_keys()),
        "The same of what the experts' first product gives, beside the activation."),
      K("gate_bias_copies", kernels(&KernelFusions::gate_bias_copies), mapping(copies_keys()),
        "The same, expert by expert, where experts have biases; none in graphs."),
      K("bias_copies", kernels(&KernelFusions::bias_copies), mapping(copies_keys()),
        "The same of what their second product gives, expert by expert, where experts have biases; none in graphs."),
      K("clamp_copies", kernels(&KernelFusions::clamp_copies), mapping(copies_keys()),
        "The same of what the experts' first product gives, where the model clamps it (clamps_gate); none in graphs."),
      K("token_adds", kernels(&KernelFusions::token_adds), mapping(copies_keys()),
        "Times that states of pairs are added to tokens by atomic adds, around the all-to-all."),
      K("sort_adds", kernels(&KernelFusions::sort_adds), mapping(copies_keys()), "The same where tokens are sorted around the experts."),
      K("dispatch_kernels", kernels(&KernelFusions::dispatch_kernels), config::choice(dispatch_kernels()),
        "dispatcher: hierarchical: whose kernels send tokens, what beside them, and whether sorted by expert."),
      K("wire_multiple", kernels(&KernelFusions::wire_multiple), whole(1, 65536),
        "dispatcher: hierarchical sends states in whole multiples of so many elements, into which rows that have fewer are copied."),
      K("activation_kept", kernels(&KernelFusions::expert_activation_kept), config::number(0, 100),
        "Experts' activation where it is not fused: so many more tensors of its width stay until backward."),
      K("kept_outputs", kernels(&KernelFusions::kept_outputs), config::number(0, 8),
        "Bytes an element of what experts give that the gradient of the pairs' weights keeps."),
      K("grouped_kernel", kernels(&KernelFusions::grouped_kernel), config::choice(grouped_kernels()),
        "Without a capacity factor: what multiplies tokens sorted by expert, all experts at once (`grouped` of the GPU)."),
  };
  return keys;
}

config::Form<std::vector<std::string>> collectives_form() {
  return list_of(config::word(workloads::CollectiveRegistry::names())).checked([](const Node& node, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool twice = std::count(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) > 0;
      if (twice) node.items()[i].fail("collective '" + names[i] + "' is listed twice");
    }
    if (std::ranges::find(names, "ring") == names.end()) node.fail("a communication library without 'ring'", "ring serves every group");
  });
}

const Keys<Software>& software_keys() {
  using K = Key<Software>;
  const auto time = [] { return config::quantity(Dimension::time); };
  static const Keys<Software> keys{
      K(
          "source", config::text().shape, [](const Node& node, Software&) { static_cast<void>(node.as_string()); }, {},
          "Where the numbers come from.")
          .required(),
      K("trains", &Software::trains, truth(), "False: an engine that only serves."),
      K(
          "fusions", fusion_keys().shape(), [](const Node& node, Software& software) { fusion_keys().read(node, software); }, {},
          "Kernels that it fuses.")
          .required(),
      K(
          "experts", experts_keys().shape(), [](const Node& node, Software& software) { experts_keys().read(node, software); }, {},
          "What it does with experts."),
      K("kernel_time", &Software::kernel_time, config::number(1, 4), "Kernels take so many times what the GPU's file says."),
      K("cast_time", &Software::cast_time, config::number(1, 16),
        "Casts to 8 or 4 bits and transposes of what was cast take so many times what their bytes take."),
      K("launch", &Software::launch_s, time(), "Per kernel, the gap between dependent kernels on the GPU.").required(),
      K("issue", &Software::issue_s, time(), "Per kernel on the host, on top of the driver's launch.").required(),
      K("deterministic", &Software::deterministic, truth(),
        "torch.use_deterministic_algorithms: flash attention's backward adds in one order, and what libraries allocate is filled first."),
      K("launch_blocking", &Software::launch_blocking, truth(),
        "CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel before it issues the next."),
      K("network_wait", &Software::network_wait_s, time(),
        "More per kernel on the host, for each rank of tp, in pipelines over several nodes.")
          .otherwise("0 s"),
      K("network_rate", &Software::network_rate, config::quantity(Dimension::bandwidth, 1e6),
        "Of a GPU's messages that leave the scale-up domain, at most; not where GPUs hang on PCIe switches, and in training alone.")
          .otherwise("what links give"),
      K("step", &Software::step_s, time(), "Per step: data loading, logging, host work that nothing hides.").required(),
      K("collectives", &Software::collectives, collectives_form(), "Algorithms that its communication library has."),
      K("flash", &Software::flash, config::choice(flash_kernels()),
        "Generation of its flash-attention kernels; triton: that of 2022 in Triton; sdpa: PyTorch's own, whatever that is on the GPU; "
        "masked: the one that it takes with a "
        "mask."),
      K("early_stop", &Software::early_stop, truth(), "Recomputation ends with the last tensor that backward reads."),
      K("zero3_issue", &Software::zero3_issue_s, time(), "More per kernel on the host with ZeRO-3: hooks of every module.")
          .otherwise("0 s"),
      K("tp_issue", &Software::tp_issue_s, time(),
        "More per kernel on the host with tensor parallelism: operators on tensors that know how they are cut (DTensor).")
          .otherwise("0 s"),
      K("zero3_by_tensor", &Software::zero3_by_tensor, truth(),
        "ZeRO-3 gathers and reduces each parameter tensor by itself, beside nothing."),
      K("adapter_units", &Software::adapter_units, truth(),
        "ZeRO-3 gathers and reduces every matrix of an adapter by itself, beside nothing (PEFT's policy for FSDP)."),
      K("gathers_again", &Software::gathers_again, config::choice(workloads::gathered_again),
        "ZeRO-3, once more for the backward of a layer that was recomputed in full: adapters of adapter_units, or all of it (checkpoints "
        "with re-entrance around units of FSDP)."),
      K("copies_exchanged", &Software::copies_exchanged, truth(),
        "ZeRO-2 and 3 copy weights out of what was gathered, and gradients into what is reduced."),
      K("flat_parameters", &Software::flat_parameters, truth(),
        "ZeRO-2 and 3: weights are views of what was gathered; their gradients are joined, and cast and divided before they are reduced "
        "(FSDP1)."),
      K("joins_at_once", &Software::joins_at_once, truth(),
        "flat_parameters: gradients are joined before the next unit's parameters are asked for, not when these are there "
        "(BackwardPrefetch.BACKWARD_POST)."),
      K("root_unit", &Software::root_unit, truth(),
        "ZeRO-3: embedding, last norm and head are one unit, which stays gathered until the last backward is over (FSDP's root)."),
      K("all_reduces_gradients", &Software::all_reduces_gradients, truth(),
        "ZeRO-1 and 2: every rank gets the whole sum of the gradients."),
      K("broadcasts_weights", &Software::broadcasts_weights, truth(),
        "ZeRO-1 and 2: whole tensors have owners, who broadcast their new weights one after another."),
      K("host_update", &Software::host_update, config::number(1e-3, 1),
        "Of the host memory's rate, what an update of the optimizer there reaches."),
      K("whole_messages", &Software::whole_messages, truth(), "Pipeline: each rank of tp sends all of the activations, not its share."),
      K("selective_by_product", &Software::selective_by_product, truth(),
        "recompute: selective keeps attention and every second product of 16 bits, and computes all else again."),
      K("selective_narrow", &Software::selective_narrow, truth(), "With selective_by_product: products in 8 bits as those in 16."),
      K("fp8_recipe", &Software::fp8_recipe, config::choice(workloads::fp8_scalings),
        "precision.recipe of products in 8 bits where the job does not name it."),
      K("log_softmax", kernels(&KernelFusions::log_softmax), truth(),
        "The loss of a whole vocabulary is torch.nn.functional.cross_entropy: by its own kernels, or with fusions.cross_entropy compiled."),
      K("adopts_gradients", kernels(&KernelFusions::adopts_gradients), truth(),
        "torch.autograd: gradients of the first micro-batch become what those of later ones are added to. With ZeRO-2 and 3 only where "
        "copies_exchanged or flat_parameters."),
      K("whole_logits", kernels(&KernelFusions::whole_logits), truth(),
        "The logits are gathered over tp: every rank computes the loss of the whole vocabulary."),
      K("whole_head", kernels(&KernelFusions::whole_head), truth(),
        "Tensor parallelism leaves the table and the head whole: every rank computes all logits and the loss."),
      K("vocab_multiple", kernels(&KernelFusions::vocab_multiple), whole(1, workloads::widest),
        "Words that the vocabulary is padded to whole multiples of, for each rank of tp (Megatron-LM's make-vocab-size-divisible-by). "
        "Products of other than multiples of 8 are slow (`unaligned` of a GPU)."),
      K("remakes_logits", kernels(&KernelFusions::remakes_logits), truth(), "The loss keeps no logits: backward computes them again."),
      K("loss_pieces", kernels(&KernelFusions::loss_pieces), whole(1, most_kernels),
        "Head and loss work on so many parts of the tokens one after another, forward and backward at once, and keep no logits."),
      K("widens_pieces", kernels(&KernelFusions::widens_pieces), truth(),
        "The same: each part's gradient of the table is written, cast to fp32 and added to the sum by operators of their own."),
      K("repeats_kv", kernels(&KernelFusions::repeats_kv), truth(),
        "Flash attention without context parallelism: keys and values are copied for every query head, and kept so."),
      K("joined_norms", kernels(&KernelFusions::joined_norms), truth(),
        "Norms before attention's, mixers' and dense MLPs' first product are a part of its module, which keeps what they give also with "
        "recompute: {modules: [layernorm]}."),
      K("attention_copied", kernels(&KernelFusions::attention_copied), truth(),
        "Flash attention keeps its output, of which the projection reads a copy in another order."),
      K("packed_qkv", kernels(&KernelFusions::packed_qkv), truth(),
        "The product of queries, keys and values stays whole beside what is rotated and made contiguous of it."),
      K("own_tokens_first", kernels(&KernelFusions::own_tokens_first), truth(),
        "overlap.tp: a product's own tokens run beside the gather of the others, these afterwards; no other product is cut into pieces."),
      K("keeps_gathered", kernels(&KernelFusions::keeps_gathered), truth(),
        "Sequence parallelism: what is gathered for a layer's products stays until their backward, not gathered again."),
      K("separate_qkv", kernels(&KernelFusions::separate_qkv), truth(), "Queries, keys and values are three products of one input."),
      K("separate_gate", kernels(&KernelFusions::separate_gate), truth(),
        "A gated MLP's first two matrices are two products of one input."),
      K("fused_adapters", kernels(&KernelFusions::fused_adapters), truth(),
        "LoRA without tensor parallelism: an adapter's products scale what they give and add it to what is there, in no kernels of their "
        "own."),
      K("reduces_by_product", kernels(&KernelFusions::reduces_by_product), truth(),
        "Tensor parallelism without sequence parallelism: separate products reduce the gradient of their input one by one."),
      K("copies_shared", kernels(&KernelFusions::copies_shared), truth(),
        "Tensor parallelism without sequence parallelism: separate products read copies of their input, and all-reduces hand back copies "
        "of gradients."),
      K("gathers_by_product", kernels(&KernelFusions::gathers_by_product), truth(),
        "Sequence parallelism: separate products gather their input, and scatter its gradient, one by one."),
      K("merges_branches", kernels(&KernelFusions::merges_branches), truth(),
        "Models whose attention stands beside the MLP (parallel_residual): tensor parallelism sums both at once."),
      K("joins_gathered", kernels(&KernelFusions::joins_gathered), truth(),
        "Sequence parallelism: a copy joins what was gathered, and one cuts what is scattered."),
      K("autocast", kernels(&KernelFusions::autocast), truth(),
        "torch.autocast: without ZeRO-3, and where precision.weights is fp32 with it, weights and hidden states are in fp32, "
        "and products read copies in 16 bits."),
      K("compiled", kernels(&KernelFusions::compiled), truth(),
        "A compiler fuses chains of pointwise operators: norm, activation, dropout_add, rope."),
      K("rope_kernels", kernels(&KernelFusions::rope_kernels), mapping(pass_keys()),
        "Rotary embedding that is not fused: what the host issues for queries and keys."),
      K("rope_copies", kernels(&KernelFusions::rope_copies), mapping(copies_keys()), "The same: reads and writes of queries and keys."),
      K("rope_by_document", kernels(&KernelFusions::rope_by_document), truth(),
        "The same: document by document where sequences are packed (batch.document_tokens)."),
      K("activation_kernels", kernels(&KernelFusions::activation_kernels), mapping(pass_keys()),
        "An activation function that is not fused, in dense MLPs and shared experts: more that the host issues."),
      K("activation_copies", kernels(&KernelFusions::activation_copies), mapping(copies_keys()),
        "The same: more reads and writes of tensors of the MLP's width."),
      K("activation_kept", kernels(&KernelFusions::activation_kept), config::number(0, 100),
        "The same: so many more of these stay until backward."),
      K("loss_copies", kernels(&KernelFusions::loss_copies), mapping(copies_keys()),
        "Cross entropy that is not fused: reads and writes of the fp32 logits beside those of Megatron-LM's operators."),
      K("fused_loss_copies", kernels(&KernelFusions::fused_loss_copies), mapping(copies_keys()),
        "Cross entropy that is fused in several kernels: reads and writes of the fp32 logits beside those of one."),
      K("update_kernels", kernels(&KernelFusions::update_kernels), whole(0, most_kernels),
        "An update that is not fused: what the host issues for each tensor of parameters; 0: torch's foreach kernels for all."),
      K("untuned_norm_time", kernels(&KernelFusions::untuned_norm_time), mapping(times_keys()),
        "A fused norm over a width without tuned kernels in Transformer Engine takes so many times what the GPU's file says."),
      K("head_norm_time", kernels(&KernelFusions::head_norm_time), mapping(times_keys()),
        "LayerNorm over the queries and keys of each head takes so many times what the GPU's file says."),
      K("sums_by_block", kernels(&KernelFusions::sums_by_block), truth(),
        "Fused RMSNorm over heads: few threads add up what blocks have of its weight's gradient (block_sum of the GPU)."),
      K("zeroes_gradients", kernels(&KernelFusions::zeroes_gradients), truth(),
        "The buffer of all gradients is set to zero once per step."),
      K("gradient_checks", kernels(&KernelFusions::gradient_checks), whole(0, most_kernels),
        "Each bucket of gradients is read for its norm before it is reduced, and the host waits for so many checks of it."),
      K("copies_buckets", kernels(&KernelFusions::copies_buckets), truth(),
        "Several replicas: gradients' buckets are divided, cast to the weights' type, in which clipping and update read them, and set to "
        "zero by operators of their own."),
      K("casts_weights", kernels(&KernelFusions::casts_weights), truth(),
        "Products in 8 or 4 bits: weights are cast once per step, as they are and transposed, and inputs kept as they are cast; else, by "
        "recipes but delayed, as torchao does: in each pass, and kept in 16 bits (a compiler keeps the cast of tensorwise)."),
      K("fused_casts", kernels(&KernelFusions::fused_casts), truth(),
        "Products in 8 bits whose scales are known before: norms, and gated activations of dense MLPs, write what products read."),
      K("transposes_frozen", kernels(&KernelFusions::transposes_frozen), truth(),
        "Frozen weights in 8 bits (lora, precision.param_gather) are transposed anew for every product of backward."),
      K("memory", &Software::memory, mapping(memory_keys()), "Device memory beside the model's tensors."),
      K(
          "serving", engine_keys().shape(), [](const Node& node, Software&) { static_cast<void>(mapping(engine_keys()).read(node)); }, {},
          "Of an inference engine: what it does where a job does not say otherwise (serving.md)."),
  };
  return keys;
}

}  // namespace

const Keys<PassKernels>& pass_keys() {
  using K = Key<PassKernels>;
  static const Keys<PassKernels> keys{
      K("forward", &PassKernels::forward, whole(0, most_kernels), "In forward.").required(),
      K("backward", &PassKernels::backward, whole(0, most_kernels), "In backward.").required(),
  };
  return keys;
}

config::Shape software_shape() { return software_keys().shape(); }

Software read_software(const Node& node, const std::string& name) {
  Software software;
  software.name = name;
  software_keys().read(node, software);
  require_launches(node, software.memory.habits);
  if (software.memory.habits.activation_in_place && !software.fusions["activation"])
    node.at("memory")
        .at("activation_in_place")
        .fail("activation_in_place changes nothing where the activation is not fused", "fusions: {activation: true}");
  if (software.kernels.update_kernels > 0 && software.fusions["optimizer"])
    node.at("update_kernels").fail("update_kernels changes nothing where the update is fused", "fusions: {optimizer: false}");
  if (software.memory.habits.pieces_apart && software.kernels.loss_pieces == 1)
    node.at("memory").at("pieces_apart").fail("pieces_apart changes nothing where the head is one piece", "loss_pieces: 8");
  if (software.flat_parameters && software.copies_exchanged)
    node.at("flat_parameters")
        .fail("flat_parameters are not copied out of what was gathered", "flat_parameters: false, or copies_exchanged: false");
  if (software.joins_at_once && !software.flat_parameters)
    node.at("joins_at_once").fail("joins_at_once changes nothing where no gradients are joined", "flat_parameters: true");
  if (software.gathers_again == workloads::GatheredAgain::adapters && (!software.adapter_units || software.zero3_by_tensor))
    node.at("gathers_again").fail("no adapter comes by itself that could come again", "adapter_units: true, or gathers_again: none");
  if (workloads::by_rows(software.fp8_recipe) && software.kernels.casts_weights)
    node.at("fp8_recipe")
        .fail("scales of rows are torchao's, which does not cast weights once per step", "casts_weights: false, or fp8_recipe: tensorwise");
  if (software.kernels.widens_pieces && software.kernels.loss_pieces == 1)
    node.at("widens_pieces").fail("widens_pieces changes nothing where the head is one piece", "loss_pieces: 8");
  return software;
}

KernelFusions kernel_fusions(const Software& software) {
  KernelFusions fusions = software.kernels;
  const auto take = [&](const Fusion& fusion) {
    if (const auto found = software.fusions.find(fusion.name); found != software.fusions.end()) fusions.*fusion.field = found->second;
  };
  std::ranges::for_each(all_fusions, take);
  if (fusions.compiled) fusions.norm = fusions.activation = fusions.dropout_add = fusions.rope = true;
  std::ranges::for_each(expert_habits, take);
  return fusions;
}

}  // namespace rehearse::sim

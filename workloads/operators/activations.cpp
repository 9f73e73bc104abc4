// Activation memory of a layer (Korthikanti et al. 2022, equations 1-6, per tensor so that GQA, gates, flash attention and 8 bits fit in).
#include <algorithm>

#include "workloads/expert_layer.hpp"
#include "workloads/mixer.hpp"
#include "workloads/operators/adapters.hpp"
#include "workloads/operators/casts.hpp"
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

constexpr double mask_byte = 1;
constexpr double statistic_bytes = 4;
constexpr double fp32_bytes = 4;

// Of an element of what a linear layer reads.
double saved_input(const Workload& workload, const Shard& shard) {
  return keeps_casts(workload, shard.linear) ? cast_copy_bytes(workload, shard.linear) : shard.element;
}

// Tokens whose inputs of column-parallel layers stay until backward.
std::int64_t kept_inputs(const Workload& workload, const Shard& shard) {
  return workload.fusions.keeps_gathered ? shard.tokens : shard.spread_tokens;
}

// Under autocast the norm's input is a hidden state in fp32. A compiler has all but the layer's own input in 16 bits: half of a layer's
// two, or the one that it has where attention stands beside the MLP.
double in_fp32(const Workload& workload, const Shard& shard) {
  if (!autocasts(workload)) return 0;
  return (fp32_bytes - shard.element) * (workload.fusions.compiled && !workload.model.side_by_side() ? 0.5 : 1);
}

// Of an element of a norm's input.
double norm_input_bytes(const Workload& workload, const Shard& shard) {
  const bool kept = !workload.recompute.drops(RecomputeModule::layernorm);
  return normed_bytes(workload, shard) + (kept ? unfused_norm_bytes(workload) : 0) + in_fp32(workload, shard);
}

// Of the one before the MLP. Attention beside it reads the same hidden state; a second norm of operators has a copy in fp32 of its own, and
// under autocast what it has normed.
double mlp_norm_input_bytes(const Workload& workload, const Shard& shard) {
  if (!workload.model.side_by_side()) return norm_input_bytes(workload, shard);
  const double of_operators = workload.recompute.drops(RecomputeModule::layernorm) ? 0 : unfused_norm_bytes(workload);
  if (workload.model.shares_norm() || of_operators == 0) return 0;
  return of_operators + (autocasts(workload) ? 0 : normed_bytes(workload, shard));
}

// Whether the MLP's first product keeps what attention's keeps, of the norm that both stand behind: not what each casts, gathers or copies
// for itself, nor where attention's keeps nothing.
bool shares_input(const Workload& workload, const Shard& shard) {
  const KernelFusions& fusions = workload.fusions;
  const bool casts = keeps_casts(workload, shard.linear) || (autocasts(workload) && !fusions.compiled);
  const bool copies = shard.tp > 1 && (shard.sp ? fusions.keeps_gathered : fusions.copies_shared);
  return workload.model.shares_norm() && !casts && !copies && !workload.lora.on();
}

// Of the input of queries, keys and values, or of both halves of a gated MLP. Eager autocast casts it for each product that reads it; a
// stack may copy it for each of them that is apart.
double copies_of_input(const Workload& workload, const Shard& shard, bool apart, double products) {
  const bool copied = workload.fusions.copies_shared && shard.tp > 1 && !shard.sp && apart;
  const bool cast = autocasts(workload) && !workload.fusions.compiled && workload.model.gated();
  return copied || cast ? products : 1;
}
double copies_for_attention(const Workload& workload, const Shard& shard) {
  return copies_of_input(workload, shard, workload.fusions.separate_qkv, 3);
}
double copies_for_mlp(const Workload& workload, const Shard& shard) {
  const double copies = copies_of_input(workload, shard, workload.fusions.separate_gate && workload.model.gated(), 2);
  return shares_input(workload, shard) ? 0 : copies;
}

// Of a linear layer's adapters. The first product keeps its input, all of them the same one, or what each made of it by a cast, or by
// dropout with a mask; the second one the first's output. kept: the input is kept anyway.
double adapter_bytes(const Workload& workload, const Shard& shard, std::size_t adapters, double width, bool kept) {
  const auto count = static_cast<double>(adapters);
  const bool dropped = workload.lora.dropout > 0;
  const double element = adapter_element(workload, shard);
  const bool cast = adapter_input_element(workload, shard) > shard.element;
  const double own = dropped ? element + adapter_mask_bytes(workload, shard) : cast ? element : 0;  // of each
  const double shared = own == 0 && adapters > 0 && !kept ? element : 0;
  return static_cast<double>(shard.tokens) * (width * (count * own + shared) + count * workload.lora.rank * element);
}

// Copies of a column-parallel layer's input that the layer itself keeps: frozen it has no gradient to make of it.
double own_copies(const Workload& workload, double copies) { return workload.lora.on() ? 0 : copies; }

// What adapters beside a column-parallel layer keep. kept: its input is kept anyway, or made again.
double column_adapter_bytes(const Workload& workload, const Shard& shard, std::size_t adapters, bool kept) {
  return adapter_bytes(workload, shard, adapters, static_cast<double>(shard.hidden), kept);
}

// Input of the norm and what else it keeps, input of the column-parallel layer, mask of the dropout: the 10 of equation 2 for both halves
// of a layer. of_norm: of an element of the norm's input; `copies`: of the layer's, where they
// are kept. Masks of what is summed over tp later are of all tokens.
double outside_tensor_parallel(const Workload& workload, const Shard& shard, double of_norm, double copies, bool kept) {
  const double ranks = merges_branches(workload, shard) ? static_cast<double>(shard.tokens) / static_cast<double>(shard.spread_tokens) : 1;
  const double per_element = of_norm + (shard.dropout ? mask_byte * ranks : 0);
  const double inputs = kept ? static_cast<double>(kept_inputs(workload, shard)) * saved_input(workload, shard) * copies : 0;
  return (static_cast<double>(shard.spread_tokens) * per_element + inputs) * static_cast<double>(shard.hidden);
}

// Softmax output, and with dropout its mask and output: 5 a s / h of equation 1. In fp32 also the copy that is multiplied, in dropout's
// place. Flash keeps one statistic per head and query.
double core_attention_bytes(const Workload& workload, const Shard& shard) {
  if (workload.recompute.drops(RecomputeModule::core_attn)) return 0;
  const double rows = static_cast<double>(shard.tokens * shard.heads);
  if (workload.attention == Attention::flash) return rows * statistic_bytes;
  const bool wide = softmax_in_fp32(workload);
  const double multiplied = wide || shard.dropout ? shard.element : 0;
  const double per_score = (wide ? fp32_bytes : shard.element) + multiplied + (shard.dropout ? mask_byte : 0);
  return rows * static_cast<double>(shard.sequence) * per_score;
}

// Inputs of the norms over heads, and of those behind a branch, which are outputs of products that nothing else keeps.
double head_norm_bytes(const Workload& workload, const Shard& shard) {
  if (!workload.model.qk_norm) return 0;
  // The copy that autocast makes, and what it is of where values are a part of the same product, which they hold.
  const double input = casts_for_norm(workload, shard) ? fp32_bytes + (workload.fusions.separate_qkv ? 0 : shard.element) : shard.element;
  return static_cast<double>(shard.tokens * (shard.query_width + shard.kv_width)) * (input + unfused_norm_bytes(workload));
}
double post_norm_bytes(const Workload& workload, const Shard& shard) {
  if (!workload.model.post_norms) return 0;
  return static_cast<double>(shard.spread_tokens * shard.hidden) * (shard.element + unfused_norm_bytes(workload));
}

// Low-rank queries and keys/values before and after their norms, shared rotary keys.
double latent_bytes(const Workload& workload, const Shard& shard) {
  if (!workload.model.mla) return 0;
  const double normed = workload.model.mla->q_lora + workload.model.mla->kv_lora;
  const bool kept = !workload.recompute.drops(RecomputeModule::mla_up_proj);
  const double of_norm = kept ? saved_input(workload, shard) + unfused_norm_bytes(workload) : 0;
  return static_cast<double>(shard.spread_tokens) * (normed * (shard.element + of_norm) + workload.model.mla->qk_rope * shard.element);
}

// Widths of what core attention reads and writes; with latent attention keys are wider than values.
struct CoreWidths {
  double in = 0, out = 0;
};
CoreWidths core_widths(const Workload& workload, const Shard& shard) {
  if (!workload.model.mla) return {static_cast<double>(shard.query_width + 2 * shard.kv_width), static_cast<double>(shard.query_width)};
  const MlaSpec& mla = *workload.model.mla;
  const auto heads = static_cast<double>(shard.heads);
  return {heads * (2 * (mla.qk_nope + mla.qk_rope) + mla.v), heads * mla.v};
}

double attention_bytes(const Workload& workload, const Shard& shard) {
  const CoreWidths widths = core_widths(workload, shard);
  // Core attention that is computed again copies them again.
  const bool copied = repeats_kv(workload, shard) && !workload.recompute.drops(RecomputeModule::core_attn);
  const double read = copied ? 3 * widths.out : widths.in;
  const double projections = workload.recompute.drops(RecomputeModule::mla_up_proj) ? 0 : read * shard.element;
  const bool is_flash = workload.attention == Attention::flash;
  // Frozen the projection keeps nothing, flash attention its output all the same.
  const bool trained = !workload.lora.on();
  const double context = widths.out * (trained ? saved_input(workload, shard) : is_flash ? shard.element : 0);
  const double packed =
      workload.fusions.packed_qkv && !workload.model.mla ? static_cast<double>(shard.query_width + 2 * shard.kv_width) * shard.element : 0;
  // A gate that was projected beside the queries, and what it is multiplied by, which flash attention has anyway.
  const double gate = workload.model.attention_gate ? (is_flash ? 1 : 2) * widths.out * shard.element : 0;
  // Flash attention keeps its output for its own backward: the projection keeps another tensor where it reads a cast to fewer bits, a copy
  // in another order, or what an all-to-all over the context-parallel group made of it (SimuMax's runs hold that much more, tests/memory).
  const bool exchanged = is_flash && shard.cp > 1 && workload.parallel.cp_comm == ContextComm::all_to_all;
  const bool copied_out = is_flash && workload.fusions.attention_copied;
  const bool apart = keeps_casts(workload, shard.linear) || exchanged || copied_out || workload.model.attention_gate;
  const double own_output = trained && apart ? widths.out * shard.element : 0;
  const bool dropped = drops_norm(workload, !workload.model.mla);
  const double adapters = column_adapter_bytes(workload, shard, qkv_adapters(workload, shard).size(), dropped) +
                          adapter_bytes(workload, shard, projection_adapters(workload, shard).size(), widths.out, is_flash && !exchanged);
  return adapters +
         outside_tensor_parallel(workload, shard, norm_input_bytes(workload, shard),
                                 own_copies(workload, copies_for_attention(workload, shard)), !dropped) +
         latent_bytes(workload, shard) + head_norm_bytes(workload, shard) +
         static_cast<double>(shard.tokens) * (projections + context + packed + own_output + gate) + core_attention_bytes(workload, shard);
}

// As attention's: norm and projection in, what the kind keeps between the projections, the projection out's input.
double mixer_bytes(const Workload& workload, const Shard& shard) {
  const MixerSpec& spec = *workload.model.mixer;
  const MixerShare share = mixer_share(spec, shard);
  const double inside = static_cast<double>(share.tokens) * MixerRegistry::get(spec.kind).kept_bytes(share);
  const double output = static_cast<double>(shard.tokens) * spec.heads * spec.head_dim / static_cast<double>(shard.tp);
  return outside_tensor_parallel(workload, shard, norm_input_bytes(workload, shard), 1, !drops_norm(workload, true)) + inside +
         output * saved_input(workload, shard);
}

// Of one token in an MLP of this width: what the activation function makes; eager ones also have its output, for its product with the other
// half.
double activated_bytes(const Workload& workload, const Shard& shard, double ffn, bool eager) {
  return ffn * ((workload.lora.on() ? 0 : saved_input(workload, shard)) + (workload.model.gated() && eager ? shard.element : 0));
}

// And what is before it, twice as wide with a gate.
double unactivated_bytes(const Workload& workload, const Shard& shard, double ffn) {
  const auto& input = workload.precision.activation_input;
  return ffn * (workload.model.gated() ? 2 : 1) * (input ? bytes_of(*input) : shard.element);
}

// Of a pair of token and expert: clamps outside of the activation keep what they clamped, for their own gradient.
double clamped_bytes(const Workload& workload, const Shard& shard, double ffn) {
  const bool apart = workload.model.clamps_gate && workload.fusions.clamp_copies.forward > 0;
  return apart ? ffn * (workload.model.gated() ? 2 : 1) * shard.element : 0;
}

// moe_act runs clamps and activation again.
double intermediate_bytes(const Workload& workload, const Shard& shard, double ffn) {
  const double products = unactivated_bytes(workload, shard, ffn);
  if (workload.recompute.drops(RecomputeModule::moe_act)) return products;
  const bool eager = eager_experts(workload);
  const double more = eager ? ffn * workload.fusions.expert_activation_kept * shard.element : 0;
  return products + clamped_bytes(workload, shard, ffn) + activated_bytes(workload, shard, ffn, eager) + more;
}

// The same of a dense MLP and of shared experts, whose functions may be several operators.
double dense_activated_bytes(const Workload& workload, const Shard& shard, double ffn) {
  const bool eager = !workload.fusions.activation;
  return activated_bytes(workload, shard, ffn, eager) + (eager ? ffn * workload.fusions.activation_kept * shard.element : 0);
}

double dense_intermediate_bytes(const Workload& workload, const Shard& shard, double ffn) {
  return unactivated_bytes(workload, shard, ffn) + dense_activated_bytes(workload, shard, ffn);
}

double mlp_bytes(const Workload& workload, const Shard& shard) {
  const bool again = workload.recompute.drops(RecomputeModule::mlp);
  // What is run again needs its input, frozen or not.
  const double copies = copies_for_mlp(workload, shard);
  const bool normed_again = drops_norm(workload, true);
  const double outside = outside_tensor_parallel(workload, shard, mlp_norm_input_bytes(workload, shard),
                                                 again ? copies : own_copies(workload, copies), !normed_again);
  if (again) return outside;
  const auto ffn = static_cast<double>(shard.ffn);
  const bool dropped = workload.recompute.drops(RecomputeModule::mlp_act);
  // Behind one norm adapters beside both first products keep the same input, but for what each gathers.
  const bool kept = workload.model.shares_norm() && !shard.sp && !qkv_adapters(workload, shard).empty();
  const double adapters = column_adapter_bytes(workload, shard, fc1_adapters(workload, shard).size(), normed_again || kept) +
                          adapter_bytes(workload, shard, fc2_adapters(workload, shard).size(), ffn, dropped);
  const double intermediate = dropped ? unactivated_bytes(workload, shard, ffn) : dense_intermediate_bytes(workload, shard, ffn);
  return adapters + outside + static_cast<double>(shard.tokens) * intermediate;
}

// Inputs of the projections around experts that are narrower than their layer: the one down reads what the norm gave, as the router does,
// or a cast of its own; the one up the sum over a token's experts.
double projected_bytes(const Workload& workload, const Shard& shard) {
  if (!workload.model.narrows()) return 0;
  const double own = keeps_casts(workload, shard.linear) ? static_cast<double>(shard.hidden) : 0;
  return static_cast<double>(shard.spread_tokens) * saved_input(workload, shard) * (own + workload.model.routed_width());
}

// The router's scores and probabilities in fp32 and its map of choices; shared experts. Routed experts: received_activation_bytes.
double experts_bytes(const Workload& workload, const Shard& shard) {
  const MoeSpec& moe = *workload.model.moe;
  const double router = static_cast<double>(shard.spread_tokens) * moe.experts * (2 * sizeof(float) + mask_byte);
  const double around = outside_tensor_parallel(workload, shard, norm_input_bytes(workload, shard), copies_for_mlp(workload, shard),
                                                !drops_norm(workload, false)) +
                        router + projected_bytes(workload, shard);
  if (workload.recompute.drops(RecomputeModule::shared_experts)) return around;
  const double width = static_cast<double>(moe.shared) * moe.ffn / static_cast<double>(shard.tp);
  return around + static_cast<double>(shard.tokens) * dense_intermediate_bytes(workload, shard, width);
}

// Attention and every second product in 16 bits (queries, values, one of two halves of fc1, fc2), and the layer's input. Grouped products
// are not on the policy's list, what all-to-alls bring is: of experts what they get (received_activation_bytes) and what comes back, no
// product.
double every_second_product_bytes(const Workload& workload, const Shard& shard, LayerKind kind) {
  const double states = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
  const double input = layer_input_bytes(workload, shard);
  const auto tokens = static_cast<double>(shard.tokens);
  const double attention =
      tokens * (static_cast<double>(shard.query_width) * shard.element + static_cast<double>(shard.heads) * statistic_bytes);
  const double back = kind == LayerKind::experts && workload.parallel.ep > 1 ? workload.model.moe->top_k * states : 0;
  // Reduce-scatters are on the list: each one's output is kept, and of the last product what all tokens have of this rank's columns.
  const bool scatters = shard.sp && shard.tp > 1;
  const double projected = scatters ? states : 0;
  if (shard.low_precision() && !workload.recompute.narrow_too) return input + attention + projected + back;
  const double shared = kind == LayerKind::experts ? static_cast<double>(workload.model.moe->shared) : 1;
  const double ffn = kind == LayerKind::experts ? static_cast<double>(workload.model.moe->ffn) / static_cast<double>(shard.tp)
                                                : static_cast<double>(shard.ffn);
  // The last product's output is added to the residual alone: no gradient reads it, and a compiler, which sees that, does not save it.
  const bool unread = workload.fusions.compiled && post_norm_bytes(workload, shard) == 0;
  const double last = scatters ? states * static_cast<double>(shard.tp + 1) : states;
  const double mlp = (shared > 0 && !unread ? last : 0) + tokens * shared * ffn * shard.element;
  return input + mlp + back + attention + projected + tokens * static_cast<double>(shard.query_width + shard.kv_width) * shard.element;
}

// What a layer that is recomputed in full keeps beside its input. The MLP's output is read by nobody in backward: a stack that stops early
// does not hold it.
double kept_bytes(const Workload& workload, const Shard& shard, LayerKind kind) {
  const Recompute& recompute = workload.recompute;
  const CoreWidths widths = core_widths(workload, shard);
  const auto tokens = static_cast<double>(shard.tokens);
  const double states = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
  double bytes = 0;
  if (shard.heads > 0) {
    const double gate = workload.model.attention_gate ? widths.out : 0;
    if (recompute.keeps(LayerOutput::linear_qkv)) bytes += tokens * (widths.in + gate) * shard.element;
    if (recompute.keeps(LayerOutput::core_attention)) bytes += tokens * widths.out * shard.element + core_attention_bytes(workload, shard);
    if (recompute.keeps(LayerOutput::linear_proj)) bytes += states;
  }
  if (kind != LayerKind::dense) return bytes;
  if (recompute.keeps(LayerOutput::linear_fc1))
    bytes += tokens * static_cast<double>(shard.ffn) * (workload.model.gated() ? 2 : 1) * shard.element;
  if (recompute.keeps(LayerOutput::linear_fc2) && !(recompute.stops_early && !shard.dropout)) bytes += states;
  return bytes;
}

}  // namespace

bool autocasts(const Workload& workload) {
  const Precision& precision = workload.precision;
  if (!workload.fusions.autocast || workload.lora.on() || bytes_of(precision.optimizer) != fp32_bytes) return false;
  const bool types_by_gathers = workload.optimizer.zero_stage == 3 && precision.param_gather;
  if (bytes_of(precision.weights) == fp32_bytes) return bytes_of(precision.compute) < fp32_bytes && !types_by_gathers;
  return bytes_of(precision.weights) == 2 && workload.optimizer.zero_stage < 3;
}

bool softmax_in_fp32(const Workload& workload) { return !workload.fusions.softmax && autocasts(workload); }

double product_weight_bytes(const Workload& workload) {
  const double kept = bytes_of(workload.precision.weights);
  return autocasts(workload) ? std::min(kept, bytes_of(shard_of(workload).dense)) : kept;
}

double layer_input_bytes(const Workload& workload, const Shard& shard) {
  return static_cast<double>(shard.spread_tokens * shard.hidden) * (autocasts(workload) ? fp32_bytes : shard.element);
}

double unfused_norm_bytes(const Workload& workload) {
  return workload.fusions.norm || workload.model.norm == Norm::layernorm ? 0 : fp32_bytes;
}

double received_activation_bytes(const Workload& workload, bool recomputed) {
  if (workload.experts.chunk_recompute) return 0;
  const Shard shard = expert_shard_of(workload);
  const double state = static_cast<double>(shard.hidden) * shard.element;
  if (recomputed) {
    const double replayed = replays_dispatch(workload) ? copies_per_pair(workload) * state : 0;
    return replayed + (workload.recompute.keeps(LayerOutput::expert_fc2) ? state : 0);
  }
  if (workload.recompute.every_second_product()) return workload.parallel.ep > 1 ? state : 0;
  return pair_tensors(workload).all();
}

PairTensors pair_tensors(const Workload& workload) {
  const Shard shard = expert_shard_of(workload);
  const double ffn = static_cast<double>(workload.model.moe->ffn) / workload.parallel.etp;
  const auto hidden = static_cast<double>(shard.hidden);
  const bool copies = workload.fusions.kept_copies && workload.experts.dispatcher == Dispatcher::allgather;
  const double gathered = static_cast<double>(workload.parallel.ep) / workload.model.moe->top_k;  // tokens for each pair
  return {.input = hidden * (saved_input(workload, shard) + (copies ? (1 + gathered) * shard.element : 0)),
          .inner = intermediate_bytes(workload, shard, ffn),
          .active = activated_bytes(workload, shard, ffn, false),
          .outputs = hidden * workload.fusions.kept_outputs};
}

double layer_activation_bytes(const Workload& workload, bool recomputed, LayerKind kind, Reach reach) {
  const Shard shard = shard_of(workload, reach);
  if (recomputed) {
    const double parts = workload.recompute.shards_inputs ? static_cast<double>(shard.tp) : 1;
    const double input = layer_input_bytes(workload, shard) / parts;
    const bool replays = kind == LayerKind::experts && replays_dispatch(workload);
    const double combined = replays ? static_cast<double>(shard.spread_tokens) * workload.model.routed_width() * shard.element : 0;
    return input + combined + kept_bytes(workload, shard, kind);
  }
  if (workload.recompute.every_second_product()) return every_second_product_bytes(workload, shard, kind);
  const double attention = reach == Reach::state ? mixer_bytes(workload, shard)
                           : shard.heads > 0     ? attention_bytes(workload, shard) + post_norm_bytes(workload, shard)
                                                 : 0;
  if (kind == LayerKind::none) return attention;
  return (kind == LayerKind::experts ? experts_bytes(workload, shard) : mlp_bytes(workload, shard)) + post_norm_bytes(workload, shard) +
         attention;
}

}  // namespace rehearse::workloads

// Attention: projections, rotary embedding and the core (flash or unfused; a ring over the context-parallel group).
#include <algorithm>
#include <numeric>

#include "config/input_error.hpp"
#include "workloads/operators/adapters.hpp"
#include "workloads/operators/flash.hpp"
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// Preparation (rowwise dO*O), main kernel, conversion of the query gradient.
constexpr int flash_backward_kernels = 3;
constexpr double log_sum_bytes = 4;  // one fp32 log-sum-exp per head and query

Operator attention_kernel(const Shard& shard, Pass pass) {
  Operator op;
  op.name = "core_attention";
  op.cls = OperatorClass::attention;
  op.pass = pass;
  op.dtype = shard.attention;
  op.batch = shard.tokens / shard.context;
  op.heads = shard.heads;
  op.kv_heads = shard.kv_heads;
  op.query = shard.context;
  op.key = shard.window > 0 ? shard.window : shard.context;
  op.head_dim = shard.head_dim;
  op.causal = true;
  return op;
}

// Scores and values are 2 * 2 * b * a * s^2 * d; a causal kernel skips the half above the diagonal, and what lies outside the window or the
// document.
double causal_forward_flops(const Shard& shard) {
  const double positions = attended_positions(static_cast<double>(shard.context), static_cast<double>(shard.window));
  return 4.0 * static_cast<double>(shard.tokens * shard.query_width) * positions;
}

Operator flash_forward(const Shard& shard) {
  Operator op = attention_kernel(shard, Pass::forward);
  op.flops = causal_forward_flops(shard);
  // Q, K, V in; O and the statistics out.
  op.bytes = static_cast<double>(shard.tokens) * (static_cast<double>(2 * shard.query_width + 2 * shard.kv_width) * shard.element +
                                                  static_cast<double>(shard.heads) * log_sum_bytes);
  op.allocated_bytes = static_cast<double>(shard.tokens * shard.query_width) * shard.element;
  return op;
}

Operator flash_backward(const Shard& shard) {
  Operator op = attention_kernel(shard, Pass::backward_input);
  op.flops = flash_backward_flops * causal_forward_flops(shard);
  // Q, O, dO in, dQ out; K, V in, dK, dV out; the statistics in.
  op.bytes = static_cast<double>(shard.tokens) * (static_cast<double>(4 * shard.query_width + 4 * shard.kv_width) * shard.element +
                                                  static_cast<double>(shard.heads) * log_sum_bytes);
  op.allocated_bytes = static_cast<double>(shard.tokens * (shard.query_width + 2 * shard.kv_width)) * shard.element;
  op.kernels = flash_backward_kernels;
  return op;
}

Section flash(const Shard& shard) {
  Section section;
  section.forward.emplace_back(flash_forward(shard));
  section.backward.emplace_back(flash_backward(shard));
  return section;
}

// Keys and values by expand and reshape, one copy each for every query head that shares them; backward their gradients are added up. A
// compiler makes the copy of keys in their rotation, and adds up their gradients there.
Section repeated(const Workload& workload, const Shard& shard) {
  Shard wide = shard;
  wide.kv_heads = shard.heads;
  wide.kv_width = shard.query_width;
  const bool compiled = workload.fusions.compiled;
  const auto widths = static_cast<double>(compiled ? 2 * shard.query_width : 2 * (shard.query_width + shard.kv_width));
  const auto copies = [&](Pass pass) {
    const double bytes = static_cast<double>(shard.tokens) * widths * shard.element;
    return by_operators(compiled, memory_bound("key/value repeat", bytes, pass, compiled ? 1 : 2));
  };
  Section section = flash(wide);
  section.forward.insert(section.forward.begin(), copies(Pass::forward));
  section.backward.emplace_back(copies(Pass::backward_input));
  return section;
}

// What the steps of a ring leave is put together by kernels of their own (Transformer Engine, AttnFuncWithCPAndKVP2P in
// context_parallel.py). The first step's output or gradient is written by a pass over what it left, every other one is added to it: three
// passes, over half of the rows where the step had half of the queries (or of the keys), which half of the steps have. Forward the keys and
// values are joined first, and each step corrects the statistics and the output; backward it adds up the gradients of queries, keys and
// values.
Operator joining_kernels(const Shard& shard, Pass pass) {
  const auto steps = static_cast<double>(shard.cp), tokens = static_cast<double>(shard.tokens);
  const double passes = 2 + 3 * 0.75 * (steps - 1);
  const double queries = tokens * static_cast<double>(shard.query_width) * shard.element;
  const double keys_and_values = 2 * tokens * static_cast<double>(shard.kv_width) * shard.element;
  const bool forward = pass == Pass::forward;
  const double bytes = forward ? passes * queries + 2 * keys_and_values : passes * (queries + keys_and_values);
  const auto kernels = static_cast<int>(forward ? 2 * shard.cp + 1 : 3 * shard.cp);
  return by_operators(forward, memory_bound(std::string(ring_joining), bytes, pass, kernels));
}

// Zig-zag placement gives each rank an early and a late piece of the sequence: every one of the cp steps is half of a (s/cp)^2 square. Of
// packed documents each rank has such pieces of every one (Transformer Engine's thd).
Section ring(const Shard& shard) {
  const double block = 2.0 * static_cast<double>(shard.tokens * shard.kv_width) * shard.element;
  Section section;
  section.forward = {RingAttention{flash_forward(shard), block, Pass::forward}, joining_kernels(shard, Pass::forward)};
  section.backward = {RingAttention{flash_backward(shard), 2 * block, Pass::backward_input}, joining_kernels(shard, Pass::backward_input)};
  return section;
}

// Keys and values of the whole sequence are gathered (again for backward), the queries stay (Llama 3, section 3.3.2): two kernels, one for
// each of the rank's two pieces, with the work of a ring's cp steps; in a window with the rank's share of the sequence's.
Section gathered(const Shard& shard) {
  constexpr int pieces = 2;
  const auto cp = static_cast<double>(shard.cp);
  const double keys_and_values = 2.0 * static_cast<double>(shard.tokens * shard.kv_width) * shard.element;
  const double local = attended_positions(static_cast<double>(shard.context), static_cast<double>(shard.window));
  const double work = attended_positions(static_cast<double>(shard.context) * cp, static_cast<double>(shard.window)) / local;
  const auto whole = [&](Operator op, double copies) {  // of keys and values that the kernel reads or writes
    if (shard.window == 0) op.key *= shard.cp;
    op.flops *= work;
    op.bytes += copies * (cp - 1) * keys_and_values;
    op.kernels *= pieces;
    return op;
  };
  const auto gather = [&](Pass pass) {
    return Communication{"key/value all-gather", CollectiveKind::all_gather, GroupKind::cp, cp * keys_and_values, pass};
  };
  Section section;
  section.forward = {gather(Pass::forward), whole(flash_forward(shard), 1)};
  section.backward = {gather(Pass::backward_input), whole(flash_backward(shard), 2),
                      Communication{"key/value gradient reduce-scatter", CollectiveKind::reduce_scatter, GroupKind::cp,
                                    cp * keys_and_values, Pass::backward_input}};
  return section;
}

// The sequence is exchanged for heads before attention and back after it (Jacobs et al. 2023, DeepSpeed-Ulysses).
// Key/value heads that are fewer than the ranks are repeated before.
Section exchanged(const Shard& own) {
  Shard shard = own;
  if (own.kv_heads < own.cp) {
    shard.kv_heads = own.cp;
    shard.kv_width = own.kv_width / own.kv_heads * own.cp;
  }
  Shard heads = shard;
  heads.sequence *= shard.cp;
  heads.context *= shard.cp;
  heads.tokens *= shard.cp;
  heads.heads /= shard.cp;
  heads.kv_heads /= shard.cp;
  heads.query_width /= shard.cp;
  heads.kv_width /= shard.cp;
  const std::vector<std::int64_t> context{shard.query_width}, qkv{shard.query_width, shard.kv_width, shard.kv_width};
  const Pass forward = Pass::forward, backward = Pass::backward_input;
  Section section;
  add_exchange(section.forward, shard, "qkv all-to-all", qkv, forward, true);
  section.forward.emplace_back(flash_forward(heads));
  add_exchange(section.forward, shard, "context all-to-all", context, forward, false);
  add_exchange(section.backward, shard, "context gradient all-to-all", context, backward, true);
  section.backward.emplace_back(flash_backward(heads));
  add_exchange(section.backward, shard, "qkv gradient all-to-all", qkv, backward, false);
  return section;
}

Section over_context_group(const Workload& workload, const Shard& shard) {
  switch (workload.parallel.cp_comm) {
    case ContextComm::all_gather:
      return gathered(shard);
    case ContextComm::all_to_all:
      return exchanged(shard);
    case ContextComm::ring:
      break;
  }
  return ring(shard);
}

// A product of the unfused kernel over all heads: m = b * a/t * s rows.
Operator batched_product(const Shard& shard, const char* name, Pass pass, std::int64_t n, std::int64_t k) {
  Operator op;
  op.name = name;
  op.cls = OperatorClass::gemm;
  op.pass = pass;
  op.dtype = shard.dense;
  op.batched = true;
  op.m = shard.batch * shard.heads * shard.sequence;
  op.n = n;
  op.k = k;
  op.flops = 2.0 * static_cast<double>(op.m) * static_cast<double>(n) * static_cast<double>(k);
  // The square of the scores, and two b * s * width tensors (queries and keys, or probabilities' values and context).
  const double narrow = static_cast<double>(shard.tokens * (shard.query_width + shard.kv_width));
  op.bytes = (static_cast<double>(op.m * shard.sequence) + narrow) * shard.element;
  return op;
}

// Over the b * a/t * s^2 elements of the scores. Fused: in and out. Apart: scale, mask and softmax each in and out. Autocast takes softmax
// in fp32 (aten/src/ATen/autocast_mode.cpp), with a cast of the scores before it and one of the probabilities behind.
Traffic softmax_traffic(const Workload& workload, double scores, double element) {
  if (workload.fusions.softmax) return {.forward_bytes = 2 * element * scores, .backward_bytes = 3 * element * scores};
  const bool wide = softmax_in_fp32(workload);
  const double exact = wide ? bytes_of(DType::fp32) : element, others = 4 * element + (wide ? 2 * (element + exact) : 0);
  const int kernels = wide ? 5 : 3;
  return {.forward_bytes = (others + 2 * exact) * scores,
          .backward_bytes = (others + 3 * exact) * scores,
          .forward_kernels = kernels,
          .backward_kernels = kernels};
}

std::vector<Section> unfused_pieces(const Workload& workload, const Shard& shard) {
  const auto s = shard.sequence, d = shard.head_dim;
  const double square = static_cast<double>(shard.batch * shard.heads * s) * static_cast<double>(s);
  Section scores;
  scores.forward.emplace_back(batched_product(shard, "attention_scores", Pass::forward, s, d));
  scores.backward.emplace_back(batched_product(shard, "attention_query_gradient", Pass::backward_input, d, s));
  scores.backward.emplace_back(batched_product(shard, "attention_key_gradient", Pass::backward_input, d, s));
  Section values;
  values.forward.emplace_back(batched_product(shard, "attention_values", Pass::forward, d, s));
  values.backward.emplace_back(batched_product(shard, "attention_probability_gradient", Pass::backward_input, s, d));
  values.backward.emplace_back(batched_product(shard, "attention_value_gradient", Pass::backward_input, d, s));
  std::vector<Section> pieces{scores, pointwise("softmax", softmax_traffic(workload, square, shard.element))};
  const double dropout = square * (2 * shard.element + 1);  // in, out and one byte of mask
  if (shard.dropout) pieces.push_back(pointwise("attention_dropout", {.forward_bytes = dropout, .backward_bytes = dropout}));
  pieces.push_back(values);
  return pieces;
}

Section unfused(const Workload& workload, const Shard& shard) {
  BlockProgram program = assemble(unfused_pieces(workload, shard));
  return {std::move(program.forward), std::move(program.backward), 0};
}

// Over each head's queries and keys, with weights that all heads share: two kernels in the place of one.
Section head_norms(const Workload& workload, const Shard& shard) {
  Shard heads = shard;
  heads.hidden = shard.query_width + shard.kv_width;
  heads.spread_tokens = shard.tokens;
  const char* name = "qk_norm";
  Section section = norm_of_product(workload, heads, name);
  const PassTimes times = workload.model.norm == Norm::layernorm ? workload.fusions.head_norm_time : PassTimes{};
  for (const auto& [items, time] : {std::pair(&section.forward, times.forward), std::pair(&section.backward, times.backward)}) {
    for (Item& item : *items) {
      Operator& op = std::get<Operator>(item);
      op.kernels *= 2;
      if (op.name == name) op.times = time;  // not the casts around it
    }
  }
  const bool by_block = workload.fusions.norm && workload.fusions.sums_by_block && workload.model.norm == Norm::rmsnorm;
  if (by_block) std::get<Operator>(section.backward.front()).block_sums = 2;
  section.parameters = 2.0 * static_cast<double>(shard.head_dim) * (workload.model.norm == Norm::layernorm ? 2 : 1);
  return section;
}

// Queries and keys in and out. Written with PyTorch operators, by default: rotate half (in, out), two products (in, out each), one sum (two
// in, one out).
Section rotary(const Workload& workload, const Shard& shard) {
  const double bytes = 2 * static_cast<double>(shard.tokens * (shard.query_width + shard.kv_width)) * shard.element;
  if (workload.fusions.rope) return pointwise("rope", {.forward_bytes = bytes, .backward_bytes = bytes});
  const PassCopies& copies = workload.fusions.rope_copies;
  const PassKernels kernels = separate_rope(workload);
  return rotated_apart(workload, pointwise("rope", {.forward_bytes = copies.forward * bytes,
                                                    .backward_bytes = copies.backward * bytes,
                                                    .forward_kernels = kernels.forward,
                                                    .backward_kernels = kernels.backward,
                                                    .eager = true}));
}

// Attention's output and its gate in, their product out; backward those and the gradient in, two gradients out (Megatron-Core's
// _apply_output_gate, one kernel).
Section output_gate(const Shard& shard) {
  const double once = static_cast<double>(shard.tokens * shard.query_width) * shard.element;
  return pointwise("attention_gate", {.forward_bytes = 3 * once, .backward_bytes = 5 * once});
}

// Queries, keys and values are cast before they are attended to in fewer bits, the gradient of the output before backward. With scales that
// are known before, the output and the gradients of queries, keys and values come in as few bits and are cast back (Transformer Engine's
// FusedAttnFunc in backends.py); with others kernels write 16 bits.
Section with_casts(const Workload& workload, const Shard& shard, Section section) {
  const double narrow = bytes_of(shard.attention);
  if (narrow >= shard.element) return section;
  const auto cast = [&](std::int64_t width, Pass pass) {
    return narrow_cast("attention cast", static_cast<double>(shard.tokens * width) * (shard.element + narrow), pass);
  };
  const std::int64_t qkv = shard.query_width + 2 * shard.kv_width;
  section.forward.insert(section.forward.begin(), cast(qkv, Pass::forward));
  section.backward.insert(section.backward.begin(), cast(shard.query_width, Pass::backward_input));
  if (workload.precision.compute != DType::fp8 || workload.precision.recipe != Scaling::delayed) return section;
  section.forward.emplace_back(cast(shard.query_width, Pass::forward));
  section.backward.emplace_back(cast(qkv, Pass::backward_input));
  return section;
}

}  // namespace

// Tensors of these widths, a call each. A copy cuts what is sent and another one puts together what arrives: Transformer Engine's
// flash_attn_a2a_communicate (context_parallel.py), whose order of the sequence a compiled kernel makes on the side of the heads;
// DeepSpeed's single_all_to_all and xtuner's _all_to_all copy as often. What is attended to in fewer bits is cast before it is sent.
void add_exchange(std::vector<Item>& items, const Shard& shard, const char* name, const std::vector<std::int64_t>& widths, Pass pass,
                  bool to_heads) {
  const double each = static_cast<double>(shard.tokens) * std::min(bytes_of(shard.attention), shard.element);
  const auto all = static_cast<double>(std::accumulate(widths.begin(), widths.end(), std::int64_t{0}));
  const auto copies = [&](bool compiled) {
    return by_operators(compiled, memory_bound(std::string(exchange_copies), 2 * each * all, pass, static_cast<int>(widths.size())));
  };
  items.emplace_back(copies(!to_heads));
  for (const std::int64_t width : widths) {
    items.emplace_back(Communication{name, CollectiveKind::all_to_all, GroupKind::cp, each * static_cast<double>(width), pass});
  }
  items.emplace_back(copies(to_heads));
}

namespace {

int rotations(const Workload& workload) { return workload.fusions.rope_by_document ? workload.batch.documents() : 1; }

}  // namespace

PassKernels separate_rope(const Workload& workload) {
  const int times = rotations(workload);
  return {times * workload.fusions.rope_kernels.forward, times * workload.fusions.rope_kernels.backward};
}

// A loop over documents runs operators alone, no modules.
Section rotated_apart(const Workload& workload, Section section) {
  return rotations(workload) > 1 ? of_experts(std::move(section)) : section;
}

Section core_attention(const Workload& workload, const Shard& shard) {
  const auto core = [](Section section) {
    return makes(LayerOutput::core_attention, part_of(RecomputeModule::core_attn, std::move(section)));
  };
  const bool is_flash = workload.attention == Attention::flash;
  if (shard.cp > 1 && shard.window > 0 && workload.parallel.cp_comm == ContextComm::ring) {
    throw config::InputError("ring attention has no sliding windows: parallel.cp_comm: all-gather or all-to-all");
  }
  if (shard.cp > 1 && !is_flash) throw config::InputError("context parallelism needs attention: flash");
  if (shard.cp > 1) return core(with_casts(workload, shard, over_context_group(workload, shard)));
  if (!is_flash) return core(unfused(workload, shard));
  return core(with_casts(workload, shard, repeats_kv(workload, shard) ? repeated(workload, shard) : flash(shard)));
}

std::vector<Section> attention_sections(const Workload& workload, const Shard& shard) {
  if (workload.model.mla) return latent_attention_sections(workload, shard);
  const bool bias = workload.model.projection_bias();
  Linear qkv{"qkv",
             shard.tokens,
             shard.query_width * (workload.model.attention_gate ? 2 : 1) + 2 * shard.kv_width,
             shard.hidden,
             workload.model.qkv_bias(),
             workload.fusions.separate_qkv ? 3 : 1,
             qkv_adapters(workload, shard),
             norm_casts(workload, shard)};
  qkv.input_found = norm_finds(workload, shard);
  qkv.input_beside = true;
  qkv.gradient_beside = workload.model.positions == Positions::rope;
  Linear projection{"attention_projection", shard.tokens, shard.hidden, shard.query_width, bias, 1, projection_adapters(workload, shard)};
  projection.gradient_beside = !workload.model.side_by_side();  // the sum of the residual's and the norm's
  projection.summed_later = merges_branches(workload, shard);
  std::vector<Section> sections{norm_of(workload, norm_before(workload, shard, "input_norm")),
                                makes(LayerOutput::linear_qkv, column_parallel(workload, shard, qkv, "attention"))};
  if (workload.model.qk_norm) sections.push_back(makes(LayerOutput::linear_qkv, head_norms(workload, shard)));
  if (workload.model.positions == Positions::rope) sections.push_back(makes(LayerOutput::linear_qkv, rotary(workload, shard)));
  sections.push_back(core_attention(workload, shard));
  if (workload.model.attention_gate) sections.push_back(output_gate(shard));
  sections.push_back(makes(LayerOutput::linear_proj, row_parallel(workload, shard, projection, "attention")));
  add_residual(sections, workload, shard, "attention", bias);
  return sections;
}

}  // namespace rehearse::workloads

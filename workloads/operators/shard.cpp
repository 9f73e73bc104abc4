#include "workloads/operators/shard.hpp"

#include <string>

#include "config/input_error.hpp"

namespace rehearse::workloads {
namespace {

std::int64_t divided(std::int64_t whole, std::int64_t parts, const std::string& what, const std::string& over) {
  if (whole % parts != 0) {
    throw config::InputError(std::to_string(whole) + " " + what + " cannot be divided evenly over " + over + " " + std::to_string(parts));
  }
  return whole / parts;
}

void fill_attention(Shard& shard, const Model& model) {
  if (model.heads == 0) return;
  shard.heads = divided(model.heads, shard.tp, "attention heads", "tp");
  if (model.mla) {
    // Queries and keys are wider than values. Everything here counts them in pairs (queries and context, keys and values; scores and
    // values), so that the mean is exact.
    shard.head_dim = divided(model.mla->qk_nope + model.mla->qk_rope + model.mla->v, 2, "widths of queries and values", "");
    shard.kv_heads = shard.heads;
    shard.query_width = shard.kv_width = shard.heads * shard.head_dim;
    return;
  }
  shard.head_dim = model.head_dim;
  shard.kv_heads = model.kv_heads > shard.tp ? divided(model.kv_heads, shard.tp, "key/value heads", "tp") : 1;
  shard.query_width = shard.heads * shard.head_dim;
  shard.kv_width = shard.kv_heads * shard.head_dim;
}

void fill_tokens(Shard& shard, const Workload& workload) {
  shard.batch = workload.batch.micro;
  shard.sequence = divided(workload.batch.sequence, shard.cp, "positions of a sequence", "cp");
  shard.context = (workload.batch.context() + shard.cp - 1) / shard.cp;  // a document is cut as a sequence is
  shard.tokens = shard.batch * shard.sequence;
  shard.spread_tokens = shard.sp ? shard.batch * divided(shard.sequence, shard.tp, "positions of a sequence", "tp") : shard.tokens;
}

void fill_types(Shard& shard, const Workload& workload) {
  shard.linear = workload.precision.compute;
  shard.dense = shard.low_precision() ? DType::bf16 : shard.linear;
  shard.attention = workload.precision.attention.value_or(shard.dense);
  shard.element = bytes_of(shard.dense);
  shard.state = autocasts(workload) ? bytes_of(DType::fp32) : shard.element;
  shard.normed = workload.fusions.compiled ? shard.element : shard.state;
}

}  // namespace

bool casts_for_norm(const Workload& workload, const Shard& shard) { return shard.casts_normed() && workload.model.norm == Norm::layernorm; }

std::int64_t padded_vocabulary(int vocab, int tp, int multiple) {
  const std::int64_t whole = std::int64_t{multiple} * tp;
  return (vocab + whole - 1) / whole * whole;
}

Shard shard_of(const Workload& workload) {
  Shard shard;
  shard.tp = workload.parallel.tp;
  shard.cp = workload.parallel.cp;
  shard.sp = workload.parallel.sp && shard.tp > 1;
  shard.hidden = workload.model.hidden;
  shard.dropout = workload.model.dropout > 0;
  fill_types(shard, workload);
  fill_tokens(shard, workload);
  fill_attention(shard, workload.model);
  shard.ffn = divided(workload.model.ffn, shard.tp, "intermediate features", "tp");
  const int head_tp = workload.fusions.whole_head ? 1 : workload.parallel.tp;
  shard.vocab = padded_vocabulary(workload.model.vocab, head_tp, workload.fusions.vocab_multiple) / head_tp;
  shard.head_tp = head_tp;
  shard.loss_vocab = workload.fusions.whole_logits ? shard.vocab * head_tp : shard.vocab;
  return shard;
}

// A window as long as what attention sees is none.
Shard shard_of(const Workload& workload, Reach reach) {
  Shard shard = shard_of(workload);
  if (reach == Reach::window && workload.model.window->tokens < workload.batch.context()) shard.window = workload.model.window->tokens;
  if (reach == Reach::state || reach == Reach::none) shard.heads = shard.kv_heads = shard.query_width = shard.kv_width = 0;
  return shard;
}

Shard expert_shard_of(const Workload& workload) {
  Shard shard = shard_of(workload);
  shard.hidden = workload.model.routed_width();
  shard.linear = workload.precision.of_experts();
  return shard;
}

}  // namespace rehearse::workloads

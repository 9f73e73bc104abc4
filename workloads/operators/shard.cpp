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

void refuse_unknown_layers(const Model& model) {
  if (model.moe) throw config::InputError("model '" + model.name + "': layers with experts have no operators; only dense layers have");
  if (model.mla)
    throw config::InputError("model '" + model.name + "': multi-head latent attention has no operators; MHA, GQA and MQA have");
}

void fill_attention(Shard& shard, const Model& model) {
  if (model.heads == 0) return;
  shard.head_dim = model.head_dim;
  shard.heads = divided(model.heads, shard.tp, "attention heads", "tp");
  shard.kv_heads = model.kv_heads > shard.tp ? divided(model.kv_heads, shard.tp, "key/value heads", "tp") : 1;
  shard.query_width = shard.heads * shard.head_dim;
  shard.kv_width = shard.kv_heads * shard.head_dim;
}

void fill_tokens(Shard& shard, const Workload& workload) {
  shard.batch = workload.batch.micro;
  shard.sequence = divided(workload.batch.sequence, shard.cp, "positions of a sequence", "cp");
  shard.tokens = shard.batch * shard.sequence;
  shard.spread_tokens = shard.sp ? shard.batch * divided(shard.sequence, shard.tp, "positions of a sequence", "tp") : shard.tokens;
}

void fill_types(Shard& shard, const Workload& workload) {
  shard.linear = workload.precision.compute;
  shard.dense = shard.low_precision() ? DType::bf16 : shard.linear;
  shard.element = bytes_of(shard.dense);
}

}  // namespace

std::int64_t padded_vocabulary(int vocab, int tp) {
  const std::int64_t multiple = std::int64_t{128} * tp;
  return (vocab + multiple - 1) / multiple * multiple;
}

Shard shard_of(const Workload& workload) {
  refuse_unknown_layers(workload.model);
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
  shard.vocab = padded_vocabulary(workload.model.vocab, workload.parallel.tp) / shard.tp;
  return shard;
}

}  // namespace rehearse::workloads

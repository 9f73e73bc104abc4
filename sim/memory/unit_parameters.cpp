// Tensors of a unit's weights.
#include <algorithm>

#include "sim/memory/unit_tensors.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::sim {
namespace {

using workloads::Unit;
using workloads::UnitKind;
using workloads::Workload;
using Sizes = std::vector<double>;

// The projection, then what makes queries, keys and values.
Sizes attention_tensors(const Workload& workload, const workloads::Shard& s) {
  const auto hidden = static_cast<double>(s.hidden);
  const auto query = static_cast<double>(s.query_width), key = static_cast<double>(s.kv_width);
  if (s.heads == 0) return {hidden};
  if (!workload.model.mla) return {hidden * query, hidden, hidden * (query + 2 * key), hidden};
  const workloads::MlaSpec& mla = *workload.model.mla;
  const auto heads = static_cast<double>(s.heads);
  const double queries = heads * (mla.qk_nope + mla.qk_rope);
  Sizes sizes{hidden * heads * mla.v, hidden};
  if (mla.q_lora > 0) sizes.insert(sizes.end(), {hidden * mla.q_lora, mla.q_lora * queries});
  if (mla.q_lora == 0) sizes.push_back(hidden * queries);
  sizes.insert(sizes.end(), {hidden * (mla.kv_lora + mla.qk_rope), mla.kv_lora * heads * (mla.qk_nope + mla.v), hidden});
  return sizes;
}

// Router, projections around narrower experts, and shared experts.
void add_beside_experts(const Workload& workload, const workloads::Shard& s, Sizes& sizes) {
  const workloads::MoeSpec& moe = *workload.model.moe;
  const auto hidden = static_cast<double>(s.hidden);
  sizes.push_back(hidden * moe.experts);
  if (workload.model.narrows()) sizes.insert(sizes.end(), 2, hidden * moe.latent);
  const double width = static_cast<double>(moe.shared) * moe.ffn / static_cast<double>(s.tp);
  if (moe.shared > 0) sizes.insert(sizes.end(), {hidden * width * (workload.model.gated() ? 2 : 1), hidden * width});
}

}  // namespace

std::vector<double> parameters_of(const Workload& workload, const Unit& unit) {
  const workloads::Shard s = workloads::shard_of(workload);
  const auto hidden = static_cast<double>(s.hidden);
  const auto query = static_cast<double>(s.query_width), key = static_cast<double>(s.kv_width), ffn = static_cast<double>(s.ffn);
  const bool gated = workload.model.gated(), apart = gated && workload.fusions.separate_qkv && workload.fusions.separate_gate;
  Sizes sizes;
  if (unit.kind == UnitKind::layer && unit.layer_kind == workloads::LayerKind::experts) {
    sizes = attention_tensors(workload, s);
    add_beside_experts(workload, s, sizes);
  } else if (unit.kind == UnitKind::layer && apart) {
    sizes = {hidden * query, hidden * key, hidden * key, hidden * query, hidden * ffn, hidden * ffn, hidden * ffn, hidden, hidden};
  } else if (unit.kind == UnitKind::layer) {
    sizes = attention_tensors(workload, s);
    sizes.insert(sizes.end(), {hidden * ffn * (gated ? 2 : 1), hidden * ffn});
  } else if (unit.program->parameters >= hidden * static_cast<double>(s.vocab)) {  // not where the other end has it
    sizes = {hidden * static_cast<double>(s.vocab)};
  }
  if (unit.kind == UnitKind::layer && workload.model.shares_norm()) sizes.erase(std::ranges::find(sizes, hidden));
  double rest = unit.program->parameters - unit.program->expert_parameters;
  for (const double size : sizes) rest -= size;
  if (rest >= 1) sizes.push_back(rest);  // biases, position embeddings, norms
  return sizes;
}

std::vector<double> expert_parameters_of(const Workload& workload, const Unit& unit) {
  if (unit.layer_kind != workloads::LayerKind::experts) return {};
  const int held = workload.model.moe->experts / workload.parallel.ep;
  const double each = unit.program->expert_parameters / held, gates = workload.model.gated() ? 2 : 1;
  Sizes sizes(static_cast<std::size_t>(held), each * gates / (gates + 1));
  sizes.insert(sizes.end(), static_cast<std::size_t>(held), each / (gates + 1));
  return sizes;
}

}  // namespace rehearse::sim

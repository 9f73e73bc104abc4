// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) as Megatron-Core trains it: low-rank queries and keys/values, a
// norm on each, projections up to whole heads, rotary positions on a part of them that all heads' keys share.
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// Down projections are not tensor parallel: every rank has all of them, on its own tokens.
Section down(const Workload& workload, const Shard& shard, const char* name, std::int64_t width) {
  Shard alone = shard;
  alone.tp = 1;
  return column_parallel(workload, alone, {name, shard.spread_tokens, width, shard.hidden, false}, name);
}

Section low_rank_norm(const Workload& workload, const Shard& shard, const char* name, std::int64_t width) {
  Shard low = shard;
  low.hidden = width;
  return norm_of_product(workload, low, name);
}

// Gathers low-rank states, not hidden ones.
Section up(const Workload& workload, const Shard& shard, const char* name, std::int64_t width, std::int64_t rank) {
  Shard low = of_product(workload, shard);
  low.hidden = rank;
  return column_parallel(workload, low, {name, shard.tokens, width, rank, false}, name);
}

// Queries in and out; keys and values as projected in, whole keys and values out. Not fused the parts with positions are rotated before
// that (of queries: all heads' keys share theirs).
Section rotary(const Workload& workload, const Shard& shard, const MlaSpec& mla) {
  const double query = mla.qk_nope + mla.qk_rope;
  const double per_head = 2 * query + (mla.qk_nope + mla.v) + (query + mla.v);
  const double per_element = static_cast<double>(shard.tokens * shard.heads) * shard.element;
  Traffic traffic{per_element * per_head, per_element * per_head, 2, 2};
  if (workload.fusions.rope) return pointwise("rope", traffic);
  const PassKernels apart = separate_rope(workload);
  traffic.forward_bytes += 2 * per_element * mla.qk_rope * workload.fusions.rope_copies.forward;
  traffic.backward_bytes += 2 * per_element * mla.qk_rope * workload.fusions.rope_copies.backward;
  traffic.forward_kernels += apart.forward;
  traffic.backward_kernels += apart.backward;
  return rotated_apart(workload, pointwise("rope", traffic));
}

}  // namespace

std::vector<Section> latent_attention_sections(const Workload& workload, const Shard& shard) {
  const MlaSpec& mla = *workload.model.mla;
  const std::int64_t query_width = shard.heads * (mla.qk_nope + mla.qk_rope);
  const auto upwards = [](Section section) { return part_of(RecomputeModule::mla_up_proj, std::move(section)); };
  const auto whole = [&](Section section) { return makes(LayerOutput::linear_qkv, upwards(std::move(section))); };
  std::vector<Section> sections{part_of(RecomputeModule::layernorm, norm(workload, shard, "input_norm"))};
  if (mla.q_lora > 0) {
    sections.push_back(down(workload, shard, "q_down", mla.q_lora));
    sections.push_back(upwards(low_rank_norm(workload, shard, "q_norm", mla.q_lora)));
    sections.push_back(whole(up(workload, shard, "q_up", query_width, mla.q_lora)));
  } else {
    sections.push_back(whole(column_parallel(workload, shard, {"q", shard.tokens, query_width, shard.hidden, false}, "attention")));
  }
  sections.push_back(down(workload, shard, "kv_down", mla.kv_lora + mla.qk_rope));
  sections.push_back(upwards(low_rank_norm(workload, shard, "kv_norm", mla.kv_lora)));
  sections.push_back(whole(up(workload, shard, "kv_up", shard.heads * (mla.qk_nope + mla.v), mla.kv_lora)));
  sections.push_back(whole(rotary(workload, shard, mla)));
  sections.push_back(core_attention(workload, shard));
  const bool bias = workload.model.projection_bias();
  const Linear projection{"attention_projection", shard.tokens, shard.hidden, shard.heads * mla.v, bias};
  sections.push_back(makes(LayerOutput::linear_proj, row_parallel(workload, shard, projection, "attention")));
  add_residual(sections, workload, shard, "attention", bias);
  return sections;
}

}  // namespace rehearse::workloads

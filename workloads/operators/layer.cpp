// A transformer layer: attention and MLP or experts, each behind its norm, and what recomputation runs again.
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

std::vector<Section> layer_sections(const Workload& workload, const Shard& shard, LayerKind kind) {
  std::vector<Section> sections;
  if (shard.heads > 0) sections = attention_sections(workload, shard);
  for (Section& section : kind == LayerKind::experts ? moe_sections(workload, shard) : mlp_sections(workload, shard)) {
    sections.push_back(std::move(section));
  }
  return sections;
}

bool is_routed(const Item& item) { return std::holds_alternative<RoutedExperts>(item); }

BlockProgram with_recomputation(const Workload& workload, const Shard& shard, const std::vector<Section>& sections, bool recomputed) {
  BlockProgram program = assemble(sections);
  if (recomputed) {
    program.recompute = as_recompute(program.forward);
    // Chunks bring back what their own backward needs.
    if (workload.experts.chunk_recompute) std::erase_if(program.recompute, is_routed);
  } else if (workload.recompute.kind == RecomputeKind::selective && shard.heads > 0) {
    program.recompute = as_recompute(core_attention(workload, shard).forward);
  }
  return program;
}

// Norms of the hidden states and of the next token's embedding, joined and projected back to one width.
std::vector<Section> joining(const Workload& workload, const Shard& shard) {
  Shard alone = shard;
  alone.tp = 1;
  const Linear projection{"mtp_projection", shard.spread_tokens, shard.hidden, 2 * shard.hidden, false};
  return {norm(workload, shard, "mtp_hidden_norm"), norm(workload, shard, "mtp_embedding_norm"),
          column_parallel(workload, alone, projection, "mtp")};
}

}  // namespace

BlockProgram layer_program(const Workload& workload, bool recomputed, LayerKind kind) {
  const Shard shard = shard_of(workload);
  return with_recomputation(workload, shard, layer_sections(workload, shard, kind), recomputed);
}

BlockProgram prediction_program(const Workload& workload, bool recomputed, bool holds_embedding) {
  const Shard shard = shard_of(workload);
  BlockProgram embedding = embedding_program(workload);
  Section look_up{std::move(embedding.forward), std::move(embedding.backward), holds_embedding ? embedding.parameters : 0};
  std::vector<Section> sections{std::move(look_up)};
  for (Section& section : joining(workload, shard)) sections.push_back(std::move(section));
  const LayerKind kind = workload.model.has_experts(workload.model.layers) ? LayerKind::experts : LayerKind::dense;
  for (Section& section : layer_sections(workload, shard, kind)) sections.push_back(std::move(section));
  return with_recomputation(workload, shard, sections, recomputed);
}

double pipeline_message_bytes(const Workload& workload) {
  const Shard shard = shard_of(workload);
  return static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
}

}  // namespace rehearse::workloads

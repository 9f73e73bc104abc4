// A transformer layer: attention and MLP, each behind its norm, and what recomputation runs again.
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

std::vector<Section> layer_sections(const Workload& workload, const Shard& shard) {
  std::vector<Section> sections;
  if (shard.heads > 0) sections = attention_sections(workload, shard);
  const auto mlp = mlp_sections(workload, shard);
  sections.insert(sections.end(), mlp.begin(), mlp.end());
  return sections;
}

}  // namespace

BlockProgram layer_program(const Workload& workload, bool recomputed) {
  const Shard shard = shard_of(workload);
  BlockProgram program = assemble(layer_sections(workload, shard));
  if (recomputed) {
    program.recompute = as_recompute(program.forward);
  } else if (workload.recompute.kind == RecomputeKind::selective && shard.heads > 0) {
    program.recompute = as_recompute(core_attention(workload, shard).forward);
    // Queries, keys and values are kept as they were exchanged, and so is the projection's input.
    if (workload.parallel.cp_comm == ContextComm::all_to_all) {
      std::erase_if(program.recompute, [](const Item& item) { return std::holds_alternative<Communication>(item); });
    }
  }
  return program;
}

double pipeline_message_bytes(const Workload& workload) {
  const Shard shard = shard_of(workload);
  return static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
}

}  // namespace rehearse::workloads

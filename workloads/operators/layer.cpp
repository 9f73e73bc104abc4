// A transformer layer: attention and MLP, each behind its norm, and what recomputation runs again.
#include <algorithm>
#include <iterator>

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

// The output of the layer's last product is read by nobody in backward (what a dropout behind it needs is its mask).
std::vector<Item> without_last_product(std::vector<Item> items) {
  const auto last = std::find_if(items.rbegin(), items.rend(), [](const Item& item) {
    const auto* op = std::get_if<Operator>(&item);
    return op != nullptr && op->cls == OperatorClass::gemm;
  });
  if (last != items.rend()) items.erase(std::prev(last.base()), items.end());
  return items;
}

}  // namespace

BlockProgram layer_program(const Workload& workload, bool recomputed) {
  const Shard shard = shard_of(workload);
  BlockProgram program = assemble(layer_sections(workload, shard));
  if (recomputed) {
    const bool cut = workload.recompute.stops_early && !shard.dropout;
    program.recompute = as_recompute(cut ? without_last_product(program.forward) : program.forward);
  } else if (workload.recompute.kind == RecomputeKind::selective && shard.heads > 0) {
    program.recompute = as_recompute(core_attention(workload, shard).forward);
    // Queries, keys and values are kept as they were exchanged, and so is the projection's input.
    if (workload.parallel.cp_comm == ContextComm::all_to_all) {
      std::erase_if(program.recompute, [](const Item& item) { return std::holds_alternative<Communication>(item); });
    }
  }
  return program;
}

// Each rank of tp sends its share, also where all of them hold the same (scatter/gather: Narayanan et al. 2021, section 4.1; DeepSpeed's
// pipeline likewise). The receivers' all-gather inside the node is not priced: less than 0.3 % of a stage.
double pipeline_message_bytes(const Workload& workload) {
  const Shard shard = shard_of(workload);
  return static_cast<double>(shard.tokens * shard.hidden) / shard.tp * shard.element;
}

}  // namespace rehearse::workloads

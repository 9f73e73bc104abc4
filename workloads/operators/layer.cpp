// A transformer layer: attention and MLP or experts, each behind its norm, and what recomputation runs again.
#include <algorithm>
#include <iterator>

#include "workloads/operators/casts.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/operators/wire.hpp"

namespace rehearse::workloads {
namespace {

std::vector<Section> layer_sections(const Workload& workload, const Shard& shard, LayerKind kind, Reach reach) {
  std::vector<Section> sections;
  const auto add = [&](std::vector<Section> more, std::optional<GraphScope> scope) {
    for (Section& section : more) sections.push_back(scope ? within(*scope, workload, std::move(section)) : std::move(section));
  };
  if (reach == Reach::state) add(mixer_sections(workload, shard), GraphScope::mamba);
  if (shard.heads > 0) add(attention_sections(workload, shard), GraphScope::attn);
  if (kind == LayerKind::experts) add(moe_sections(workload, shard), std::nullopt);
  if (kind == LayerKind::dense) add(mlp_sections(workload, shard), GraphScope::mlp);
  return sections;
}

bool is_routed(const Item& item) { return std::holds_alternative<RoutedExperts>(item); }

bool sums_pairs(const Item& item) {
  const auto* op = std::get_if<Operator>(&item);
  return op != nullptr && op->name == "unpermute";
}

bool is_weight_cast(const Item& item) {
  const auto* op = std::get_if<Operator>(&item);
  return op != nullptr && op->name.ends_with(weight_cast);
}

bool widens(const Item& item) {
  const auto* op = std::get_if<Operator>(&item);
  return op != nullptr && is_product_of(*op, latent_fc2);
}

// The output of the layer's last product is read by nobody in backward (what a dropout behind it needs is its mask), but for that of
// experts, which the gradient of their weights in the sum reads: there nobody reads the sum, or what a projection of the sum gives.
std::vector<Item> without_last_product(std::vector<Item> items) {
  if (std::ranges::any_of(items, is_routed)) {
    const bool projected = std::ranges::any_of(items, widens);
    std::erase_if(items, projected ? widens : sums_pairs);
    return items;
  }
  const auto last = std::find_if(items.rbegin(), items.rend(), [](const Item& item) {
    const auto* op = std::get_if<Operator>(&item);
    return op != nullptr && op->cls == OperatorClass::gemm;
  });
  if (last != items.rend()) items.erase(std::prev(last.base()), items.end());
  if (!items.empty() && is_weight_cast(items.back())) items.pop_back();
  return items;
}

// The one of the MLP's sections that holds its last product.
const Section* end_of_mlp(const std::vector<Section>& sections) {
  const auto last =
      std::find_if(sections.rbegin(), sections.rend(), [](const Section& each) { return each.module == RecomputeModule::mlp; });
  return last == sections.rend() ? nullptr : &*last;
}

// Core attention's only calls are those of its exchange.
bool is_exchange(const Item& item) {
  const auto* op = std::get_if<Operator>(&item);
  return std::holds_alternative<Communication>(item) || (op != nullptr && op->name == exchange_copies);
}

std::vector<Item> modules_again(const Workload& workload, const Shard& shard, const std::vector<Section>& sections) {
  std::vector<Item> again;
  const bool cut = workload.recompute.stops_early && !shard.dropout;
  for (const Section& section : sections) {
    if (!section.module || !workload.recompute.drops(*section.module)) continue;
    const bool unread = cut && &section == end_of_mlp(sections);
    std::vector<Item> items = as_recompute(unread ? without_last_product(section.forward) : section.forward);
    // Queries, keys and values are kept as they were exchanged, and so is the projection's input.
    if (section.module == RecomputeModule::core_attn && workload.parallel.cp_comm == ContextComm::all_to_all) {
      std::erase_if(items, is_exchange);
    }
    std::move(items.begin(), items.end(), std::back_inserter(again));
  }
  return again;
}

bool reduces_to_shards(const Item& item) {
  const auto* communication = std::get_if<Communication>(&item);
  return communication != nullptr && communication->kind == CollectiveKind::reduce_scatter && communication->group == GroupKind::tp;
}

// What is left of a product when only some of its columns are computed again; nothing: it goes.
void narrow(Item& item, double share) {
  auto& op = std::get<Operator>(item);
  op.flops *= share;
  op.bytes *= share;
  if (op.cls == OperatorClass::gemm) op.n = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(op.n) * share));
}

// Attention is kept; of queries, keys and values the keys come again, of fc1's two halves one, and the projection of attention, but not the
// reduce-scatter behind it, whose output is kept, nor where a compiler sees that the projection with it. Products in 8 bits are kept where
// the stack's policy sees them.
std::vector<Item> other_products(const Workload& workload, const Shard& shard, std::vector<Item> items) {
  const bool keeps = !shard.low_precision() || workload.recompute.narrow_too;
  const bool scatters = shard.sp && shard.tp > 1;
  std::vector<Item> again;
  const double keys = static_cast<double>(shard.kv_width) / static_cast<double>(shard.query_width + 2 * shard.kv_width);
  for (Item& item : as_recompute(without_last_product(std::move(items)))) {
    const auto* op = std::get_if<Operator>(&item);
    if (op != nullptr && (op->cls == OperatorClass::attention || op->name == ring_joining)) continue;
    if (std::holds_alternative<RingAttention>(item) || (scatters && reduces_to_shards(item))) continue;
    if (scatters && workload.fusions.compiled && op != nullptr && op->name.starts_with("attention_projection")) continue;
    if (op != nullptr && keeps) {
      if (is_product_of(*op, "qkv")) narrow(item, keys);
      if (is_product_of(*op, "mlp_fc1")) narrow(item, 0.5);
    }
    again.push_back(std::move(item));
  }
  return again;
}

bool gathers(const Item& item) {
  const auto* communication = std::get_if<Communication>(&item);
  return communication != nullptr && communication->kind == CollectiveKind::all_gather;
}

// All of a layer but what makes the outputs that are kept; with `cut`, which ends before the last product, keeping that one's changes
// nothing. Gathered inputs of products that are not gathered again for the gradient of the weight come again all the same.
std::vector<Item> layer_again(const Workload& workload, const std::vector<Section>& sections, bool cut) {
  std::vector<Item> again;
  for (const Section& section : sections) {
    const bool kept = section.output && workload.recompute.keeps(*section.output) && !(cut && section.output == LayerOutput::linear_fc2);
    if (!kept) again.insert(again.end(), section.forward.begin(), section.forward.end());
    if (kept && workload.fusions.keeps_gathered) std::ranges::copy_if(section.forward, std::back_inserter(again), gathers);
  }
  return as_recompute(cut ? without_last_product(std::move(again)) : std::move(again));
}

// The input's parts of all ranks of tp, joined.
Item input_again(const Workload& workload, const Shard& shard) {
  return Communication{"layer input all-gather", CollectiveKind::all_gather, GroupKind::tp, layer_input_bytes(workload, shard),
                       Pass::recompute};
}

BlockProgram with_recomputation(const Workload& workload, const Shard& shard, const std::vector<Section>& sections, bool recomputed) {
  BlockProgram program = assemble(sections);
  if (recomputed) {
    const bool cut = workload.recompute.stops_early && !shard.dropout;
    program.recompute = layer_again(workload, sections, cut);
    if (workload.recompute.shards_inputs) program.recompute.insert(program.recompute.begin(), input_again(workload, shard));
    // Chunks bring back what their own backward needs.
    if (workload.experts.chunk_recompute) std::erase_if(program.recompute, is_routed);
    drop_sending(workload, program.recompute);
  } else if (workload.recompute.every_second_product() && shard.heads > 0) {
    program.recompute = other_products(workload, shard, program.forward);
  } else {
    program.recompute = modules_again(workload, shard, sections);
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

LayerShape shape_of(const Model& model, int layer) {
  const LayerKind kind = model.has_experts(layer) ? LayerKind::experts : model.has_mlp(layer) ? LayerKind::dense : LayerKind::none;
  if (model.has_mixer(layer)) return {kind, Reach::state};
  return {kind, !model.attends(layer) ? Reach::none : model.windowed(layer) ? Reach::window : Reach::sequence};
}

bool is_wide(const Workload& workload, int layer) {
  const int layers = workload.model.layers;
  return layer < workload.precision.bf16_at_start || (layer < layers && layer >= layers - workload.precision.bf16_at_end);
}

Workload of_wide_layers(const Workload& workload) {
  Workload wide = workload;
  wide.precision = workload.precision.of_wide_layers();
  return wide;
}

BlockProgram layer_program(const Workload& workload, bool recomputed, LayerKind kind, Reach reach) {
  const Shard shard = shard_of(workload, reach);
  return with_recomputation(workload, shard, layer_sections(workload, shard, kind, reach), recomputed);
}

BlockProgram prediction_program(const Workload& workload, bool recomputed, bool holds_embedding) {
  const LayerShape last = shape_of(workload.model, workload.model.layers);
  const Shard shard = shard_of(workload, last.reach);
  BlockProgram embedding = embedding_program(workload);
  Section look_up{std::move(embedding.forward), std::move(embedding.backward), holds_embedding ? embedding.parameters : 0};
  std::vector<Section> sections{std::move(look_up)};
  for (Section& section : joining(workload, shard)) sections.push_back(std::move(section));
  for (Section& section : layer_sections(workload, shard, last.kind, last.reach)) sections.push_back(std::move(section));
  return with_recomputation(workload, shard, sections, recomputed);
}

double adapter_parameters(const Workload& workload) {
  Workload whole = workload;
  whole.parallel = {};
  return workload.model.layers * layer_program(whole, false).adapters;
}

// Each rank of tp sends its share, also where all of them hold the same (scatter/gather: Narayanan et al. 2021, section 4.1), unless the
// stack sends all of it from every rank. The receivers' all-gather inside the node is not priced: less than 0.3 % of a stage.
double pipeline_message_bytes(const Workload& workload) {
  const Shard shard = shard_of(workload);
  return static_cast<double>(shard.tokens * shard.hidden) / (workload.parallel.whole_messages ? 1 : shard.tp) * shard.state;
}

}  // namespace rehearse::workloads

#include "workloads/serving/pass_operators.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "workloads/expert_work.hpp"
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// Two sizes of which the lines are drawn; every operator's work is exactly linear between them.
constexpr int few = 64, more = 128;

// Fused into what stands before it, or for training alone.
bool is_left_out(const Operator& op) { return op.name == "core_attention" || op.casts; }

TokenOperator line_between(const Operator& low, const Operator& high, DType weights) {
  TokenOperator line{.shape = high};
  line.shape.flops = (high.flops - low.flops) / (more - few);
  line.bytes_per_token = (high.bytes - low.bytes) / (more - few);
  line.bytes = low.bytes - line.bytes_per_token * few;
  line.shape.m = (high.m - low.m) / (more - few);
  if (high.cls == OperatorClass::gemm) {
    line.bytes *= bytes_of(weights) / bytes_of(high.dtype);
    line.widened = !is_narrow(high.dtype) && is_narrow(weights);
  }
  if (high.name.ends_with("_residual")) line.shape.kernels = 0;
  return line;
}

// Operators that stay in 16 bits keep their weights in 16 bits; so do router and head, whatever the layers are computed in.
DType weights_of(const Operator& op, const InstancePlan& plan) {
  const bool whole = is_narrow(plan.precision.compute) || op.whole;
  return whole && !is_narrow(op.dtype) ? op.dtype : plan.precision.weights;
}

// What a program's weights take, its routers in 16 bits.
double weight_bytes(const BlockProgram& program, const InstancePlan& plan) {
  double bytes = program.parameters * bytes_of(plan.precision.weights);
  for (const Item& item : program.forward) {
    const auto* op = std::get_if<Operator>(&item);
    if (op == nullptr || !op->whole) continue;
    bytes += static_cast<double>(op->n * op->k) * (bytes_of(weights_of(*op, plan)) - bytes_of(plan.precision.weights));
  }
  return bytes;
}

std::vector<TokenOperator> lines(const std::vector<Item>& low, const std::vector<Item>& high, const InstancePlan& plan) {
  std::vector<TokenOperator> out;
  for (std::size_t i = 0; i < high.size(); ++i) {
    const auto* op = std::get_if<Operator>(&high[i]);
    if (op == nullptr || is_left_out(*op)) continue;
    out.push_back(line_between(std::get<Operator>(low[i]), *op, weights_of(*op, plan)));
  }
  return out;
}

std::vector<TokenCall> calls(const std::vector<Item>& high) {
  std::vector<TokenCall> out;
  for (const Item& item : high) {
    if (const auto* call = std::get_if<Communication>(&item)) {
      out.push_back({*call});
      out.back().call.bytes /= more;
    }
  }
  return out;
}

struct Built {
  BlockProgram low, high;
};

template <class Make>
Built built(const InstancePlan& plan, const KernelFusions& fusions, Make make) {
  return {make(workload_of(plan, few, fusions)), make(workload_of(plan, more, fusions))};
}

void append(LayerOperators& layer, const Built& program, const InstancePlan& plan) {
  for (TokenOperator& line : lines(program.low.forward, program.high.forward, plan)) layer.operators.push_back(std::move(line));
  for (TokenCall& call : calls(program.high.forward)) layer.calls.push_back(std::move(call));
  layer.weight_bytes += weight_bytes(program.high, plan);
}

// The sum over tensor parallelism behind the routed experts; shared experts have one that both use.
void add_expert_reduction(LayerOperators& layer, const InstancePlan& plan, const Shard& shard) {
  const bool replicated = plan.dp == 1 && plan.tp > 1;
  const bool has = std::ranges::any_of(layer.calls, [](const TokenCall& call) { return call.call.name.starts_with("shared"); });
  if (!replicated || has) return;
  Communication call;
  call.name = "experts all-reduce";
  call.bytes = static_cast<double>(shard.hidden) * shard.element;
  layer.calls.push_back({call});
}

// What stands in the place of attention is stored as attention is.
LayerOperators layer_of(const InstancePlan& plan, const KernelFusions& fusions, const LayerShape& shape, int layers) {
  LayerOperators layer;
  layer.layers = layers;
  layer.has_experts = shape.kind == LayerKind::experts;
  layer.reach = shape.reach;
  InstancePlan attention = plan;
  attention.precision = attention_precision(plan);
  const auto make_attention = [&](const Workload& w) {
    const Shard shard = shard_of(w, shape.reach);
    return assemble(shape.reach == Reach::state ? mixer_sections(w, shard, false) : attention_sections(w, shard));
  };
  const auto make_rest = [&](const Workload& w) {
    return assemble(layer.has_experts ? moe_sections(w, shard_of(w)) : mlp_sections(w, shard_of(w)));
  };
  if (shape.reach != Reach::none) append(layer, built(attention, fusions, make_attention), attention);
  if (shape.kind != LayerKind::none) append(layer, built(plan, fusions, make_rest), plan);
  if (layer.has_experts) add_expert_reduction(layer, plan, shard_of(workload_of(plan, few, fusions)));
  return layer;
}

// Windows are attention's own business.
std::vector<LayerOperators> layers_of(const InstancePlan& plan, const KernelFusions& fusions) {
  std::map<LayerShape, int> shapes;
  for (int layer = 0; layer < plan.model.layers; ++layer) {
    LayerShape shape = shape_of(plan.model, layer);
    if (shape.reach == Reach::window) shape.reach = Reach::sequence;
    ++shapes[shape];
  }
  std::vector<LayerOperators> out;
  for (const auto& [shape, layers] : shapes) out.push_back(layer_of(plan, fusions, shape, layers));
  return out;
}

MixerLayers mixers_of(const InstancePlan& plan) {
  if (!plan.model.mixer) return {};
  return {caching_layers(plan.model).mixers, *plan.model.mixer, served_mixer(plan)};
}

ExpertOperators experts_of(const InstancePlan& plan, const KernelFusions& fusions) {
  if (!plan.model.moe) return {};
  const auto make = [&](int pairs) { return expert_operators(workload_of(plan, few, fusions), pairs); };
  const Shard shard = expert_shard_of(workload_of(plan, few, fusions));
  return {lines(make(few).forward, make(more).forward, plan), plan.model.moe->experts / plan.ep,
          static_cast<double>(shard.hidden) * shard.element};
}

CacheAttention attention_of(const InstancePlan& plan, const Shard& shard) {
  CacheAttention out{.bytes_per_token = kv_bytes_per_token(plan).per_layer,
                     .heads = static_cast<int>(shard.heads),
                     .kv_heads = static_cast<int>(shard.kv_heads),
                     .head_dim = static_cast<int>(shard.head_dim)};
  const auto heads = static_cast<double>(shard.heads);
  out.head_flops_per_pair = 4 * heads * static_cast<double>(shard.head_dim);
  out.flops_per_pair = out.head_flops_per_pair;
  out.activation_bytes = 2 * static_cast<double>(shard.query_width) * shard.element;
  if (!plan.model.mla) return out;
  const MlaSpec& mla = *plan.model.mla;
  out.kv_heads = 1;  // the latent state, which all heads read
  out.flops_per_pair = 2 * heads * (2 * mla.kv_lora + mla.qk_rope);
  out.activation_bytes = heads * (2 * mla.kv_lora + mla.qk_rope) * shard.element;
  return out;
}

BlockProgram head_of(const Workload& workload) {
  const Shard shard = shard_of(workload);
  return assemble({norm(workload, shard, "final_norm"),
                   output_linear(workload, shard, {"logits", shard.tokens, shard.vocab, shard.hidden, false}, "head")});
}

}  // namespace

Operator TokenOperator::at(double tokens) const {
  Operator op = shape;
  op.flops *= tokens;
  op.bytes = bytes + bytes_per_token * tokens;
  op.m = std::max<std::int64_t>(1, std::llround(static_cast<double>(shape.m) * tokens));
  return op;
}

Communication TokenCall::at(double tokens) const {
  Communication out = call;
  out.bytes *= tokens;
  return out;
}

// Weights in fewer bits than a pool computes in are read as they are stored.
ServingPrecision attention_precision(const InstancePlan& plan) {
  ServingPrecision precision = plan.precision;
  const bool whole = plan.model.moe && bytes_of(precision.weights) < 1;
  if (!precision.attention && !whole) return precision;
  const DType in_16_bits = bytes_of(precision.compute) == 2 ? precision.compute : DType::bf16;
  precision.weights = precision.attention.value_or(in_16_bits);
  if (!is_narrow(precision.weights) || is_narrow(precision.compute)) precision.compute = precision.weights;
  precision.attention = {};
  return precision;
}

PassOperators pass_operators(const InstancePlan& plan, const KernelFusions& fusions) {
  const Shard shard = shard_of(workload_of(plan, few, fusions));
  PassOperators out;
  out.layers = layers_of(plan, fusions);
  out.mixers = mixers_of(plan);
  out.experts = experts_of(plan, fusions);
  out.attention = attention_of(plan, shard);
  const Built embedding = built(plan, fusions, embedding_program);
  out.embedding = lines(embedding.low.forward, embedding.high.forward, plan);
  out.embedding_calls = calls(embedding.high.forward);
  const Built head = built(plan, fusions, head_of);
  out.head = lines(head.low.forward, head.high.forward, plan);
  const double ends = embedding.high.parameters + (plan.model.tied_embeddings && plan.pp == 1 ? 0 : head.high.parameters);
  out.end_bytes = ends * shard.element;
  out.hidden_bytes = static_cast<double>(shard.hidden) * shard.element;
  out.logits = static_cast<double>(shard.vocab * shard.head_tp);
  return out;
}

}  // namespace rehearse::workloads

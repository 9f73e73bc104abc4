#include "sim/serving/pass_price.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;
using workloads::InstancePlan;
using workloads::Operator;
using workloads::OperatorClass;

// Of whatever sums over many tokens, to take a slope from.
constexpr double many = 1e6;

workloads::DType dense_type(const InstancePlan& plan) {
  const workloads::DType type = plan.precision.compute;
  return workloads::is_narrow(type) ? workloads::DType::bf16 : type;
}

// Kernels that read the memory of their peers are engines' own.
std::vector<std::string> without_own_kernels(std::vector<std::string> all) {
  std::erase_if(all, [](const std::string& name) { return workloads::CollectiveRegistry::get(name).reads_peers(); });
  return all;
}

// Over PCIe engines' own kernels serve two GPUs; calls of more go by the library
// (vllm/distributed/device_communicators/custom_all_reduce.py and SGLang's copy of it; TensorRT-LLM takes NCCL wherever there is no NVLink,
// cpp/tensorrt_llm/thop/allreduceOp.cpp).
std::vector<std::string> collectives_over(const topology::ClusterSpec& cluster, const InstancePlan& plan, std::vector<std::string> all) {
  const bool own = cluster.intra_kind != topology::IntraNode::pcie || plan.tp * plan.dp <= 2;
  return own ? all : without_own_kernels(std::move(all));
}

// NCCL's, for all-reduces that are too large for the engine's own kernels: in rounds.
std::vector<std::string> library_collectives(const std::vector<std::string>& all) {
  std::vector<std::string> left = without_own_kernels(all);
  std::erase(left, "direct");
  return left;
}

}  // namespace

double DecodeLine::seconds(double context) const { return std::max(floor_s, base_s + per_token_s * context) + after_s; }

// The sum of an arithmetic series, below the floor up to the pass where the line crosses it.
double DecodeLine::seconds(double context, double sequences, double passes) const {
  const double growth = per_token_s * sequences, first = base_s + per_token_s * context;
  double low = 0;
  if (first < floor_s) low = growth > 0 ? std::min(passes, std::ceil((floor_s - first) / growth)) : passes;
  const double high = passes - low;
  return low * floor_s + high * (first + growth * low) + growth * high * (high - 1) / 2 + passes * after_s;
}

OperatorPassPrice::OperatorPassPrice(const InstancePlan& plan, const Gpu& gpu, const FewTokenCosts& costs, const Software& software,
                                     const topology::ClusterSpec& cluster, const EngineHabits& habits, int tried,
                                     std::shared_ptr<const PassPrice> draft)
    : plan_(plan),
      gpu_(gpu),
      costs_(costs),
      software_(software),
      habits_(habits),
      tried_(tried),
      draft_(std::move(draft)),
      operators_(pass_operators(plan, kernel_fusions(software))),
      // By Simple: what an engine's call costs besides was fitted with it (`call` of EngineHabits), and LL's own would count twice.
      communication_(cluster, workload_of(plan, 1, kernel_fusions(software)), "auto", collectives_over(cluster, plan, software.collectives),
                     false, topology::Protocol::simple),
      library_(cluster, workload_of(plan, 1, kernel_fusions(software)), "auto", library_collectives(software.collectives), false,
               topology::Protocol::simple) {
  const workloads::RankGrid grid = rank_grid(workload_of(plan, 1, kernel_fusions(software)));
  tp_group_ = grid.group(GroupKind::tp, 0);
  ep_group_ = grid.group(GroupKind::ep, 0);
  for (const workloads::LayerOperators& layer : operators_.layers) {
    double kernels = static_cast<double>(layer.calls.size()) + (layer.reach == workloads::Reach::sequence ? 1 : 0);
    for (const auto& line : layer.operators) kernels += line.shape.kernels;
    if (layer.has_experts) kernels += static_cast<double>(operators_.experts.operators.size()) + (plan.dp > 1 ? 2 : 0);
    kernels_ += layer.layers * kernels;
  }
  if (operators_.mixers.layers > 0) {
    for (const Operator& op : prompt_operators(operators_.mixers.spec, operators_.mixers.share, 1, 1))
      kernels_ += operators_.mixers.layers * op.kernels;
  }
  if (plan.routing && plan.model.moe) expert_ranks_.emplace(plan);
  cache_s_per_token_ = cache_s_per_token();
  for (int layer = 0; layer < plan.model.layers; ++layer) {
    if (plan.model.attends(layer)) (plan.model.windowed(layer) ? window_layers_ : full_layers_) += 1;
  }
}

double OperatorPassPrice::kernel_s(Operator op) const {
  const bool product = op.cls == OperatorClass::gemm;
  if (product && bytes_of(op.dtype) < 2) op.flops /= habits_.narrow_products;
  return (product ? *costs_.products : *gpu_.cost).seconds(op) + software_.launch_s * op.kernels;
}

double OperatorPassPrice::operators_s(const std::vector<workloads::TokenOperator>& operators, double tokens) const {
  double sum = 0;
  for (const workloads::TokenOperator& line : operators) {
    sum += kernel_s(line.at(tokens));
    if (line.shape.cls == OperatorClass::gemm && bytes_of(line.shape.dtype) < 2) sum += habits_.quantise_s;
    if (line.widened) sum += habits_.widen_s;
  }
  return sum;
}

CallPrice OperatorPassPrice::price_of(const Communication& call) const {
  const bool experts = call.group == GroupKind::ep;
  const bool own = call.kind != CollectiveKind::all_reduce || call.bytes <= habits_.own_call_bytes;
  return (own ? communication_ : library_).price(call, experts ? ep_group_ : tp_group_);
}

double OperatorPassPrice::call_s(const Communication& call) const { return price_of(call).seconds() + software_.launch_s + habits_.call_s; }

OperatorPassPrice::TokenCost OperatorPassPrice::price_tokens(double tokens) const {
  TokenCost cost;
  cost.known = true;
  std::optional<std::pair<Communication, double>> last;  // layers' calls are mostly alike
  const auto price = [&](const Communication& call) {
    if (!last || last->first.kind != call.kind || last->first.group != call.group || last->first.bytes != call.bytes)
      last.emplace(call, call_s(call));
    return last->second;
  };
  for (const workloads::LayerOperators& layer : operators_.layers) {
    cost.linear_s += layer.layers * operators_s(layer.operators, tokens);
    for (const workloads::TokenCall& call : layer.calls) cost.communication_s += layer.layers * price(call.at(tokens));
    if (!layer.has_experts) continue;
    cost.experts_s += layer.layers * experts_s(tokens);
    cost.exchange_s += layer.layers * exchange_s(tokens, plan_.dispatcher);
    cost.direct_exchange_s += layer.layers * exchange_s(tokens, low_latency(plan_.dispatcher));
  }
  cost.linear_s += operators_s(operators_.embedding, tokens);
  for (const workloads::TokenCall& call : operators_.embedding_calls) cost.communication_s += price(call.at(tokens));
  return cost;
}

const OperatorPassPrice::TokenCost& OperatorPassPrice::token_cost(int tokens) const {
  if (static_cast<std::size_t>(tokens) >= token_costs_.size()) token_costs_.resize(static_cast<std::size_t>(tokens) + 1);
  TokenCost& cost = token_costs_[static_cast<std::size_t>(tokens)];
  if (!cost.known) cost = price_tokens(tokens);
  return cost;
}

// Norm, logits of the rows, gathered over tp for the sampler, which sorts them where it draws from the likeliest.
double OperatorPassPrice::head_s(double rows) const {
  if (rows <= 0) return 0;
  const auto at = static_cast<std::size_t>(std::ceil(rows));
  if (at >= heads_.size()) heads_.resize(at + 1, -1);
  if (heads_[at] >= 0) return heads_[at];
  double sum = operators_s(operators_.head, static_cast<double>(at)) + static_cast<double>(at) * plan_.model.vocab * habits_.sort_s;
  if (plan_.tp > 1) {
    const double row = operators_.logits * bytes_of(dense_type(plan_));
    Communication gather;
    gather.kind = CollectiveKind::all_gather;
    gather.bytes = static_cast<double>(at) * row;
    sum += call_s(gather);
  }
  return heads_[at] = sum;
}

double OperatorPassPrice::prompt_attention_s(const PassShape& shape) const {
  if (shape.prompt_tokens <= 0) return 0;
  const workloads::CacheAttention& attention = operators_.attention;
  Operator op;
  op.cls = OperatorClass::attention;
  op.dtype = dense_type(plan_);
  op.batch = 1;
  op.heads = attention.heads;
  op.kv_heads = attention.kv_heads;
  op.head_dim = attention.head_dim;
  op.query = std::llround(shape.prompt_tokens / std::max(1.0, shape.chunks));
  op.key = std::max<std::int64_t>(1, std::llround(2 * shape.prompt_pairs / shape.prompt_tokens));
  op.causal = true;
  const double rate = habits_.prompt_attention * (bytes_of(plan_.precision.kv) < 2 ? habits_.narrow_attention : 1);
  op.flops = attention.head_flops_per_pair * shape.prompt_pairs / rate;
  op.bytes = attention.activation_bytes * shape.prompt_tokens + attention.bytes_per_token * (shape.prompt_tokens + shape.cached);
  const double full_s = full_layers_ * kernel_s(op);
  if (!plan_.model.window) return full_s;
  op.flops = std::min(op.flops, attention.head_flops_per_pair * shape.prompt_tokens * plan_.model.window->tokens / rate);
  op.bytes = attention.activation_bytes * shape.prompt_tokens + attention.bytes_per_token * shape.prompt_tokens;
  return full_s + window_layers_ * kernel_s(op);
}

double OperatorPassPrice::cache_s_per_token() const {
  const workloads::CacheAttention& attention = operators_.attention;
  Operator op;
  op.cls = OperatorClass::attention;
  op.dtype = dense_type(plan_);
  op.head_dim = attention.head_dim;
  const double nothing_s = costs_.cache->seconds(op);
  op.flops = attention.flops_per_pair * many * tokens_each();  // the cache is read once for all of them
  op.bytes = attention.bytes_per_token * many;
  const double grouped_s = costs_.cache->seconds(op) - nothing_s;
  const double share = slow_cache_share();
  const double slow_s = share > 0 ? op.flops / (share * gpu_.peak_flops_per_s.at(op.dtype)) : 0;
  return std::max(grouped_s, slow_s) / many;
}

// Of the GPU's peak, what the engine's kernel reaches where it has none that reads a cache once for all heads; 0: it has one.
double OperatorPassPrice::slow_cache_share() const {
  if (plan_.model.mla) return habits_.latent_share;
  const workloads::CacheAttention& attention = operators_.attention;
  return attention.heads / attention.kv_heads >= habits_.grouped_heads ? 0 : habits_.scalar_share;
}

double OperatorPassPrice::cache_fixed_s(double decodes) const {
  if (decodes <= 0) return 0;
  Operator op;
  op.cls = OperatorClass::attention;
  op.dtype = dense_type(plan_);
  op.bytes = operators_.attention.activation_bytes * decodes * tokens_each();
  const double windows = plan_.model.window ? window_layers_ * decodes * plan_.model.window->tokens : 0;
  return (full_layers_ + window_layers_) * (costs_.cache->seconds(op) + software_.launch_s) + cache_s_per_token(decodes) * windows;
}

// Scans are products of hundreds of rows, priced as training's; what updates states moves them.
double OperatorPassPrice::mixers_s(const PassShape& shape) const {
  const workloads::MixerLayers& mixers = operators_.mixers;
  if (mixers.layers == 0) return 0;
  double sum = 0;
  const auto add = [&](const std::vector<Operator>& all) {
    for (const Operator& op : all) sum += op.times * gpu_.cost->seconds(op) + software_.launch_s * op.kernels;
  };
  if (shape.prompt_tokens > 0) add(prompt_operators(mixers.spec, mixers.share, shape.prompt_tokens, shape.chunks));
  if (shape.decodes > 0) add(update_operators(mixers.spec, mixers.share, shape.decodes, tried_));
  return mixers.layers * sum;
}

int OperatorPassPrice::padded(int sequences) const {
  if (sequences > habits_.captured) return sequences;
  if (sequences <= 2) return sequences;
  if (sequences <= 4) return 4;
  const int step = habits_.capture_step;
  return std::min(habits_.captured, (sequences + step - 1) / step * step);
}

// The layers' time of so many rounds of the slowest stage, over that of all stages; at least 1, which is a group alone on its way.
double OperatorPassPrice::slowest_stage_times(double groups) const {
  if (groups < plan_.pp) return 1;
  const int slowest = (plan_.model.layers + plan_.pp - 1) / plan_.pp;
  return static_cast<double>(slowest * plan_.pp) / plan_.model.layers;
}

// Of the prompts in a pass over attention replicas and the groups of a pipeline: into how many shares as large as the largest they go. Less
// than one chunk, a mean of the formula's, is one or none.
double OperatorPassPrice::shares_of(const PassShape& shape, double lanes) {
  if (shape.busiest_tokens > 0) return shape.prompt_tokens / shape.busiest_tokens;
  return shape.chunks <= 1 ? 1 : shape.chunks / std::ceil(shape.chunks / lanes);
}

// Replicas run in step: attention and all around it take as long as the busiest replica's, while experts get the tokens of all of them.
// Of a group's share where stages hold several groups in flight: each sees the whole depth, and a round lasts as long as that takes the
// one with the most prompts, since none overtakes another. A full pipeline goes at the pace of the last
// stage, which has the head, and the host's work stands between its groups: engines do not work ahead over several stages (TensorRT-LLM
// and SGLang switch it off there).
PassCost OperatorPassPrice::parts(const PassShape& whole) const {
  const PassTokens each = tokens_of(whole);
  const PassShape& shape = each.shape;
  const double groups = each.groups;
  const bool replayed = each.replayed;
  PassCost out = stage_parts(shape);  // attention first: exchanges run beside it
  add_token_cost(out, each);
  if (plan_.pp > 1) {
    const int next = plan_.stage_ranks();
    Communication hop;
    hop.kind = CollectiveKind::send_recv;
    hop.group = GroupKind::pp;
    hop.bytes = each.tokens * operators_.hidden_bytes;
    out.communication_s += (plan_.pp - 1) * communication_.price(hop, std::vector<int>{0, next}).seconds();
  }
  const double layers = out.linear_s + out.attention_s + out.experts_s, full = groups < plan_.pp ? 0 : groups - 1;
  out.stages_s = (slowest_stage_times(groups) - 1) * layers + full * out.head_s;
  out.draft_s = draft_s(whole);
  const double device = out.seconds();
  const double host = groups * (habits_.pass_s + habits_.sequence_s * (shape.decodes + shape.chunks));
  const double gaps = shape.prompt_tokens > 0 ? kernels_ * habits_.prompt_kernel_s : 0;
  const double issued = std::max(device + gaps, replayed ? 0 : issue_s());
  out.host_s = (ahead() ? std::max(issued, host) : issued + host) - device + habits_.between_s;
  return out;
}

// It computes the prompts too, and then a token a pass of every sequence.
double OperatorPassPrice::draft_s(const PassShape& whole) const {
  if (!draft_) return 0;
  PassShape prompts = whole, decodes;
  prompts.decodes = prompts.context = 0;
  decodes.decodes = whole.decodes;
  decodes.context = whole.context;
  return (prompts.prompt_tokens > 0 ? draft_->seconds(prompts) : 0) + (decodes.decodes > 0 ? tried_ * draft_->seconds(decodes) : 0);
}

// Two half-batches, where they overlap: twice the work of half the tokens, slowed by the exchanges beside it (the GPU's contention), and of
// the exchanges what the work does not cover.
void OperatorPassPrice::add_token_cost(PassCost& parts, const PassTokens& each) const {
  const bool halves = plan_.overlaps && each.tokens > 1;
  const double times = halves ? 2 : 1;
  const auto cost_of = [&](int tokens) { return token_cost(halves ? (tokens + 1) / 2 : tokens); };
  const TokenCost mean = cost_of(each.mean), cost = cost_of(each.tokens);
  parts.linear_s = times * cost.linear_s;
  parts.experts_s = times * cost_of(each.routed).experts_s;
  const double exchanges = times * (each.shape.prompt_tokens <= 0 ? mean.direct_exchange_s : mean.exchange_s);
  const double work = parts.linear_s + parts.experts_s + parts.attention_s, covered = halves ? std::min(exchanges, work) : 0;
  const double slowed = covered * (gpu_.contention_with(workloads::Phase::ep).alpha - 1);
  parts.communication_s = times * cost.communication_s + exchanges - covered + slowed;
}

PassCost OperatorPassPrice::stage_parts(const PassShape& shape) const {
  PassCost out;
  out.attention_s = prompt_attention_s(shape) + cache_fixed_s(shape.decodes) +
                    full_layers_ * cache_s_per_token(shape.decodes) * shape.context + mixers_s(shape);
  out.head_s = head_s(shape.finished + shape.decodes * tokens_each());
  return out;
}

DecodeLine OperatorPassPrice::decode(int sequences) const {
  const auto at = static_cast<std::size_t>(sequences);
  if (at >= lines_.size()) lines_.resize(at + 1);
  if (!lines_[at]) lines_[at] = price_decode(sequences);
  return *lines_[at];
}

DecodeLine OperatorPassPrice::price_decode(int sequences) const {
  PassShape shape;
  shape.decodes = static_cast<double>(sequences);
  const PassCost none = parts(shape);
  const double groups = std::min(plan_.pp, sequences);
  DecodeLine line;
  line.base_s = none.seconds() - none.host_s;
  const double per_replica = std::ceil(sequences / (groups * plan_.dp));
  line.per_token_s = slowest_stage_times(groups) * full_layers_ * cache_s_per_token(per_replica) / (groups * plan_.dp);
  if (draft_) line.per_token_s += tried_ * draft_->decode(sequences).per_token_s;
  const double issued = per_replica <= habits_.captured ? 0 : issue_s();
  const double host = groups * (habits_.pass_s + habits_.sequence_s * per_replica);
  line.floor_s = ahead() ? std::max(issued, host) : issued;
  line.after_s = (ahead() ? 0 : host) + habits_.between_s;
  return line;
}

}  // namespace rehearse::sim

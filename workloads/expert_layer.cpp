#include "workloads/expert_layer.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "workloads/exchange.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/operators/wire.hpp"

namespace rehearse::workloads {
namespace {

// Where sorts are not fused, a view of every rank's tokens for every expert is cut out and joined: so many take the host as long as a
// counted kernel (docs/moe.md).
constexpr int views_per_kernel = 16;

bool has_hybridep(const Workload& workload) {
  return workload.fusions.dispatch_kernels == DispatchKernels::hybridep && workload.experts.dispatcher == Dispatcher::hierarchical;
}

// Of a chunk's tokens alone.
void cut_map(Communication& map, int chunks) {
  Exchange part = *map.exchange;
  part.bytes_per_pair /= chunks;
  map.bytes /= chunks;
  map.exchange = std::make_shared<const Exchange>(std::move(part));
}

PassKernels sorting_kernels(const Workload& workload) {
  if (has_hybridep(workload)) return {0, 0};
  if (workload.experts.dispatcher != Dispatcher::alltoall) return workload.fusions.sorting_kernels;
  if (workload.fusions.permutation) return {1, 1};
  const int kernels = 1 + workload.model.moe->experts * workload.parallel.etp / views_per_kernel;
  return {kernels, kernels};
}

// Tokens sorted by expert as they arrive, and back by origin before they leave. After the all-to-all a pair is moved once; the other
// dispatchers deliver tokens once, which are copied for every expert here, and may leave the sort to many kernels of the stack.
Section sorting(const Workload& workload, const Shard& shard, bool back, double pairs) {
  const bool exchanges = workload.experts.dispatcher == Dispatcher::alltoall;
  if (dispatches_by_masks(workload)) return {};
  if (exchanges && workload.model.moe->experts == workload.parallel.ep) return {};
  const double bytes = 2 * pairs * static_cast<double>(shard.hidden) * shard.element;
  const double added = exchanges || workload.fusions.permutation ? bytes : 2 * bytes;  // what is added to is read and written each time
  const PassKernels kernels = sorting_kernels(workload);
  const double elements = pairs * static_cast<double>(shard.hidden);
  const PassCopies& adds = workload.fusions.sort_adds;
  return pointwise(back ? "unsort_tokens" : "sort_tokens", {.forward_bytes = back ? added : bytes,
                                                            .backward_bytes = back ? bytes : added,
                                                            .forward_kernels = std::max(1, kernels.forward),
                                                            .backward_kernels = std::max(1, kernels.backward),
                                                            .forward_adds = back ? adds.forward * elements : 0,
                                                            .backward_adds = back ? 0 : adds.backward * elements});
}

// What the stack's pointwise operators do beside all that, such as masks that are all true. A compiler makes kernels of its own of them.
Section copies(const Workload& workload, const char* name, double elements, const PassCopies& times) {
  if (times.forward + times.backward == 0) return {};
  const double bytes = 2 * elements * shard_of(workload).element;
  return pointwise(name, {.forward_bytes = times.forward * bytes,
                          .backward_bytes = times.backward * bytes,
                          .eager = !workload.fusions.compiled || workload.fusions.eager_experts});
}

Section clamps(const Workload& workload, double elements) {
  if (!workload.model.clamps_gate) return {};
  return copies(workload, "clamp_copies", elements, workload.fusions.clamp_copies);
}

// Biases, those of the second product times the token's weight, added expert by expert; backward the gradients of both, and of what they
// are added to.
Section biases_apart(const Workload& workload, const char* name, double elements, const PassCopies& times) {
  if (!workload.model.biases) return {};
  const int kernels = workload.fusions.gathered_biases ? 1 : workload.model.moe->experts / workload.parallel.ep;
  Section section = copies(workload, name, elements, times);
  for (Item& item : section.forward) std::get<Operator>(item).kernels = kernels;
  for (Item& item : section.backward) std::get<Operator>(item).kernels = 3 * kernels;
  return section;
}

// Transformer Engine's Fp8Padding of states and of the pairs' weights, and Fp8Unpadding of what the experts give (TEGroupedMLP in
// megatron/core/transformer/moe/experts.py, without moe_router_padding_for_fp8); backward of the gradients. Two copies each way: 795 ms in
// a trace of Qwen3 235B in MXFP8 on B200 (togethercomputer/together-dgxc-benchmarking, qwen3_235b_fp8mx_256gpu_profiler_report.md) of 2,816
// passes of a layer forward (34 products each, the 95,744 of its four kernels) and, by what attention takes, 550 backward: 0.24 ms for
// 32,768 pairs of 4,096, 2.3 times what a copy takes there.
constexpr double block_copies = 2.3;
constexpr int block_kernels = 3;

// Dispatchers that copy tokens for their experts fill up while they do so (HybridEP's pad_multiple), and what has a capacity or is filled
// up before it travels has its blocks.
Section blocks(const Workload& workload, const Shard& shard, double pairs) {
  const ExpertPlan& plan = workload.experts;
  const bool ragged = plan.capacity_factor == 0 && plan.pad_to == 0 && plan.dispatcher != Dispatcher::hierarchical;
  if (!workload.fusions.fills_blocks || !ragged || !shard.low_precision()) return {};
  const double bytes = block_copies * 2 * pairs * static_cast<double>(shard.hidden) * shard.element;
  return pointwise("block_copies",
                   {.forward_bytes = bytes, .backward_bytes = bytes, .forward_kernels = block_kernels, .backward_kernels = block_kernels});
}

// Experts one after another, each as operators of its own.
Section loop(const Workload& workload, int experts) {
  const PassKernels& kernels = workload.fusions.loop_kernels;
  Section section;
  if (workload.fusions.grouped_gemm || kernels.forward + kernels.backward == 0) return section;
  section.forward.emplace_back(memory_bound("expert_loop", 0, Pass::forward, experts * kernels.forward));
  section.backward.emplace_back(memory_bound("expert_loop", 0, Pass::backward_input, experts * kernels.backward));
  return section;
}

// The gradient of an expert's part of a tensor of all experts' weights is a whole one: zeros are written, the part is not counted, and all
// is added to the sum of the others (autograd's SelectBackward).
Section whole_gradients_of_parts(const Workload& workload, double parameters, double element, int experts) {
  Section section;
  if (workload.fusions.grouped_gemm || !workload.fusions.stacked_experts) return section;
  constexpr double passes = 4;  // zeros; both read and the sum written
  section.backward.emplace_back(
      memory_bound("stacked_gradients", passes * experts * parameters * element, Pass::backward_input, 2 * experts));
  return section;
}

void take(const std::vector<Item>& items, bool weights, std::vector<Operator>& into) {
  for (const Item& item : items) {
    const Operator& op = std::get<Operator>(item);
    if ((op.pass == Pass::backward_weight) == weights) into.push_back(op);
  }
}

void take_all(const std::vector<Item>& items, std::vector<Operator>& into) {
  for (const Item& item : items) into.push_back(std::get<Operator>(item));
}

// Elements that the experts' first product gives for so many pairs.
double products_of(const Workload& workload, double pairs) {
  return pairs * workload.model.moe->ffn / workload.parallel.etp * (workload.model.gated() ? 2 : 1);
}

Section activation_of(const Workload& workload, double pairs) {
  return activation(workload, shard_of(workload), pairs * workload.model.moe->ffn / workload.parallel.etp, !eager_experts(workload));
}

// What moe_act recomputes: the activation with the clamps before it.
std::vector<Item> activation_again(const Workload& workload, double pairs) {
  return of_experts(assemble({clamps(workload, products_of(workload, pairs)), activation_of(workload, pairs)})).forward;
}

// Whose result `expert_fc2` is, or for whose product alone it is there.
bool makes_output(const Item& item) {
  const auto* op = std::get_if<Operator>(&item);
  return op != nullptr && (is_product_of(*op, "experts_fc2") || op->name == "bias_copies");
}

// What a layer that is recomputed in full computes again of its experts.
std::vector<Item> experts_again(const Workload& workload, std::vector<Item> forward) {
  if (workload.recompute.keeps(LayerOutput::expert_fc2)) std::erase_if(forward, makes_output);
  drop_sending(workload, forward);
  return as_recompute(std::move(forward));
}

}  // namespace

double copies_per_pair(const Workload& workload) {
  const double ranks = workload.parallel.ep;
  const MoeSpec& moe = *workload.model.moe;
  if (workload.experts.dispatcher != Dispatcher::hierarchical || ranks < 2) return 1;
  return ranks * (1 - missed(1 / ranks, moe.top_k, moe.experts)) / moe.top_k;
}

bool eager_experts(const Workload& workload) { return !workload.fusions.activation || workload.fusions.eager_experts; }

bool replays_dispatch(const Workload& workload) { return workload.fusions.replays_dispatch && workload.parallel.ep > 1; }

bool by_hybridep(const Workload& workload) { return has_hybridep(workload) && workload.parallel.ep > 1; }

double routing_map_bytes(const Workload& workload) {
  return static_cast<double>(shard_of(workload).spread_tokens) * workload.model.moe->experts * workload.parallel.ep;
}

BlockProgram expert_operators(const Workload& workload, double pairs) {
  const Shard shard = expert_shard_of(workload);
  const MoeSpec& moe = *workload.model.moe;
  const int experts = moe.experts / workload.parallel.ep;
  const std::int64_t rows = std::llround(pairs), ffn = moe.ffn / workload.parallel.etp;
  const std::int64_t width = ffn * (workload.model.gated() ? 2 : 1);
  const bool bias = workload.model.biases;
  const double products = products_of(workload, pairs);
  const double parameters = static_cast<double>(experts) * static_cast<double>(shard.hidden) * static_cast<double>(width + ffn);
  return of_experts(
      assemble({pairing(workload), wire_copies(workload, shard, pairs * copies_per_pair(workload)), sorting(workload, shard, false, pairs),
                loop(workload, experts), whole_gradients_of_parts(workload, parameters, shard.element, experts),
                copies(workload, "pair_copies", pairs * static_cast<double>(shard.hidden), workload.fusions.pair_copies),
                blocks(workload, shard, pairs), grouped_linear(workload, shard, {"experts_fc1", rows, width, shard.hidden, bias}, experts),
                copies(workload, "product_copies", products, workload.fusions.product_copies),
                biases_apart(workload, "gate_bias_copies", products, workload.fusions.gate_bias_copies), clamps(workload, products),
                activation_of(workload, pairs), grouped_linear(workload, shard, {"experts_fc2", rows, shard.hidden, ffn, bias}, experts),
                biases_apart(workload, "bias_copies", pairs * static_cast<double>(shard.hidden), workload.fusions.bias_copies),
                sorting(workload, shard, true, pairs)}));
}

std::vector<Operator> operators_of(const Workload& workload, const ExpertWork& work) {
  return operators_of(workload, work, expert_operators(workload, work.pairs));
}

std::vector<Operator> operators_of(const Workload& workload, const ExpertWork& work, const BlockProgram& experts) {
  std::vector<Operator> all;
  const Pass pass = work.what.pass;
  if (work.again) {
    take_all(as_recompute(workload.experts.chunk_recompute ? experts.forward : activation_again(workload, work.pairs)), all);
  } else if (pass == Pass::backward_weight) {
    take(experts.backward, true, all);
  } else if (pass == Pass::backward_input) {
    work.what.weight_gradients ? take_all(experts.backward, all) : take(experts.backward, false, all);
  } else {
    take_all(pass == Pass::recompute ? experts_again(workload, experts.forward) : experts.forward, all);
  }
  return all;
}

namespace {

// Of layers that do the same the one that stands for them: those in bf16 send other bytes.
int one_of_alike(const Workload& workload, int layer) {
  const Precision& precision = workload.precision;
  if (is_wide(workload, layer)) return precision.bf16_at_start > 0 ? 0 : workload.model.layers - 1;
  return precision.bf16_at_start;
}

}  // namespace

ExpertLayer::ExpertLayer(const Workload& workload, int step) : workload_(workload), loads_(workload, step) {}

const ExpertCalls& ExpertLayer::calls(Pass pass, int ep_rank, int layer, int microbatch) const {
  const int chunks = workload_.experts.chunks_of(layer);
  if (loads_.even() || workload_.parallel.etp == 1) ep_rank = 0;  // exchanges are all members' together
  if (loads_.even()) {
    layer = one_of_alike(workload_, layer);
    microbatch = 0;
  }
  const Key key{pass, chunks, ep_rank, layer, microbatch};
  const auto it = calls_.find(key);
  return it != calls_.end() ? it->second : calls_.emplace(key, make_calls(pass, chunks, ep_rank, layer, microbatch)).first->second;
}

ExpertWork ExpertLayer::work(const RoutedExperts& what, int ep_rank, int layer, int microbatch) const {
  const int chunks = workload_.experts.chunks_of(layer);
  if (loads_.even()) ep_rank = layer = microbatch = 0;
  return {what, false, loads_.received(ep_rank, layer, microbatch) / chunks};
}

bool ExpertLayer::again(const RoutedExperts& what) const {
  return what.pass == Pass::backward_input && (workload_.experts.chunk_recompute || workload_.recompute.drops(RecomputeModule::moe_act));
}

ExpertCalls ExpertLayer::make_calls(Pass pass, int chunks, int ep_rank, int layer, int microbatch) const {
  ExpertCalls calls;
  switch (pass) {
    case Pass::backward_weight:
      return calls;
    case Pass::backward_input:
      if (workload_.experts.chunk_recompute)
        calls.dispatch = to_experts("dispatch again", Pass::recompute, chunks, ep_rank, layer, microbatch);
      for (Communication& call : to_experts("dispatch gradients", pass, chunks, ep_rank, layer, microbatch)) {
        calls.dispatch.push_back(std::move(call));
      }
      calls.combine = from_experts("combine gradients", pass, chunks, ep_rank, layer, microbatch);
      add_weights("gradients of weights", pass, chunks, layer, microbatch, calls.combine);
      return calls;
    default:
      if (pass == Pass::recompute && replays_dispatch(workload_)) return calls;
      add_counts(pass, calls.dispatch);
      if (by_hybridep(workload_) && chunks > 1) cut_map(calls.dispatch.front(), chunks);
      for (Communication& call : to_experts("dispatch", pass, chunks, ep_rank, layer, microbatch)) {
        calls.dispatch.push_back(std::move(call));
      }
      add_weights("weights", pass, chunks, layer, microbatch, calls.dispatch);
      calls.combine = from_experts("combine", pass, chunks, ep_rank, layer, microbatch);
      return calls;
  }
}

// A number for each expert: by a gather, or where DeepEP's kernels dispatch tokens by messages from each to each. Where experts are filled
// up to their capacity, every rank sends as much. HybridEP gathers whatever the stack does which token goes to which expert, a byte each,
// by a kernel of its own that writes to all at once (allgather_routing_map in csrc/hybrid_ep/executor/executor.cu of deepseek-ai/DeepEP,
// branch hybrid-ep). Between domains NCCL gathers, which brings what a rank has into each of them once.
void ExpertLayer::add_counts(Pass pass, std::vector<Communication>& calls) const {
  const ExpertPlan& plan = workload_.experts;
  const int ep = workload_.parallel.ep;
  if (by_hybridep(workload_)) {
    calls.push_back({"routing map", CollectiveKind::all_to_all, GroupKind::ep, routing_map_bytes(workload_), pass, counts()});
    return;
  }
  if (!workload_.fusions.gathers_counts || ep == 1 || plan.pad_to == ExpertPlan::to_capacity) return;
  const double experts = workload_.model.moe->experts;
  if (plan.dispatcher == Dispatcher::alltoall)
    calls.push_back({"counts", CollectiveKind::all_gather, GroupKind::ep, sizeof(std::int64_t) * experts * ep, pass});
  if (plan.dispatcher == Dispatcher::hierarchical)
    calls.push_back({"counts", CollectiveKind::all_to_all, GroupKind::ep, experts * sizeof(std::int32_t), pass, counts()});
}

// The same of every layer and micro-batch.
std::shared_ptr<const Exchange> ExpertLayer::counts() const {
  if (counts_) return counts_;
  const int ep = workload_.parallel.ep;
  const bool hybrid = by_hybridep(workload_);
  Exchange numbers;
  numbers.pairs.assign(static_cast<std::size_t>(ep), (hybrid ? routing_map_bytes(workload_) : workload_.model.moe->experts) / ep);
  numbers.bytes_per_pair = hybrid ? 1 : sizeof(std::int32_t);
  if (hybrid) {  // a row of the map is a token with an expert on every rank
    numbers.hierarchical = true;
    numbers.top_k = numbers.experts = ep;
  }
  counts_ = std::make_shared<const Exchange>(std::move(numbers));
  return counts_;
}

// Of each pair, in fp32. Other dispatchers send them with the tokens.
void ExpertLayer::add_weights(const char* what, Pass pass, int chunks, int layer, int microbatch, std::vector<Communication>& calls) const {
  if (workload_.parallel.ep == 1 || !workload_.fusions.exchanges_weights || workload_.experts.dispatcher != Dispatcher::alltoall) return;
  calls.push_back(small(what, pass, chunks, layer, microbatch));
}

// Four bytes for each pair, the way of the tokens or back.
Communication ExpertLayer::small(const char* what, Pass pass, int chunks, int layer, int microbatch) const {
  Exchange pairs = *exchange(pass != Pass::backward_input, false, chunks, layer, microbatch);
  pairs.bytes_per_pair = sizeof(float);
  pairs.hierarchical = false;
  const double bytes = loads_.sent_by_each() / chunks * pairs.bytes_per_pair;
  return {what, CollectiveKind::all_to_all, GroupKind::ep, bytes, pass, std::make_shared<const Exchange>(std::move(pairs))};
}

// weights: those of tokens travel with them, or backward their gradients. HybridEP sends one for each expert of a domain, chosen or not, in
// fp32 (attn_input_prob and expert_output_prob in csrc/hybrid_ep/executor/executor.cu).
std::shared_ptr<const Exchange> ExpertLayer::exchange(bool dispatch, bool weights, int chunks, int layer, int microbatch) const {
  const bool hybrid = by_hybridep(workload_);
  std::shared_ptr<const Exchange>& known = exchanges_[{dispatch, weights && hybrid, chunks, layer, microbatch}];
  if (known) return known;
  const Shard shard = expert_shard_of(workload_);
  const bool narrow = dispatch && shard.low_precision() && workload_.fusions.low_precision_dispatch && !is_wide(workload_, layer);
  Exchange exchange;
  if (loads_.senders_alike()) {
    for (int to = 0; to < workload_.parallel.ep; ++to) {
      exchange.pairs.push_back(loads_.received(to, layer, microbatch) / (workload_.parallel.ep * workload_.parallel.etp * chunks));
    }
  } else {
    exchange.by_sender = loads_.at(layer, microbatch).sent;
    exchange.parts = chunks;
  }
  exchange.bytes_per_pair = static_cast<double>(sent_width(workload_)) * (narrow ? bytes_of(shard.linear) : shard.element);
  exchange.reversed = !dispatch;
  exchange.hierarchical = workload_.experts.dispatcher == Dispatcher::hierarchical;
  exchange.top_k = workload_.model.moe->top_k;
  exchange.experts = workload_.model.moe->experts;
  exchange.domains_per_token = workload_.experts.nodes_per_token;
  exchange.slower_with_members = hybrid;
  exchange.bytes_per_expert = weights && hybrid ? sizeof(float) : 0;
  known = std::make_shared<const Exchange>(std::move(exchange));
  return known;
}

std::vector<Communication> ExpertLayer::to_experts(const char* what, Pass pass, int chunks, int ep_rank, int layer, int microbatch) const {
  const Shard shard = expert_shard_of(workload_);
  const int ep = workload_.parallel.ep, etp = workload_.parallel.etp;
  const double state = static_cast<double>(shard.hidden) * shard.element;
  const bool gathers = workload_.experts.dispatcher == Dispatcher::allgather;
  std::vector<Communication> calls;
  if (ep > 1 && gathers) {
    const double bytes = static_cast<double>(shard.spread_tokens) * ep * state / chunks;
    calls.push_back({what, CollectiveKind::all_gather, GroupKind::ep, bytes, pass});
  } else if (ep > 1) {
    auto pairs = exchange(true, pass != Pass::backward_input, chunks, layer, microbatch);
    const double bytes = loads_.sent_by_each() / chunks * pairs->bytes_per_pair;
    calls.push_back({what, CollectiveKind::all_to_all, GroupKind::ep, bytes, pass, std::move(pairs)});
  }
  if (etp > 1) {
    const double rows = gathers ? static_cast<double>(shard.spread_tokens) * ep * etp : loads_.received(ep_rank, layer, microbatch);
    calls.push_back({std::string(what) + " gather", CollectiveKind::all_gather, GroupKind::etp, rows * state / chunks, pass});
  }
  return calls;
}

// The way back: every step reversed.
std::vector<Communication> ExpertLayer::from_experts(const char* what, Pass pass, int chunks, int ep_rank, int layer,
                                                     int microbatch) const {
  std::vector<Communication> calls = to_experts(what, pass, chunks, ep_rank, layer, microbatch);
  std::ranges::reverse(calls);
  for (Communication& call : calls) {
    if (call.kind == CollectiveKind::all_gather) {
      call.kind = CollectiveKind::reduce_scatter;
      if (call.group == GroupKind::etp) call.name = std::string(what) + " scatter";
    } else {
      call.exchange = exchange(false, pass == Pass::backward_input, chunks, layer, microbatch);
      call.bytes = loads_.sent_by_each() / chunks * call.exchange->bytes_per_pair;
    }
  }
  return calls;
}

}  // namespace rehearse::workloads

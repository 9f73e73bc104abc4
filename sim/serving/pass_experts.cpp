// What experts cost in a pass: weights of those that are hit, products of the busiest rank, tokens on their way to them and back.
#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/serving/pass_price.hpp"
#include "workloads/exchange.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;
using workloads::Operator;
using workloads::OperatorClass;

// The most that one of `ranks` gets of balls thrown at random, mean each: its mean and the largest of so many normal deviations.
double largest_share(double mean, int ranks) { return ranks > 1 ? mean + std::sqrt(2 * mean * std::log(ranks)) : mean; }

// Of things that each are there with a chance, so many a rank: the share that the rank with the most of them has.
double largest_part(double chance, double a_rank, int ranks) {
  return ranks > 1 ? std::min(1.0, chance + std::sqrt(2 * chance * (1 - chance) / a_rank * std::log(ranks))) : chance;
}

double of_format(const ByFormat& rates, workloads::DType computed, workloads::DType weights) {
  const double bytes = bytes_of(computed);
  if (bytes < 1) return rates.fp4;
  if (bytes_of(weights) < 1) return bytes == 1 ? rates.fp4_in_8 : rates.fp4_in_16;
  return bytes == 1 ? rates.fp8 : rates.bf16;
}

}  // namespace

// Weights are read of those experts that some token of the group chose: each is missed by all of n with (1 - k/X)^n. All wait for the rank
// that has the most of them.
OperatorPassPrice::ExpertsAtWork OperatorPassPrice::busiest_experts(double tokens, double copies) const {
  const workloads::MoeSpec& moe = *plan_.model.moe;
  if (expert_ranks_) {
    const workloads::BusiestRank rank = expert_ranks_->busiest(tokens);
    return {rank.hit * plan_.ep / (moe.experts + plan_.redundant), tokens * moe.top_k * rank.pairs};
  }
  const double each = 1 - std::pow(1 - static_cast<double>(moe.top_k) / moe.experts / copies, tokens);
  const double hit = plan_.redundant > 0 ? each : largest_part(each, static_cast<double>(moe.experts) / plan_.ep, plan_.ep);
  return {hit, largest_share(tokens * moe.top_k / plan_.ep, plan_.redundant > 0 ? 1 : plan_.ep)};
}

double OperatorPassPrice::experts_s(double tokens) const {
  const workloads::MoeSpec& moe = *plan_.model.moe;
  const double copies = plan_.redundant > 0 ? 1.0 + static_cast<double>(plan_.redundant) / moe.experts : 1.0;
  const auto [hit, pairs] = busiest_experts(tokens * plan_.dp, copies);
  const bool dispatched = plan_.dp > 1 && plan_.dispatcher != workloads::Dispatcher::allgather;
  const bool blocks = habits_.static_rows > 0 && !dispatched && bytes_of(plan_.precision.compute) == 1;
  const double rows = blocks ? tokens * plan_.dp * moe.top_k + operators_.experts.experts * (habits_.static_rows - 1.0) : pairs;
  double sum = 0;
  for (workloads::TokenOperator line : operators_.experts.operators) {
    line.bytes *= hit * copies;
    const bool product = line.shape.cls == OperatorClass::gemm;
    if (product) line.bytes /= of_format(habits_.expert_read, line.shape.dtype, plan_.precision.weights);
    if (product && !dispatched) line.shape.flops /= of_format(habits_.expert_share, line.shape.dtype, plan_.precision.weights);
    if (product && bytes_of(line.shape.dtype) == 1 && !dispatched) sum += habits_.quantise_s;  // tokens that are sent are narrow already
    sum += product && !blocks ? expert_product_s(line.at(rows)) : kernel_s(line.at(rows));
  }
  return sum;
}

// Reading and computing one after the other: where some experts have many tokens and others few, neither hides the other
// (ai-dynamo/aiconfigurator, moe of three engines on four GPUs; docs/serving.md). Not where each computes a block of rows whatever it has.
double OperatorPassPrice::expert_product_s(Operator op) const {
  Operator reads = op;
  reads.flops = 0;
  reads.kernels = 0;
  op.bytes = 0;
  Operator neither = reads;
  neither.bytes = 0;
  return kernel_s(op) + kernel_s(reads) - kernel_s(neither);
}

// Tokens of every rank to their experts and back. Where attention is not replicated every rank has all tokens, and nothing is sent.
std::vector<Communication> OperatorPassPrice::exchanges(double tokens, workloads::Dispatcher dispatcher) const {
  if (plan_.dp == 1) return {};
  const workloads::MoeSpec& moe = *plan_.model.moe;
  const double own = tokens / plan_.tp, sent = operators_.experts.sent_bytes;
  const auto call = [&](CollectiveKind kind, double bytes, std::shared_ptr<const workloads::Exchange> exchange) {
    Communication out;
    out.kind = kind;
    out.group = GroupKind::ep;
    out.bytes = bytes;
    out.exchange = std::move(exchange);
    return out;
  };
  if (dispatcher == workloads::Dispatcher::allgather) {
    const double all = own * static_cast<double>(ep_group_.size()) * sent;
    return {call(CollectiveKind::all_gather, all, nullptr), call(CollectiveKind::reduce_scatter, all, nullptr)};
  }
  const double narrow = bytes_of(plan_.precision.compute) < 2 ? 0.5 : 1;  // tokens go out as the experts read them, in 8 bits
  std::vector<Communication> out;
  for (const bool back : {false, true}) {
    workloads::Exchange exchange;
    if (expert_ranks_) {
      exchange.pairs = expert_ranks_->pairs();
      for (double& pairs : exchange.pairs) pairs *= own * moe.top_k;
    } else {
      exchange.pairs.assign(ep_group_.size(), own * moe.top_k / static_cast<double>(ep_group_.size()));
    }
    exchange.bytes_per_pair = sent * (back ? 1 : narrow);
    exchange.reversed = back;
    exchange.hierarchical = dispatcher == workloads::Dispatcher::hierarchical;
    exchange.top_k = moe.top_k;
    exchange.experts = moe.experts;
    out.push_back(
        call(CollectiveKind::all_to_all, own * moe.top_k * exchange.bytes_per_pair, std::make_shared<workloads::Exchange>(exchange)));
  }
  return out;
}

double OperatorPassPrice::exchange_s(double tokens, workloads::Dispatcher dispatcher) const {
  double sum = 0;
  for (const Communication& call : exchanges(tokens, dispatcher)) sum += call_s(call);
  return sum;
}

}  // namespace rehearse::sim

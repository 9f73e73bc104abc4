// What a pass sends, and what of it goes between nodes.
#include <algorithm>
#include <cmath>

#include "sim/serving/pass_price.hpp"

namespace rehearse::sim {
namespace {

using workloads::Communication;

// Of equal calls of so many layers.
void add_network(PassNetwork& sum, const CallPrice& price, double times) {
  if (price.inter_bytes <= 0) return;
  sum.seconds += times * (price.sequential ? price.ports().nic_s : price.transfer_s());
  sum.bytes += times * price.inter_bytes;
}

}  // namespace

// Of a graph's rows, as many as choose experts of their own where so many sequences decode.
int OperatorPassPrice::routed_rows(int decodes, int rows) const {
  switch (habits_.filling) {
    case FillingRows::alike:
      return std::min(rows, decodes + 1);
    case FillingRows::none:
      return decodes;
    default:
      return rows;
  }
}

OperatorPassPrice::PassTokens OperatorPassPrice::tokens_of(const PassShape& whole) const {
  PassTokens out;
  out.groups = std::clamp(whole.chunks + whole.decodes, 1.0, static_cast<double>(plan_.pp));
  const double parts = out.groups * plan_.dp, prompts = shares_of(whole, parts);
  PassShape& shape = out.shape;
  shape = {whole.prompt_tokens / prompts, whole.prompt_pairs / prompts,     whole.cached / prompts, whole.chunks / prompts,
           whole.finished / prompts,      std::ceil(whole.decodes / parts), whole.context / parts};
  out.replayed = shape.prompt_tokens <= 0 && shape.decodes <= habits_.captured;
  const int decodes = static_cast<int>(shape.decodes);
  const int rows = out.replayed ? padded(decodes) : decodes;
  out.tokens = static_cast<int>(std::ceil(shape.prompt_tokens)) + rows * tokens_each();
  const double mean = std::min(shape.prompt_tokens, whole.prompt_tokens / plan_.dp);  // of its group
  out.mean = static_cast<int>(std::ceil(mean)) + rows * tokens_each();
  out.routed = out.mean - (rows - routed_rows(decodes, rows)) * tokens_each();
  return out;
}

const OperatorPassPrice::SentTokens& OperatorPassPrice::sent(int tokens) const {
  const auto [known, is_new] = sent_.try_emplace(tokens);
  if (!is_new) return known->second;
  SentTokens& out = known->second;
  for (const workloads::LayerOperators& layer : operators_.layers) {
    for (const workloads::TokenCall& call : layer.calls) add_network(out.calls, price_of(call.at(tokens)), layer.layers);
    if (!layer.has_experts) continue;
    for (const Communication& call : exchanges(tokens, plan_.dispatcher)) add_network(out.exchange, price_of(call), layer.layers);
    for (const Communication& call : exchanges(tokens, low_latency(plan_.dispatcher)))
      add_network(out.direct_exchange, price_of(call), layer.layers);
  }
  return out;
}

// As add_token_cost() has them. Beside work exchanges alone are followed.
PassNetwork OperatorPassPrice::network(const PassShape& whole) const {
  if (plan_.pp > 1) return {};
  const PassTokens each = tokens_of(whole);
  const bool halves = plan_.overlaps && each.tokens > 1;
  const double times = halves ? 2 : 1;
  const SentTokens &mean = sent(halves ? (each.mean + 1) / 2 : each.mean), &busiest = sent(halves ? (each.tokens + 1) / 2 : each.tokens);
  const PassNetwork& exchange = each.shape.prompt_tokens <= 0 ? mean.direct_exchange : mean.exchange;
  if (halves) return {times * exchange.seconds, times * exchange.bytes, true};
  return {exchange.seconds + busiest.calls.seconds, exchange.bytes + busiest.calls.bytes, false};
}

}  // namespace rehearse::sim

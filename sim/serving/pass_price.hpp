// The price of a pass of an instance (docs/serving.md, "The price of a pass"): prompts in chunks and decoding sequences in one pass go
// through one product.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/cost/communication.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/cost/engine_habits.hpp"
#include "sim/cost/gpu.hpp"
#include "workloads/serving/expert_ranks.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {

// What runs through a pass of a whole instance. Doubles, since a formula asks for means too.
struct PassShape {
  double prompt_tokens = 0;  // new ones, of all chunks
  double prompt_pairs = 0;   // (query, key) pairs of their attention: q*p + q*(q+1)/2 of a chunk of q after p in the cache
  double cached = 0;         // tokens of the cache that the chunks read
  double chunks = 0;
  double finished = 0;  // chunks that end their prompt and yield a token
  double decodes = 0;   // sequences that decode
  double context = 0;   // tokens in their caches, together
  // Of prompt_tokens, those of the attention replica (and group of a pipeline) that has the most; 0: as the number of chunks says.
  double busiest_tokens = 0;
};

// Seconds of a pass by what they are spent on.
struct PassCost {
  double linear_s = 0, attention_s = 0, experts_s = 0, communication_s = 0, head_s = 0;
  double stages_s = 0;  // that stages of a pipeline wait for the slowest one
  double draft_s = 0;   // passes of a model that proposes tokens
  double host_s = 0;    // what the GPUs wait for it
  [[nodiscard]] double seconds() const {
    return linear_s + attention_s + experts_s + communication_s + head_s + stages_s + draft_s + host_s;
  }
};

// What a pass sends between nodes, in all layers together. Nothing of instances that stand on one node.
struct PassNetwork {
  double seconds = 0;   // alone, without latencies: part of the pass's, unless the pass goes on beside it
  double bytes = 0;     // that leave each GPU, and come in
  bool beside = false;  // computation covers it
};

// Decode passes of so many sequences, as a line over the tokens in their caches: max(floor, base + slope * context) + after.
struct DecodeLine {
  double base_s = 0, per_token_s = 0, floor_s = 0, after_s = 0;
  [[nodiscard]] double seconds(double context) const;
  // Of so many passes in a row, the first with this context; every pass adds a token to each of `sequences`.
  [[nodiscard]] double seconds(double context, double sequences, double passes) const;
};

class PassPrice {
 public:
  virtual ~PassPrice() = default;
  [[nodiscard]] virtual double seconds(const PassShape& shape) const = 0;
  [[nodiscard]] virtual DecodeLine decode(int sequences) const = 0;
  // By what they are spent on, as far as it is known; they add up to the seconds.
  [[nodiscard]] virtual PassCost parts(const PassShape& shape) const { return {.linear_s = seconds(shape)}; }
  [[nodiscard]] virtual PassNetwork network(const PassShape&) const { return {}; }
};

// Decoding sends a token to each of its experts at once, where prompts go once per domain and on from there (DeepEP's two modes).
[[nodiscard]] inline workloads::Dispatcher low_latency(workloads::Dispatcher dispatcher) {
  return dispatcher == workloads::Dispatcher::hierarchical ? workloads::Dispatcher::alltoall : dispatcher;
}

// By the operators of the plan on a GPU under an engine.
class OperatorPassPrice final : public PassPrice {
 public:
  // Throws InputError where the GPU cannot compute in the plan's precision. The references must outlive it. With `tried` tokens beside the
  // next one of every decoding sequence; `draft` proposes them, in as many passes of its own before (nothing: they cost nothing).
  OperatorPassPrice(const workloads::InstancePlan& plan, const Gpu& gpu, const FewTokenCosts& costs, const Software& software,
                    const topology::ClusterSpec& cluster, const EngineHabits& habits, int tried = 0,
                    std::shared_ptr<const PassPrice> draft = nullptr);

  [[nodiscard]] const workloads::PassOperators& operators() const { return operators_; }

  [[nodiscard]] double seconds(const PassShape& shape) const override { return parts(shape).seconds(); }
  [[nodiscard]] DecodeLine decode(int sequences) const override;
  [[nodiscard]] PassCost parts(const PassShape& shape) const override;
  [[nodiscard]] PassNetwork network(const PassShape& shape) const override;  // of one stage; of several it says nothing

 private:
  // What depends on the tokens of a pass alone; of one attention replica.
  struct TokenCost {
    double linear_s = 0, experts_s = 0, communication_s = 0;
    double exchange_s = 0, direct_exchange_s = 0;  // of tokens and their experts, of prompts and of decoding; not in communication_s
    bool known = false;
  };
  // Of a pass, what one group of one attention replica has: the busiest one's, tokens of it and of all in the mean; of these, those that
  // choose experts.
  struct PassTokens {
    PassShape shape;
    double groups = 1;
    bool replayed = false;  // as a graph
    int tokens = 0, mean = 0, routed = 0;
  };
  [[nodiscard]] int routed_rows(int decodes, int rows) const;
  [[nodiscard]] PassTokens tokens_of(const PassShape& whole) const;
  // Between nodes, by tokens.
  struct SentTokens {
    PassNetwork calls, exchange, direct_exchange;
  };
  [[nodiscard]] const SentTokens& sent(int tokens) const;
  [[nodiscard]] PassCost stage_parts(const PassShape& shape) const;
  [[nodiscard]] const TokenCost& token_cost(int tokens) const;
  [[nodiscard]] TokenCost price_tokens(double tokens) const;
  void add_token_cost(PassCost& parts, const PassTokens& each) const;
  [[nodiscard]] double operators_s(const std::vector<workloads::TokenOperator>& operators, double tokens) const;
  // Of the busiest rank of the group, with so many tokens in the pass.
  struct ExpertsAtWork {
    double hit = 0;    // share of its experts, copies included, that it reads
    double pairs = 0;  // (token, expert) pairs
  };
  [[nodiscard]] ExpertsAtWork busiest_experts(double tokens, double copies) const;
  [[nodiscard]] double experts_s(double tokens) const;
  [[nodiscard]] double expert_product_s(workloads::Operator op) const;
  [[nodiscard]] std::vector<workloads::Communication> exchanges(double tokens, workloads::Dispatcher dispatcher) const;
  [[nodiscard]] double exchange_s(double tokens, workloads::Dispatcher dispatcher) const;
  [[nodiscard]] CallPrice price_of(const workloads::Communication& call) const;
  [[nodiscard]] double call_s(const workloads::Communication& call) const;
  [[nodiscard]] double head_s(double rows) const;
  [[nodiscard]] double prompt_attention_s(const PassShape& shape) const;
  [[nodiscard]] double mixers_s(const PassShape& shape) const;
  [[nodiscard]] double cache_s_per_token() const;  // of one layer
  [[nodiscard]] double slow_cache_share() const;
  // Where contexts are not split, a sequence and a key/value head are one block of threads, and few of them leave most of the GPU idle.
  [[nodiscard]] double cache_s_per_token(double decodes) const {
    const double blocks = decodes * (plan_.model.mla ? 1 : operators_.attention.kv_heads);
    return cache_s_per_token_ / std::min(1.0, habits_.block_share * std::max(1.0, blocks));
  }
  [[nodiscard]] double cache_fixed_s(double decodes) const;
  [[nodiscard]] DecodeLine price_decode(int sequences) const;
  [[nodiscard]] double issue_s() const {  // of all kernels of a pass, by the host
    return kernels_ * gpu_.issue_s(habits_.eager ? habits_.eager_issue_s.value_or(software_.issue_s) : software_.issue_s);
  }
  [[nodiscard]] int padded(int sequences) const;
  [[nodiscard]] static double shares_of(const PassShape& shape, double lanes);
  [[nodiscard]] double slowest_stage_times(double groups) const;
  [[nodiscard]] bool ahead() const { return habits_.ahead && plan_.pp == 1; }
  [[nodiscard]] double kernel_s(workloads::Operator op) const;

  const workloads::InstancePlan& plan_;
  const Gpu& gpu_;
  FewTokenCosts costs_;
  const Software& software_;
  const EngineHabits& habits_;
  int tried_;
  std::shared_ptr<const PassPrice> draft_;
  [[nodiscard]] double draft_s(const PassShape& whole) const;
  [[nodiscard]] int tokens_each() const { return 1 + tried_; }  // of a sequence in a decode pass
  workloads::PassOperators operators_;
  std::optional<workloads::ExpertRanks> expert_ranks_;  // where tokens do not go to all experts alike
  CommunicationModel communication_, library_;
  std::vector<int> tp_group_, ep_group_;
  double kernels_ = 0;            // of a whole pass
  double cache_s_per_token_ = 0;  // of one layer
  double full_layers_ = 0;        // that attend to all of a sequence
  double window_layers_ = 0;      // that attend to a window, which is taken to be full
  mutable std::vector<TokenCost> token_costs_;
  mutable std::vector<double> heads_;
  mutable std::vector<std::optional<DecodeLine>> lines_;
  mutable std::map<int, SentTokens> sent_;
};

}  // namespace rehearse::sim

#include "workloads/expert_loads.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "config/random.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::workloads {
namespace {

// All that the loads of a step depend on, unless the job lists them.
struct Origin {
  std::string routing;
  Senders senders = Senders::alike;
  std::uint64_t seed = 0;
  double skew = 0, capacity_factor = 0, own_pairs = 0;
  int step = 0, experts = 0, top_k = 0, ep = 0, etp = 0, pad_to = 0;
  bool operator==(const Origin&) const = default;
};

}  // namespace

void choose_once(std::vector<double>& shares, double most) {
  if (std::ranges::max(shares) <= most) return;
  std::vector<std::size_t> open(shares.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  while (true) {
    double beyond = 0, rest = 0;
    std::size_t left = 0;
    for (const std::size_t e : open) {
      if (shares[e] > most) {
        beyond += shares[e] - most;
        shares[e] = most;
      } else {
        rest += shares[e];
        open[left++] = e;
      }
    }
    if (beyond <= 0 || rest <= 0) return;
    open.resize(left);
    const double factor = 1 + beyond / rest;
    for (const std::size_t e : open) shares[e] *= factor;
  }
}

ExpertLoads::ExpertLoads(const Workload& workload, int step)
    : workload_(workload),
      step_(step),
      per_rank_(workload.model.moe->experts / workload.parallel.ep),
      even_(RoutingRegistry::get(workload.experts.routing).even()),
      alike_(even_ || workload.experts.senders == Senders::alike) {
  const int experts = workload.model.moe->experts;
  own_pairs_ = static_cast<double>(shard_of(workload).spread_tokens) * workload.model.moe->top_k;
  sent_by_each_ = even_ ? filled_up(own_pairs_ / experts, own_pairs_) * experts : own_pairs_;
  loads_ = drawn();
}

std::shared_ptr<ExpertLoads::Loads> ExpertLoads::drawn() const {
  if (!workload_.experts.counts.empty()) return std::make_shared<Loads>();
  thread_local std::pair<Origin, std::shared_ptr<Loads>> last;
  const ExpertPlan& plan = workload_.experts;
  const MoeSpec& moe = *workload_.model.moe;
  const Parallel& parallel = workload_.parallel;
  Origin origin{plan.routing, plan.senders, plan.seed, plan.skew,   plan.capacity_factor, own_pairs_,
                step_,        moe.experts,  moe.top_k, parallel.ep, parallel.etp,         plan.pad_to};
  if (!last.second || last.first != origin) last = {std::move(origin), std::make_shared<Loads>()};
  return last.second;
}

const LayerLoad& ExpertLoads::at(int layer, int microbatch) const {
  if (even_) layer = microbatch = 0;
  const auto l = static_cast<std::size_t>(layer), m = static_cast<std::size_t>(microbatch);
  if (l >= loads_->size()) loads_->resize(l + 1);
  auto& of_layer = (*loads_)[l];
  if (m >= of_layer.size()) of_layer.resize(std::max(m + 1, static_cast<std::size_t>(even_ ? 1 : workload_.microbatches())));
  if (!of_layer[m]) of_layer[m] = std::make_unique<const LayerLoad>(load(layer, microbatch));
  return *of_layer[m];
}

// Pairs by expert, before drops.
std::vector<double> ExpertLoads::choices(const RoutingPlace& place, double pairs) const {
  const MoeSpec& moe = *workload_.model.moe;
  std::vector<double> shares = RoutingRegistry::get(workload_.experts.routing).shares(workload_.experts, moe.experts, place);
  choose_once(shares, 1.0 / moe.top_k);
  for (double& share : shares) share *= pairs;
  return shares;
}

// Rows that a sender dispatches to an expert in place of those that its own pairs make.
double ExpertLoads::filled_up(double rows, double pairs) const {
  const ExpertPlan& plan = workload_.experts;
  if (plan.pad_to == ExpertPlan::to_capacity) return plan.capacity_factor * pairs / workload_.model.moe->experts;
  return plan.pad_to == 0 ? rows : std::ceil(rows / plan.pad_to) * plan.pad_to;
}

LayerLoad ExpertLoads::load(int layer, int microbatch) const {
  LayerLoad load = alike_ ? load_of_all(layer, microbatch) : load_by_sender(layer, microbatch);
  for (auto first = load.tokens.begin(); first != load.tokens.end(); first += per_rank_)
    load.received.push_back(std::accumulate(first, first + per_rank_, 0.0));
  load.hottest = static_cast<int>(std::ranges::max_element(load.received) - load.received.begin());
  return load;
}

LayerLoad ExpertLoads::load_of_all(int layer, int microbatch) const {
  const int experts = workload_.model.moe->experts;
  const double pairs = own_pairs_ * workload_.parallel.ep * workload_.parallel.etp;
  const double capacity = workload_.experts.capacity_factor > 0 ? workload_.experts.capacity_factor * pairs / experts : pairs;
  const double senders = static_cast<double>(workload_.parallel.ep) * workload_.parallel.etp;
  LayerLoad load;
  load.tokens = choices({step_, layer, microbatch}, pairs);
  for (double& tokens : load.tokens) {
    load.dropped += std::max(0.0, tokens - capacity);
    tokens = filled_up(std::min(tokens, capacity) / senders, own_pairs_) * senders;
  }
  return load;
}

// Every sender keeps to the capacity by itself, before it dispatches, as Megatron-LM counts it: factor times its balanced share.
LayerLoad ExpertLoads::load_by_sender(int layer, int microbatch) const {
  const MoeSpec& moe = *workload_.model.moe;
  const int ep = workload_.parallel.ep, etp = workload_.parallel.etp;
  const bool sampled = workload_.experts.senders == Senders::sampled;
  const double capacity = workload_.experts.capacity_factor > 0 ? workload_.experts.capacity_factor * own_pairs_ / moe.experts : own_pairs_;
  LayerLoad load;
  load.tokens.assign(static_cast<std::size_t>(moe.experts), 0.0);
  std::vector<double> sent(static_cast<std::size_t>(ep) * ep);
  load.dropped_by.assign(static_cast<std::size_t>(ep), 0.0);
  const std::vector<double> of_layer = sampled ? choices({step_, layer, microbatch}, 1) : std::vector<double>{};
  for (int sender = 0; sender < ep; ++sender) {
    const RoutingPlace place{step_, layer, microbatch, sender};
    std::vector<double> row;
    if (sampled) {
      config::Random random(seed_of(workload_.experts, place));
      row = config::multinomial(std::llround(own_pairs_), of_layer, random);
      choose_once(row, own_pairs_ / moe.top_k);
    } else {
      row = choices(place, own_pairs_);
    }
    for (int e = 0; e < moe.experts; ++e) {
      const double kept = std::min(row[e], capacity);
      const double rows = filled_up(kept, own_pairs_);
      load.tokens[e] += rows * etp;
      sent[static_cast<std::size_t>(sender) * ep + e / per_rank_] += rows;
      load.dropped_by[sender] += row[e] - kept;
    }
    load.dropped += load.dropped_by[sender] * etp;
  }
  load.sent = std::make_shared<const std::vector<double>>(std::move(sent));
  return load;
}

}  // namespace rehearse::workloads

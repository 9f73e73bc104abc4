#include "workloads/serving/expert_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "workloads/expert_loads.hpp"
#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

constexpr int steps_a_doubling = 8;

// How many copies of each expert: one, and the redundant ones where a copy has the most.
std::vector<int> copies_of(const std::vector<double>& shares, int redundant) {
  std::vector<int> copies(shares.size(), 1);
  for (int i = 0; i < redundant; ++i) {
    std::size_t most = 0;
    for (std::size_t e = 1; e < shares.size(); ++e) {
      if (shares[e] / copies[e] > shares[most] / copies[most]) most = e;
    }
    ++copies[most];
  }
  return copies;
}

// The rank of each: the largest first, to the rank with the least that has room.
std::vector<std::size_t> packed(const std::vector<double>& weights, std::size_t ranks) {
  const std::size_t room = (weights.size() + ranks - 1) / ranks;
  std::vector<std::size_t> order(weights.size()), out(weights.size()), held(ranks, 0);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t i) { return weights[i]; });
  using Rank = std::pair<double, std::size_t>;  // what it has so far
  std::priority_queue<Rank, std::vector<Rank>, std::greater<>> open;
  for (std::size_t rank = 0; rank < ranks; ++rank) open.emplace(0.0, rank);
  for (const std::size_t i : order) {
    const auto [sum, rank] = open.top();
    open.pop();
    out[i] = rank;
    if (++held[rank] < room) open.emplace(sum + weights[i], rank);
  }
  return out;
}

}  // namespace

double largest_drawn(const std::vector<double>& means, const std::vector<double>& variances) {
  const double normal = 2 * std::log(static_cast<double>(means.size()));
  double low = 0, high = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    low = std::max(low, means[i]);
    high = std::max(high, means[i] + std::sqrt(normal * variances[i]));
  }
  constexpr int halvings = 24;
  for (int i = 0; i < halvings && high > low; ++i) {
    const double middle = (low + high) / 2;
    double reach = 0;
    for (std::size_t rank = 0; rank < means.size(); ++rank) {
      const double beyond = middle - means[rank];
      if (variances[rank] > 0) reach += std::exp(-beyond * beyond / (2 * variances[rank]));
    }
    (reach > 1 ? low : high) = middle;
  }
  return high;
}

ExpertRanks::ExpertRanks(const InstancePlan& plan)
    : ranks_(static_cast<std::size_t>(plan.ep)), top_k_(plan.model.moe->top_k), redundant_(plan.redundant) {
  const Routing& routing = RoutingRegistry::get(plan.routing->routing);
  for (int layer = 0; layer < plan.model.layers; ++layer) {
    if (!plan.model.has_experts(layer)) continue;
    std::vector<double> shares = routing.shares(*plan.routing, plan.model.moe->experts, {.step = 0, .layer = layer});
    choose_once(shares, 1.0 / top_k_);
    layers_.push_back(laid_out(shares));
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < layers_.size(); ++i) order.emplace_back(std::ranges::max(layers_[i].pairs), i);
  std::ranges::sort(order);
  middle_ = order[order.size() / 2].second;
}

ExpertRanks::Layer ExpertRanks::laid_out(const std::vector<double>& shares) const {
  const std::vector<int> copies = copies_of(shares, redundant_);
  std::vector<double> each;
  for (std::size_t e = 0; e < shares.size(); ++e) each.insert(each.end(), static_cast<std::size_t>(copies[e]), shares[e] / copies[e]);
  std::vector<std::size_t> rank(each.size());
  if (redundant_ > 0) rank = packed(each, ranks_);
  for (std::size_t i = 0; redundant_ == 0 && i < each.size(); ++i) rank[i] = i * ranks_ / each.size();
  Layer layer;
  layer.pairs.assign(ranks_, 0.0);
  for (std::size_t i = 0; i < each.size(); ++i) {
    layer.pairs[rank[i]] += each[i];
    layer.slots.push_back({std::log1p(-std::min(1.0, top_k_ * each[i])), rank[i]});
  }
  return layer;
}

BusiestRank ExpertRanks::at(double tokens) const {
  BusiestRank sum;
  std::vector<double> hits(ranks_), spread(ranks_), pairs(ranks_);
  for (const Layer& layer : layers_) {
    std::ranges::fill(hits, 0.0);
    std::ranges::fill(spread, 0.0);
    for (const Slot& slot : layer.slots) {
      const double hit = -std::expm1(tokens * slot.log_missed);
      hits[slot.rank] += hit;
      spread[slot.rank] += hit * (1 - hit);
    }
    for (std::size_t rank = 0; rank < ranks_; ++rank) pairs[rank] = tokens * top_k_ * layer.pairs[rank];
    const bool chance = redundant_ == 0;
    const double held = static_cast<double>(layer.slots.size()) / static_cast<double>(ranks_);
    sum.hit += std::min(held, chance ? largest_drawn(hits, spread) : std::ranges::max(hits));
    // No rank gets a token more often than it has experts.
    sum.pairs += std::min({1.0, held / top_k_, (chance ? largest_drawn(pairs, pairs) : std::ranges::max(pairs)) / (tokens * top_k_)});
  }
  const auto layers = static_cast<double>(layers_.size());
  return {sum.hit / layers, sum.pairs / layers};
}

BusiestRank ExpertRanks::busiest(double tokens) const {
  if (tokens <= 0) return {};
  const int below = static_cast<int>(std::floor(std::log2(tokens) * steps_a_doubling));
  const auto tokens_at = [](int step) { return std::exp2(static_cast<double>(step) / steps_a_doubling); };
  const auto of = [&](int step) {
    const auto [found, is_new] = known_.try_emplace(step);
    if (is_new) found->second = at(tokens_at(step));
    return found->second;
  };
  const BusiestRank low = of(below), high = of(below + 1);
  const double part = (tokens - tokens_at(below)) / (tokens_at(below + 1) - tokens_at(below));
  return {low.hit + part * (high.hit - low.hit), low.pairs + part * (high.pairs - low.pairs)};
}

double ExpertRanks::imbalance() const {
  double sum = 0;
  for (const Layer& layer : layers_) sum += std::ranges::max(layer.pairs);
  return sum / static_cast<double>(layers_.size()) * static_cast<double>(ranks_);
}

}  // namespace rehearse::workloads

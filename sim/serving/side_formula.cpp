#include "sim/serving/side_formula.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/unlike_servers.hpp"

namespace rehearse::sim {
namespace {

constexpr int spreading_rounds = 100;  // of a fixed point that contracts by what passes grow with their batch

void make_shares(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

}  // namespace

double SideState::mean(double PoolState::*what) const {
  double sum = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) sum += shares[i] * pools[i].*what;
  return sum;
}

// What all requests keep to stays where no pool's high time becomes longer.
void put_held(SideState& prompts, std::span<const PoolFormula> pools, double rate_per_s, const MeanHandOver& between) {
  const double hand_over_s = between.links_busy < 1 ? between.waiting_s + between.transfer_s : 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    PoolState& pool = prompts.pools[i];
    const double before_s = pool.ttft_high_s;
    const double more_s = put_held(pool, pools[i], pools[i].load(), rate_per_s * prompts.shares[i], hand_over_s);
    if (prompts.shares[i] <= 0) continue;
    prompts.queue_s += prompts.shares[i] * more_s;
    prompts.ttft_s += prompts.shares[i] * more_s;
    if (pool.ttft_high_s > before_s) prompts.ttft_high_s = std::max(prompts.ttft_high_s, pool.ttft_high_s);
  }
}

SideFormula::SideFormula(std::span<const PoolDeployment> pools, const LoadMoments& load, std::string_view router)
    : deployments_(pools), load_(load), router_(router), goes_by_(RouterRegistry::get(router).goes_by()) {
  if (goes_by_ == GoesBy::lengths) buckets_ = length_buckets(pools, load);
  std::vector<const LoadMoments*> loads(pools.size(), &load);
  for (const auto& bucket : buckets_) {
    for (const std::size_t place : bucket->places) loads[place] = &bucket->load;
  }
  for (std::size_t i = 0; i < pools.size(); ++i) pools_.emplace_back(pools[i], *loads[i]);
}

// Poisson arrivals whose lengths are drawn one by one are Poisson arrivals in every bucket, independent of the others'.
SideState SideFormula::by_buckets(double rate_per_s, const OfBucket& of) const {
  std::vector<PoolState> states(pools_.size());
  std::vector<double> shares(pools_.size(), 0);
  for (const auto& bucket : buckets_) {
    if (bucket->share <= 0) continue;
    const SideState state = of(*bucket->side, rate_per_s * bucket->share);
    for (std::size_t i = 0; i < bucket->places.size(); ++i) {
      states[bucket->places[i]] = state.pools[i];
      shares[bucket->places[i]] = bucket->share * state.shares[i];
    }
  }
  return state_of(std::move(states), std::move(shares));
}

// What one instance of each pool gets of the requests, for one of a mean instance.
std::vector<double> SideFormula::weights() const {
  std::vector<double> out(pools_.size(), 1);
  double all = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) all += instances(i);
  for (const auto& bucket : buckets_) {
    for (const std::size_t place : bucket->places) out[place] = bucket->share * all / bucket->instances();
  }
  return out;
}

std::vector<double> SideFormula::equal_shares() const {
  std::vector<double> shares;
  for (std::size_t i = 0; i < pools_.size(); ++i) shares.push_back(instances(i));
  make_shares(shares);
  return shares;
}

double SideFormula::request_s() const {
  double slowest_s = 0;
  for (const PoolFormula& pool : pools_) slowest_s = std::max(slowest_s, pool.pool().pool->habits.request_s);
  return slowest_s;
}

double SideFormula::least_prompt_s() const {
  double least_s = std::numeric_limits<double>::infinity();
  for (const PoolFormula& pool : pools_) least_s = std::min(least_s, pool.prompt_s(0).seconds);
  return least_s;
}

double SideFormula::prompts_per_s() const {
  double sum = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) sum += instances(i) / pools_[i].service_s();
  return sum;
}

SideState SideFormula::state_of(std::vector<PoolState> pools, std::vector<double> shares) const {
  SideState state{.pools = std::move(pools), .shares = std::move(shares)};
  state.ttft_s = state.mean(&PoolState::ttft_s);
  state.queue_s = state.mean(&PoolState::queue_s);
  state.prefill_s = state.mean(&PoolState::prefill_s);
  state.tpot_s = state.mean(&PoolState::tpot_s);
  for (std::size_t i = 0; i < state.pools.size(); ++i) {
    state.pass_s += state.shares[i] * state.pools[i].first_pass_s();
    if (state.shares[i] <= 0) continue;
    state.ttft_high_s = std::max(state.ttft_high_s, std::isfinite(state.pools[i].ttft_s) ? state.pools[i].ttft_high_s : INFINITY);
    state.tpot_high_s = std::max(state.tpot_high_s, state.pools[i].tpot_high_s);
  }
  return state;
}

// As if all requests of a pool took longer than those of faster ones: the percentile falls into one pool, of whose requests it is another.
SideState SideFormula::of_all(SideState state, const std::function<SideState(const SideFormula&)>& again) const {
  if (pools_.size() < 2 || load_.percentile <= 0) return state;
  constexpr double nearly_none = 1e-3;
  const std::vector<PoolState> at_all = state.pools;
  for (const auto& [of_side, of_pool] :
       {std::pair{&SideState::ttft_high_s, &PoolState::ttft_high_s}, std::pair{&SideState::tpot_high_s, &PoolState::tpot_high_s}}) {
    if (!std::isfinite(state.*of_side)) continue;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      if (state.shares[i] > 0) order.push_back(i);
    }
    std::ranges::sort(order, {}, [&at_all, time = of_pool](std::size_t i) { return at_all[i].*time; });
    double before = 0;
    std::size_t at = 0;
    while (at + 1 < order.size() && before + state.shares[order[at]] < load_.percentile) before += state.shares[order[at++]];
    LoadMoments other = load_;
    other.percentile = std::clamp((load_.percentile - before) / state.shares[order[at]], nearly_none, 1 - nearly_none);
    const double within_s = again(SideFormula(deployments_, other, router_)).pools[order[at]].*of_pool;
    state.*of_side = std::clamp(within_s, at_all[order.front()].*of_pool, state.*of_side);
  }
  return state;
}

// Several pools behind a router that looks are one queue of unlike servers; of its wait services of other spread have the share that they
// have of Erlang's (Allen and Cunneen).
SideState SideFormula::prompts_by_pool(double rate_per_s) const {
  if (!buckets_.empty()) return by_buckets(rate_per_s, [](const SideFormula& side, double rate) { return side.prompts_by_pool(rate); });
  std::vector<double> shares = equal_shares();
  const bool one_queue = looks() && !alike();
  ServerQueue queue;
  if (one_queue) {
    std::vector<ServerKind> kinds;
    for (std::size_t i = 0; i < pools_.size(); ++i) kinds.push_back({instances(i), pools_[i].service_s()});
    queue = unlike_servers(kinds, rate_per_s);
    shares = queue.shares;
  }
  std::vector<PoolState> states;
  for (std::size_t i = 0; i < pools_.size(); ++i) states.push_back(prompts_of(i, rate_per_s * shares[i], one_queue));
  if (one_queue && std::isfinite(queue.wait_s)) {
    for (PoolState& state : states) {
      state.queue_s = (load_.arrival_variation + load_.input_variation) / 2 * queue.wait_s;
      state.ttft_s = state.queue_s + state.prefill_s;
      put_high_prompts(state, load_, turns());
    }
  }
  return state_of(std::move(states), std::move(shares));
}

// A router that does not look makes a queue at each instance. Equal prompts that come at random to instances in turn are exactly one queue.
PoolState SideFormula::prompts_of(std::size_t pool, double rate_per_s, bool one_queue) const {
  const double number = instances(pool), each = rate_per_s / number;
  const bool by_passes = !one_queue && queues_by_passes(pools_[pool], load_);
  if (!by_passes && (looks() || one_queue)) return prompts_alone(pools_[pool], load_, rate_per_s, static_cast<int>(number));
  LoadMoments one = load_;
  one.arrival_variation /= turns();
  PoolState state = by_passes ? prompts_by_passes(pools_[pool], load_, each, turns()) : prompts_alone(pools_[pool], one, each, 1);
  state.requests_per_s *= number;
  return state;
}

bool SideFormula::alike() const {
  constexpr double near = 1e-9;
  const double first_s = pools_.front().service_s();
  return std::ranges::all_of(pools_, [&](const PoolFormula& pool) { return std::abs(pool.service_s() - first_s) < near * first_s; });
}

int SideFormula::turns() const {
  if (goes_by_ == GoesBy::chance) return 1;
  double sum = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) sum += instances(i);
  return static_cast<int>(sum);
}

// Of a constant rate each of those in turn has one of its own, as if it were alone.
int SideFormula::own_turns() const { return load_.arrival_variation > 0 || looks() ? turns() : 1; }

double SideFormula::pages(std::size_t pool) const {
  return static_cast<double>(pools_[pool].pool().rules.usable_pages() * pools_[pool].pool().rules.page);
}

SideState SideFormula::decoding_by_pool(double rate_per_s) const {
  if (!buckets_.empty()) return by_buckets(rate_per_s, [](const SideFormula& side, double rate) { return side.decoding_by_pool(rate); });
  std::vector<double> shares(pools_.size(), 0), batches(pools_.size(), 0);
  for (int round = 0; round < (pools_.size() > 1 && looks() ? spreading_rounds : 1); ++round) {
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const double room = goes_by_ == GoesBy::caches ? pages(i) : 1;
      shares[i] = instances(i) * (looks() ? room / pools_[i].decode_s(1 + batches[i]) : 1);
    }
    make_shares(shares);
    for (std::size_t i = 0; i < pools_.size(); ++i)
      batches[i] = std::min(pools_[i].most_sequences(),
                            rate_per_s * shares[i] / instances(i) * pools_[i].passes(load_.output) * pools_[i].decode_s(1 + batches[i]));
  }
  std::vector<PoolState> states;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const double each = rate_per_s * shares[i] / instances(i);
    states.push_back(pools_[i].pool().rules.batching == Batching::fixed ? static_batches(pools_[i], load_, each, own_turns())
                                                                        : decoding_alone(pools_[i], load_, each, turns()));
  }
  return state_of(std::move(states), std::move(shares));
}

// What a router looks at says who gets more: prompts that are computed soonest, the fewest requests, the emptiest cache.
std::vector<double> SideFormula::shares_together(double rate_per_s) const {
  if (pools_.size() == 1 || !looks()) return equal_shares();
  std::vector<double> numbers;
  for (std::size_t i = 0; i < pools_.size(); ++i) numbers.push_back(instances(i));
  const auto rate_of = [&](std::size_t pool, double requests) {
    return closed_loop(pools_[pool], load_, requests).requests_per_s;  // so many on an instance at any time
  };
  if (goes_by_ == GoesBy::requests) {
    double most = 0;
    for (const PoolFormula& pool : pools_) most = std::max(most, pool.most_sequences());
    return fewest_first_shares(
        numbers, [&](std::size_t pool, int requests) { return rate_of(pool, requests); }, rate_per_s, static_cast<int>(most));
  }
  if (goes_by_ != GoesBy::caches) {
    std::vector<ServerKind> kinds;
    for (std::size_t i = 0; i < pools_.size(); ++i) kinds.push_back({instances(i), pools_[i].service_s()});
    return unlike_servers(kinds, rate_per_s).shares;
  }
  double low = 0, high = 1;  // of the caches
  std::vector<double> shares = numbers;
  for (int round = 0; round < spreading_rounds; ++round) {
    const double filled = (low + high) / 2;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const double requests = filled * pages(i) / load_.context;
      shares[i] = numbers[i] * rate_of(i, std::max(1.0, requests)) * std::min(1.0, requests);
    }
    (std::accumulate(shares.begin(), shares.end(), 0.0) < rate_per_s ? low : high) = filled;
  }
  make_shares(shares);
  return shares;
}

namespace {

// Behind a router that goes by their caches alone instances that idle are the emptiest: requests come in turn. Where all are at work
// (Sakasegawa) those that come during a pass go to one instance, as to one with arrivals of its own.
PoolState by_caches(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns) {
  PoolState out = together_by_passes(pool, load, rate_per_s, 1);
  if (turns == 1 || !std::isfinite(out.ttft_s)) return out;
  const PoolState in_turn = together_by_passes(pool, load, rate_per_s, turns);
  if (!std::isfinite(in_turn.ttft_s)) return out;
  const double at_work = std::pow(std::min(1.0, in_turn.busy), std::sqrt(2.0 * (turns + 1)) - 1);
  for (const auto part : {&PoolState::ttft_high_s, &PoolState::tpot_high_s, &PoolState::pass_s, &PoolState::answer_s, &PoolState::ttft_s,
                          &PoolState::tpot_s, &PoolState::batch, &PoolState::queue_s, &PoolState::prefill_s, &PoolState::busy})
    out.*part = at_work * (out.*part) + (1 - at_work) * (in_turn.*part);
  return out;
}

}  // namespace

SideState SideFormula::together_by_pool(double rate_per_s) const {
  if (!buckets_.empty()) return by_buckets(rate_per_s, [](const SideFormula& side, double rate) { return side.together_by_pool(rate); });
  std::vector<double> shares = shares_together(rate_per_s);
  std::vector<PoolState> states;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const double each = rate_per_s * shares[i] / instances(i);
    states.push_back(!queues_by_passes(pools_[i], load_) ? sim::together(pools_[i], load_, each, own_turns())
                     : goes_by_ == GoesBy::caches        ? by_caches(pools_[i], load_, each, turns())
                                                         : together_by_passes(pools_[i], load_, each, turns()));
  }
  return state_of(std::move(states), std::move(shares));
}

// As many on each instance, or by their caches or the prompts that they take.
std::vector<double> SideFormula::spread(double clients) const {
  std::vector<double> each;
  const std::vector<double> taken = weights();
  double sum = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    each.push_back(goes_by_ == GoesBy::caches ? pages(i) : taken[i]);
    sum += instances(i) * each.back();
  }
  for (double& one : each) one *= clients / sum;
  return each;
}

// Routers that do not look, or go by lengths alone, send each as many in a time whatever it has, so that clients gather where they are
// slow.
SideState SideFormula::of_clients(double clients, const AtClients& at) const {
  std::vector<double> each = spread(clients);
  if (pools_.size() > 1 && (!looks() || !buckets_.empty())) gather(clients, at, each);
  std::vector<PoolState> states;
  std::vector<double> shares;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    states.push_back(each[i] > 0 ? at(pools_[i], each[i]) : PoolState{});
    shares.push_back(instances(i) * states[i].requests_per_s);
  }
  make_shares(shares);
  return state_of(std::move(states), std::move(shares));
}

SideState SideFormula::at_once(double requests, const AtClients& at) const {
  std::vector<double> shares = spread(requests);
  std::vector<PoolState> states;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    states.push_back(shares[i] > 0 ? at(pools_[i], shares[i]) : PoolState{});
    shares[i] *= instances(i);
  }
  make_shares(shares);
  return state_of(std::move(states), std::move(shares));
}

// So many on each that all end as many in a time, or by what they take: the rate that all clients together come to, by bisection within
// bisection.
void SideFormula::gather(double clients, const AtClients& at, std::vector<double>& each) const {
  constexpr int halvings = 50;
  const auto held_at = [&](std::size_t i, double rate_per_s) {
    double low = 0, high = clients;
    for (int round = 0; round < halvings; ++round) {
      const double middle = (low + high) / 2;
      (at(pools_[i], std::max(1.0, middle)).requests_per_s * std::min(1.0, middle) < rate_per_s ? low : high) = middle;
    }
    return high;
  };
  const std::vector<double> taken = weights();
  double low = 0, high = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (taken[i] > 0) high = std::max(high, at(pools_[i], clients).requests_per_s / taken[i]);
  }
  for (int round = 0; round < halvings; ++round) {
    const double rate = (low + high) / 2;
    double held = 0;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      each[i] = taken[i] > 0 ? held_at(i, rate * taken[i]) : 0;
      held += instances(i) * each[i];
    }
    (held < clients ? low : high) = rate;
  }
}

}  // namespace rehearse::sim

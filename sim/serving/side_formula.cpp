#include "sim/serving/side_formula.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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

SideFormula::SideFormula(std::span<const PoolDeployment> pools, const LoadMoments& load, std::string router)
    : load_(load), router_(std::move(router)) {
  for (const PoolDeployment& pool : pools) pools_.emplace_back(pool, load);
}

double SideFormula::request_s() const {
  double slowest_s = 0;
  for (const PoolFormula& pool : pools_) slowest_s = std::max(slowest_s, pool.pool().pool->habits.request_s);
  return slowest_s;
}

double SideFormula::prompts_per_s() const {
  double sum = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) sum += instances(i) / pools_[i].prompt_s(0).seconds;
  return sum;
}

SideState SideFormula::state_of(std::vector<PoolState> pools, std::vector<double> shares) const {
  SideState state{.pools = std::move(pools), .shares = std::move(shares)};
  state.ttft_s = state.mean(&PoolState::ttft_s);
  state.queue_s = state.mean(&PoolState::queue_s);
  state.prefill_s = state.mean(&PoolState::prefill_s);
  state.tpot_s = state.mean(&PoolState::tpot_s);
  return state;
}

// Who finds nobody busy is sent to any in turn; the busier they are, the more go where work is done sooner. Who waits does so for any of
// them.
SideState SideFormula::prompts(double rate_per_s) const {
  const double capacity_per_s = prompts_per_s(), busy = looks() ? std::min(1.0, rate_per_s / capacity_per_s) : 0;
  double all = 0, mean_s = 0, square = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) all += instances(i);
  std::vector<double> shares;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const double service_s = pools_[i].prompt_s(0).seconds;
    shares.push_back((1 - busy) * instances(i) / all + busy * instances(i) / service_s / capacity_per_s);
    mean_s += shares[i] * service_s;
    square += shares[i] * service_s * service_s;
  }
  std::vector<PoolState> states;
  for (std::size_t i = 0; i < pools_.size(); ++i)
    states.push_back(prompts_alone(pools_[i], load_, rate_per_s * shares[i], static_cast<int>(instances(i))));
  const double offered = rate_per_s * mean_s;
  if (pools_.size() > 1 && looks() && offered < all) {
    const double variation = square / (mean_s * mean_s) * (1 + load_.input_variation) - 1;
    const double wait_s =
        (load_.arrival_variation + variation) / 2 * chance_to_wait(static_cast<int>(all), offered) * mean_s / (all - offered);
    for (PoolState& state : states) {
      state.ttft_s += wait_s - state.queue_s;
      state.queue_s = wait_s;
    }
  }
  return state_of(std::move(states), std::move(shares));
}

SideState SideFormula::decoding(double rate_per_s) const {
  std::vector<double> shares(pools_.size(), 0), batches(pools_.size(), 0);
  const auto pages = [&](std::size_t i) { return static_cast<double>(pools_[i].pool().rules.pages * pools_[i].pool().rules.page); };
  for (int round = 0; round < (pools_.size() > 1 && looks() ? spreading_rounds : 1); ++round) {
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      const double room = router_ == "least-kv" ? pages(i) : 1;
      shares[i] = instances(i) * (looks() ? room / pools_[i].decode_s(1 + batches[i]) : 1);
    }
    make_shares(shares);
    for (std::size_t i = 0; i < pools_.size(); ++i)
      batches[i] =
          std::min(pools_[i].most_sequences(), rate_per_s * shares[i] / instances(i) * load_.output * pools_[i].decode_s(1 + batches[i]));
  }
  std::vector<PoolState> states;
  for (std::size_t i = 0; i < pools_.size(); ++i) states.push_back(decoding_alone(pools_[i], load_, rate_per_s * shares[i] / instances(i)));
  return state_of(std::move(states), std::move(shares));
}

}  // namespace rehearse::sim

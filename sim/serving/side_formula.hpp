// Pools that share a role by formula: how requests are spread over them, and what their means come to.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/serving/hand_over_formula.hpp"
#include "sim/serving/length_buckets.hpp"
#include "sim/serving/pool_formula.hpp"
#include "sim/serving/router.hpp"

namespace rehearse::sim {

struct SideState {
  std::vector<PoolState> pools;
  std::vector<double> shares;                                             // of the requests
  double ttft_s = 0, queue_s = 0, prefill_s = 0, tpot_s = 0, pass_s = 0;  // means over requests
  double ttft_high_s = 0, tpot_high_s = 0;                                // at the load's percentile of all requests
  [[nodiscard]] double mean(double PoolState::*what) const;
};

// put_held of every pool, at a rate of all requests (pool_formula.hpp).
void put_held(SideState& prompts, std::span<const PoolFormula> pools, double rate_per_s, const MeanHandOver& between);

class SideFormula {
 public:
  // All must outlive it. router: a registered name.
  SideFormula(std::span<const PoolDeployment> pools, const LoadMoments& load, std::string_view router);

  // At a rate of all requests. Routers that look at nothing send every instance as many; others send prompts the more where they are
  // computed soonest the busier all are, and caches so that all decode as many (routers that go by them: take as large a share of theirs);
  // so do those of instances of both, where they look at requests or caches. By length each pool has the requests that it takes.
  [[nodiscard]] SideState prompts(double rate_per_s) const {
    return of_all(prompts_by_pool(rate_per_s), [&](const SideFormula& side) { return side.prompts_by_pool(rate_per_s); });
  }
  [[nodiscard]] SideState decoding(double rate_per_s) const {
    return of_all(decoding_by_pool(rate_per_s), [&](const SideFormula& side) { return side.decoding_by_pool(rate_per_s); });
  }
  // Instances among which requests are spread evenly.
  [[nodiscard]] int turns() const;
  // Prompts and decoding on the same instances.
  [[nodiscard]] SideState together(double rate_per_s) const {
    return of_all(together_by_pool(rate_per_s), [&](const SideFormula& side) { return side.together_by_pool(rate_per_s); });
  }
  // The highest rate of all requests that instances of both carry, the wait for room apart; and what a pool's instance gets of a rate.
  [[nodiscard]] double carried_per_s() const;
  [[nodiscard]] std::vector<double> each_per_s(double rate_per_s) const;
  // So many requests in all, for each of which that ends another one comes: `at` a pool with so many on each of its instances.
  using AtClients = std::function<PoolState(const PoolFormula& pool, double each)>;
  [[nodiscard]] SideState of_clients(double clients, const AtClients& at) const;
  // So many at once, and nobody after them.
  [[nodiscard]] SideState at_once(double requests, const AtClients& at) const;

  [[nodiscard]] const std::vector<PoolFormula>& pools() const { return pools_; }  // each with the load that it takes
  [[nodiscard]] double request_s() const;                                         // of the slowest engine
  [[nodiscard]] double least_prompt_s() const;                                    // of the fastest pool, of a mean one of its prompts alone
  [[nodiscard]] double prompts_per_s() const;                                     // at most

 private:
  [[nodiscard]] SideState state_of(std::vector<PoolState> pools, std::vector<double> shares) const;
  // With the high times of all requests, where unlike pools share them; `again`: the same at another percentile.
  [[nodiscard]] SideState of_all(SideState state, const std::function<SideState(const SideFormula&)>& again) const;
  [[nodiscard]] SideState prompts_by_pool(double rate_per_s) const;
  [[nodiscard]] SideState decoding_by_pool(double rate_per_s) const;
  [[nodiscard]] SideState together_by_pool(double rate_per_s) const;
  using OfBucket = std::function<SideState(const SideFormula& side, double rate_per_s)>;
  [[nodiscard]] SideState by_buckets(double rate_per_s, const OfBucket& of) const;
  [[nodiscard]] std::vector<double> weights() const;
  [[nodiscard]] std::vector<double> equal_shares() const;  // of the instances
  [[nodiscard]] std::vector<double> spread(double clients) const;
  void gather(double clients, const AtClients& at, std::vector<double>& each) const;
  [[nodiscard]] std::vector<double> shares_together(double rate_per_s) const;
  [[nodiscard]] double carried_of(std::size_t pool) const;
  [[nodiscard]] double pages(std::size_t pool) const;
  [[nodiscard]] int own_turns() const;  // of static batches
  [[nodiscard]] PoolState prompts_of(std::size_t pool, double rate_per_s, bool one_queue) const;
  [[nodiscard]] bool alike() const;  // prompts take as long in all pools
  [[nodiscard]] bool looks() const { return goes_by_ != GoesBy::chance && goes_by_ != GoesBy::turns; }
  [[nodiscard]] double instances(std::size_t pool) const { return pools_[pool].pool().pool->instances; }

  std::span<const PoolDeployment> deployments_;
  std::vector<std::unique_ptr<const LengthBucket>> buckets_;  // none: the router does not go by length
  std::vector<PoolFormula> pools_;
  const LoadMoments& load_;
  std::string_view router_;
  GoesBy goes_by_;
};

}  // namespace rehearse::sim

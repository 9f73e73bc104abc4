#include "sim/serving/tune_near.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/serving/tune_confirm.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t tried_at_once = 4;
constexpr double of_rounding = 1 - 1e-9;

auto cost_order(const TunedDeployment& one) { return std::tuple(one.cost_per_s, one.gpus); }

// With so many instances more, or less, of one of its pools; its times are not known.
TunedDeployment with_more(const TunedDeployment& one, std::size_t at, int more) {
  TunedDeployment out = one;
  Pool& pool = out.pools[at];
  pool.instances += more;
  out.gpus += more * pool.plan.gpus();
  out.cost_per_s += more * pool.plan.gpus() * pool.price_per_s;
  out.simulated.reset();
  return out;
}

class Settling {
 public:
  Settling(const TuneSides& sides, const TuneFormula& formula, ServingTuning& tuning)
      : sides_(sides), formula_(formula), out_(tuning), best_(tuning.best[*tuning.chosen]), left_(2 * sides.spec.confirm) {
    for (const TunedDeployment& one : tuning.best) seen_.insert(pools_key(one));
  }

  void run(const std::vector<TunedDeployment>& looser) {
    for (const TunedDeployment& one : near(looser)) add(one);
    const std::vector<TunedDeployment> known = out_.best;
    for (const TunedDeployment& one : known) {
      if (one.simulated) go_on_from(one);
    }
    while (left_ > 0 && try_some()) continue;
    if (best_.simulated && pools_key(best_) != pools_key(out_.best[*out_.chosen])) choose();
  }

 private:
  [[nodiscard]] bool is_cheaper(const TunedDeployment& one) const { return one.cost_per_s < best_.cost_per_s * of_rounding; }
  void add(const TunedDeployment& one) {
    if (is_cheaper(one) && seen_.insert(pools_key(one)).second) queue_.push_back(one);
  }

  // By how much it is off the promise by formula; infinite: it is beyond its capacity.
  [[nodiscard]] double off_by(TunedDeployment& one) const {
    const PromisedTimes times = formula_.of(one);
    one.ttft_s = times.ttft_s;
    one.tpot_s = times.tpot_s;
    if (!std::isfinite(times.ttft_s)) return INFINITY;
    return std::max(times.ttft_s / sides_.ttft_within_s() - 1,
                    (times.tpot_s / sides_.tpot_within_s() - 1) * (looser_ttft - 1) / (looser_tpot - 1));
  }
  [[nodiscard]] std::vector<TunedDeployment> near(std::vector<TunedDeployment> all) const {
    std::erase_if(all, [&](const TunedDeployment& one) { return !is_cheaper(one); });
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(off_by(all[i]), i);
    std::ranges::sort(order);
    std::vector<TunedDeployment> out;
    for (const auto& [off, i] : order) {
      if (std::isfinite(off) && out.size() < static_cast<std::size_t>(sides_.spec.confirm)) out.push_back(all[i]);
    }
    return out;
  }

  // What to try next to one that was simulated.
  void go_on_from(const TunedDeployment& one) {
    const ServingResult& result = *one.simulated;
    const bool late = result.promised_ttft_s > sides_.ttft_within_s(), slow = result.promised_tpot_s > sides_.tpot_within_s();
    for (std::size_t i = 0; i < one.pools.size(); ++i) {
      const Role role = one.pools[i].role;
      if (result.kept) {
        if (one.pools[i].instances > 1) add(with_more(one, i, -1));
      } else if (role == Role::both || late == slow || (role == Role::prefill ? late : slow)) {
        const TunedDeployment more = with_more(one, i, 1);
        if (is_cheaper(more) && formula_.holds(more)) add(more);
      }
    }
  }

  // The cheapest few; whether there were any.
  bool try_some() {
    std::erase_if(queue_, [&](const TunedDeployment& one) { return !is_cheaper(one); });
    std::ranges::stable_sort(queue_, {}, cost_order);
    const std::size_t number = std::min({queue_.size(), tried_at_once, static_cast<std::size_t>(left_)});
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(number);
    ServingTuning tried;
    tried.goals = out_.goals;
    tried.rate_per_s = out_.rate_per_s;
    tried.best.assign(std::move_iterator(queue_.begin()), std::move_iterator(end));
    queue_.erase(queue_.begin(), end);
    ServingTuneSpec all = sides_.spec;
    all.confirm = static_cast<int>(number);
    all.confirms_all = true;
    if (number > 0) confirm_tuned(sides_.job, all, tried, [](double) {});
    left_ -= static_cast<int>(number);
    out_.near_misses += static_cast<int>(number);
    if (tried.chosen) best_ = tried.best[*tried.chosen];
    for (const TunedDeployment& one : tried.best) go_on_from(one);
    return number > 0;
  }

  void choose() {
    const PromisedTimes times = formula_.of(best_);
    best_.ttft_s = times.ttft_s;
    best_.tpot_s = times.tpot_s;
    if (!formula_.keeps(times)) out_.notes.push_back("the chosen deployment misses the promise by formula, and keeps it when simulated");
    const auto at = std::ranges::upper_bound(out_.best, cost_order(best_), {}, cost_order);
    out_.chosen = static_cast<std::size_t>(at - out_.best.begin());
    out_.best.insert(at, best_);
  }

  const TuneSides& sides_;
  const TuneFormula& formula_;
  ServingTuning& out_;
  TunedDeployment best_;
  int left_;  // simulations
  std::set<PoolsKey> seen_;
  std::vector<TunedDeployment> queue_;
};

}  // namespace

void settle_by_simulation(const TuneSides& sides, const TuneFormula& formula, const std::vector<TunedDeployment>& looser,
                          ServingTuning& tuning) {
  Settling(sides, formula, tuning).run(looser);
}

}  // namespace rehearse::sim

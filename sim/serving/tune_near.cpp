#include "sim/serving/tune_near.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "config/quantity.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/tune_confirm.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t tried_at_once = 4;
constexpr double of_rounding = 1 - 1e-9;
constexpr int many_instances = 10;  // of so many one more is hardly more

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

// What is to be simulated, and how far off the promise that is which led to it.
struct Attempt {
  double off = 0;
  TunedDeployment deployment;
};

class Settling {
 public:
  Settling(const TuneSides& sides, const TuneFormula& formula, ServingTuning& tuning)
      : sides_(sides), formula_(formula), out_(tuning), left_(2 * sides.spec.confirm) {
    if (tuning.chosen) best_ = tuning.best[*tuning.chosen];
    for (const TunedDeployment& one : tuning.best) seen_.insert(pools_key(one));
  }

  void run(const std::vector<TunedDeployment>& looser) {
    for (const Attempt& one : near(looser)) add(one);
    const std::vector<TunedDeployment> known = out_.best;
    for (const TunedDeployment& one : known) {
      if (one.simulated) go_on_from(one);
    }
    while (left_ > 0 && try_some()) continue;
    if (!best_) return say_nearest();
    if (!out_.chosen || pools_key(*best_) != pools_key(out_.best[*out_.chosen])) choose();
  }

 private:
  [[nodiscard]] bool is_cheaper(const TunedDeployment& one) const { return !best_ || one.cost_per_s < best_->cost_per_s * of_rounding; }
  void add(const Attempt& one) {
    if (is_cheaper(one.deployment) && seen_.insert(pools_key(one.deployment)).second) queue_.push_back(one);
  }

  // By how much times are off the promise; infinite: it is beyond its capacity.
  [[nodiscard]] double off_by(double ttft_s, double tpot_s) const {
    const auto over = [](double time_s, double within_s) { return std::isfinite(within_s) ? time_s / within_s - 1 : -1; };
    return std::max(over(ttft_s, sides_.ttft_within_s()), over(tpot_s, sides_.tpot_within_s()) * (looser_ttft - 1) / (looser_tpot - 1));
  }
  [[nodiscard]] double off_by(const ServingResult& simulated) const { return off_by(simulated.promised_ttft_s, simulated.promised_tpot_s); }
  [[nodiscard]] std::vector<Attempt> near(const std::vector<TunedDeployment>& all) const {
    std::vector<Attempt> out;
    for (const TunedDeployment& one : all) {
      if (!is_cheaper(one)) continue;
      const PromisedTimes times = formula_.of(one);
      if (!std::isfinite(times.ttft_s) || !std::isfinite(times.tpot_s)) continue;
      out.push_back({off_by(times.ttft_s, times.tpot_s), one});
      out.back().deployment.ttft_s = times.ttft_s;
      out.back().deployment.tpot_s = times.tpot_s;
    }
    std::ranges::stable_sort(out, {}, &Attempt::off);
    if (out.size() > static_cast<std::size_t>(sides_.spec.confirm)) out.resize(static_cast<std::size_t>(sides_.spec.confirm));
    return out;
  }

  // So many instances more are tried: while none keeps the promise that may be far.
  [[nodiscard]] int step(const Pool& pool) const { return best_ ? 1 : 1 + pool.instances / many_instances; }

  // What to try next to one that was simulated.
  void go_on_from(const TunedDeployment& one) {
    const ServingResult& result = *one.simulated;
    const double off = off_by(result);
    if (!result.kept && off < nearest_off_) {
      nearest_off_ = off;
      nearest_ = one;
    }
    const bool late = result.promised_ttft_s > sides_.ttft_within_s(), slow = result.promised_tpot_s > sides_.tpot_within_s();
    for (std::size_t i = 0; i < one.pools.size(); ++i) {
      const Role role = one.pools[i].role;
      if (result.kept) {
        if (one.pools[i].instances > 1) add({off, with_more(one, i, -1)});
      } else if (role == Role::both || late == slow || (role == Role::prefill ? late : slow)) {
        const TunedDeployment more = with_more(one, i, step(one.pools[i]));
        if (is_cheaper(more) && formula_.holds(more)) add({off, more});
      }
    }
  }

  // The next few, from the cheapest on: while none keeps the promise those that come after the nearest.
  [[nodiscard]] std::vector<TunedDeployment> next_few() {
    std::erase_if(queue_, [&](const Attempt& one) { return !is_cheaper(one.deployment); });
    std::ranges::stable_sort(queue_, {}, [](const Attempt& one) { return cost_order(one.deployment); });
    if (!best_) std::ranges::stable_sort(queue_, {}, &Attempt::off);
    const std::size_t number = std::min({queue_.size(), tried_at_once, static_cast<std::size_t>(left_)});
    std::vector<TunedDeployment> out;
    for (std::size_t i = 0; i < number; ++i) out.push_back(std::move(queue_[i].deployment));
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(number));
    std::ranges::stable_sort(out, {}, cost_order);
    return out;
  }
  // Whether there were any.
  bool try_some() {
    ServingTuning tried;
    tried.goals = out_.goals;
    tried.rate_per_s = out_.rate_per_s;
    tried.best = next_few();
    if (tried.best.empty()) return false;
    const int number = static_cast<int>(tried.best.size());
    ServingTuneSpec all = sides_.spec;
    all.confirm = number;
    all.confirms_all = true;
    confirm_tuned(sides_.job, all, tried, [](double) {});
    left_ -= number;
    out_.near_misses += number;
    if (tried.chosen) best_ = tried.best[*tried.chosen];
    for (const TunedDeployment& one : tried.best) go_on_from(one);
    return true;
  }

  void choose() {
    const PromisedTimes times = formula_.of(*best_);
    best_->ttft_s = times.ttft_s;
    best_->tpot_s = times.tpot_s;
    if (!formula_.keeps(times)) out_.notes.push_back("the chosen deployment misses the promise by formula, and keeps it when simulated");
    const auto at = std::ranges::upper_bound(out_.best, cost_order(*best_), {}, cost_order);
    out_.chosen = static_cast<std::size_t>(at - out_.best.begin());
    out_.best.insert(at, *best_);
  }

  void say_nearest() {
    if (!nearest_ || out_.near_misses == 0) return;
    std::vector<std::string> pools;
    for (const Pool& pool : nearest_->pools)
      pools.push_back(fmt::format("{} x tp {} ({})", pool.instances, pool.plan.tp, role_names().of(pool.role)));
    const double token_s = nearest_->simulated->promised_tpot_s;
    const auto text = [](double seconds) { return config::human_quantity(seconds, config::Dimension::time); };
    out_.notes.push_back(
        fmt::format("{} deployments beside what the formula found were simulated too; the nearest, {}, has a first token within {}{}",
                    out_.near_misses, fmt::join(pools, ", "), text(nearest_->simulated->promised_ttft_s),
                    token_s >= 0 ? " and a further one within " + text(token_s) : ""));
  }

  const TuneSides& sides_;
  const TuneFormula& formula_;
  ServingTuning& out_;
  std::optional<TunedDeployment> best_, nearest_;  // that keeps the promise, and that misses it by the least
  double nearest_off_ = INFINITY;
  int left_;  // simulations
  std::set<PoolsKey> seen_;
  std::vector<Attempt> queue_;
};

}  // namespace

void settle_by_simulation(const TuneSides& sides, const TuneFormula& formula, const std::vector<TunedDeployment>& looser,
                          ServingTuning& tuning) {
  Settling(sides, formula, tuning).run(looser);
}

}  // namespace rehearse::sim

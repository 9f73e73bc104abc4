#include "sim/serving/pool_cover.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace rehearse::sim {
namespace {

// The most that up to so many GPUs of a part carry in a role, and with which plans: an unbounded knapsack.
class PartRates {
 public:
  PartRates(const CoverProblem& problem, std::size_t role, std::size_t part) : problem_(problem) {
    const auto gpus = static_cast<std::size_t>(problem.inventory[part]);
    rates_.push_back(0);
    last_.push_back(none);
    for (std::size_t held = 1; held <= gpus && rates_.back() < problem.rate_per_s; ++held) {
      rates_.push_back(rates_.back());  // one GPU stays idle
      last_.push_back(none);
      for (std::size_t i = 0; i < problem.plans.size(); ++i) {
        const CoverPlan& plan = problem.plans[i];
        const auto takes = static_cast<std::size_t>(plan.gpus);
        if (plan.role != role || plan.part != part || takes > held) continue;
        const double rate = rates_[held - takes] + plan.rate_per_s;
        if (rate <= rates_[held]) continue;
        rates_[held] = rate;
        last_[held] = i;
      }
    }
  }

  [[nodiscard]] double most() const { return rates_.back(); }
  [[nodiscard]] int gpus() const { return static_cast<int>(rates_.size()) - 1; }  // more are never needed
  // The fewest GPUs that carry so much; nothing: all of them do not.
  [[nodiscard]] std::optional<int> fewest(double rate_per_s) const {
    const auto enough = std::ranges::lower_bound(rates_, rate_per_s);
    if (enough == rates_.end()) return {};
    return static_cast<int>(enough - rates_.begin());
  }
  [[nodiscard]] double of(int gpus) const { return rates_[static_cast<std::size_t>(gpus)]; }
  void add_instances(int gpus, std::vector<int>& numbers) const {
    auto held = static_cast<std::size_t>(gpus);
    while (held > 0) {
      if (last_[held] == none) {
        --held;
        continue;
      }
      ++numbers[last_[held]];
      held -= static_cast<std::size_t>(problem_.plans[last_[held]].gpus);
    }
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  const CoverProblem& problem_;
  std::vector<double> rates_;      // [GPUs], never falling
  std::vector<std::size_t> last_;  // plan of the instance that was added last; none: a GPU is idle
};

// GPUs of each part that carry the rate in one role.
struct Division {
  std::vector<int> gpus;
  double cost_per_s = 0;
  int sum = 0;
};

auto division_order(const Division& division) { return std::tuple(division.cost_per_s, division.sum); }

class CoveredRole {
 public:
  CoveredRole(const CoverProblem& problem, std::size_t role) : problem_(problem) {
    for (std::size_t part = 0; part < problem.inventory.size(); ++part) rates_.emplace_back(problem, role, part);
    most_behind_.assign(rates_.size() + 1, 0);
    for (std::size_t part = rates_.size(); part > 0; --part) most_behind_[part - 1] = most_behind_[part] + rates_[part - 1].most();
    divide({}, problem.rate_per_s);
    std::ranges::stable_sort(divisions_, {}, division_order);
  }

  [[nodiscard]] const std::vector<Division>& divisions() const { return divisions_; }
  void add_instances(const Division& division, std::vector<int>& numbers) const {
    for (std::size_t part = 0; part < rates_.size(); ++part) rates_[part].add_instances(division.gpus[part], numbers);
  }

 private:
  // Every number of GPUs of the first parts that makes a difference, and of the last one as many as are left to carry.
  void divide(std::vector<int> gpus, double left_per_s) {
    const std::size_t part = gpus.size();
    if (left_per_s > most_behind_[part] * (1 + of_rounding)) return;
    const PartRates& rates = rates_[part];
    if (part + 1 == rates_.size()) {
      const auto fewest = left_per_s > 0 ? rates.fewest(left_per_s * (1 - of_rounding)) : std::optional(0);
      if (fewest) {
        gpus.push_back(*fewest);
        keep(std::move(gpus));
      }
      return;
    }
    for (int held = 0; held <= rates.gpus(); ++held) {
      if (held > 0 && rates.of(held) == rates.of(held - 1)) continue;
      std::vector<int> next = gpus;
      next.push_back(held);
      divide(std::move(next), left_per_s - rates.of(held));
      if (rates.of(held) >= left_per_s) break;
    }
  }

  void keep(std::vector<int> gpus) {
    Division division{std::move(gpus), 0, 0};
    for (std::size_t part = 0; part < division.gpus.size(); ++part) division.cost_per_s += division.gpus[part] * problem_.price_per_s[part];
    division.sum = std::accumulate(division.gpus.begin(), division.gpus.end(), 0);
    divisions_.push_back(std::move(division));
  }

  static constexpr double of_rounding = 1e-12;  // sums of rates in another order
  const CoverProblem& problem_;
  std::vector<PartRates> rates_;
  std::vector<double> most_behind_;  // that this part and those behind it carry
  std::vector<Division> divisions_;
};

bool held_together(const CoverProblem& problem, const Division& one, const Division& other) {
  for (std::size_t part = 0; part < problem.inventory.size(); ++part) {
    if (one.gpus[part] + other.gpus[part] > problem.inventory[part]) return false;
  }
  return true;
}

std::optional<Cover> of_one_role(const CoverProblem& problem, const CoveredRole& role) {
  if (role.divisions().empty()) return {};
  const Division& best = role.divisions().front();
  Cover cover{std::vector<int>(problem.plans.size()), best.cost_per_s, best.sum};
  role.add_instances(best, cover.numbers);
  return cover;
}

std::optional<Cover> of_two_roles(const CoverProblem& problem, const CoveredRole& first, const CoveredRole& second) {
  std::optional<Cover> best;
  for (const Division& one : first.divisions()) {
    for (const Division& other : second.divisions()) {
      const std::tuple<double, int> order(one.cost_per_s + other.cost_per_s, one.sum + other.sum);
      if (best && order >= std::tuple(best->cost_per_s, best->gpus)) break;
      if (!held_together(problem, one, other)) continue;
      best = Cover{std::vector<int>(problem.plans.size()), std::get<0>(order), std::get<1>(order)};
      first.add_instances(one, best->numbers);
      second.add_instances(other, best->numbers);
      break;
    }
  }
  return best;
}

}  // namespace

std::optional<Cover> cheapest_cover(const CoverProblem& problem) {
  if (problem.inventory.empty()) return {};
  const CoveredRole first(problem, 0);
  return problem.roles == 1 ? of_one_role(problem, first) : of_two_roles(problem, first, CoveredRole(problem, 1));
}

}  // namespace rehearse::sim

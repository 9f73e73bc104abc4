#include "sim/federated/sum_cuts.hpp"

#include <algorithm>
#include <optional>

#include "sim/federated/enumeration.hpp"

namespace rehearse::federated {
namespace {

constexpr double sum_rounding = 1e-12;

// What the sum depends on: of a choice, or of a mixture of several.
struct Aggregate {
  double alpha_s = 0;
  PerResource roots{};

  void add(const Option& option, double sign = 1) {
    alpha_s += sign * option.alpha_s;
    for (int i = 0; i < max_resources; ++i) roots[i] += sign * option.root[i];
  }
  [[nodiscard]] double sum_s() const { return alpha_s + dot(roots, roots); }
};

double cost_at(const Option& option, const PerResource& roots) { return option.alpha_s + 2 * dot(option.root, roots); }

std::uint32_t response(std::span<const Option> options, const PerResource& roots) {
  const auto best = std::ranges::min_element(options, {}, [&](const Option& option) { return cost_at(option, roots); });
  return static_cast<std::uint32_t>(best - options.begin());
}

class SumChooser {
 public:
  SumChooser(const Problem& problem, const CutSearch& search) : problem_(problem), search_(search) {}

  ChosenCuts run() {
    descend(alone_best(problem_));
    if (!best_.proven) improve_bound();
    if (!best_.proven && best_.bound_s < best_.round_s * (1 - search_.gap)) enumerate_rest();
    best_.bound_s = best_.proven ? best_.round_s : std::min(best_.bound_s, best_.round_s);
    return best_;
  }

 private:
  [[nodiscard]] Aggregate aggregate(const Cuts& cuts) const {
    Aggregate all;
    for (std::size_t n = 0; n < cuts.size(); ++n) all.add(problem_.of(n)[cuts[n]]);
    return all;
  }
  [[nodiscard]] Cuts responses(const PerResource& roots) const {
    Cuts cuts;
    for (std::size_t n = 0; n < problem_.devices(); ++n) cuts.push_back(response(problem_.of(n), roots));
    return cuts;
  }

  // One device at a time takes what shortens the sum most; ends where none does.
  void descend(Cuts cuts) {
    Aggregate now = aggregate(cuts);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t n = 0; n < cuts.size(); ++n) moved |= improve(n, cuts, now);
      ++best_.solves;
    }
    if (!best_.cuts.empty() && now.sum_s() >= best_.round_s) return;
    best_.round_s = aggregate(cuts).sum_s();
    best_.cuts = cuts;
    best_.proven = is_fixed_point(cuts, now.roots);
  }
  bool improve(std::size_t device, Cuts& cuts, Aggregate& now) const {
    const std::span<const Option> options = problem_.of(device);
    const double before_s = now.sum_s();
    Aggregate others = now;
    others.add(options[cuts[device]], -1);
    std::optional<std::uint32_t> best;
    double best_s = before_s * (1 - sum_rounding);
    for (std::uint32_t c = 0; c < options.size(); ++c) {
      Aggregate changed = others;
      changed.add(options[c]);
      if (changed.sum_s() >= best_s) continue;
      best = c;
      best_s = changed.sum_s();
    }
    if (!best) return false;
    cuts[device] = *best;
    now = others;
    now.add(options[*best]);
    return true;
  }
  [[nodiscard]] bool is_fixed_point(const Cuts& cuts, const PerResource& roots) const {
    for (std::size_t n = 0; n < cuts.size(); ++n) {
      const std::span<const Option> options = problem_.of(n);
      if (cost_at(options[response(options, roots)], roots) < cost_at(options[cuts[n]], roots) * (1 - sum_rounding)) return false;
    }
    return true;
  }

  // Frank and Wolfe's method over mixtures of choices, which the bound is exact for.
  void improve_bound() {
    constexpr int most_steps = 300;
    Aggregate mixture = aggregate(best_.cuts);
    for (int step = 0; step < most_steps; ++step) {
      const Cuts cuts = responses(mixture.roots);
      const Aggregate corner = aggregate(cuts);
      const double bound_s = corner.alpha_s + 2 * dot(corner.roots, mixture.roots) - dot(mixture.roots, mixture.roots);
      if (bound_s > best_.bound_s) {
        best_.bound_s = bound_s;
        prices_ = mixture.roots;
      }
      if (best_.bound_s >= best_.round_s * (1 - sum_rounding)) best_.proven = true;
      PerResource way{};
      for (int i = 0; i < max_resources; ++i) way[i] = corner.roots[i] - mixture.roots[i];
      const double length = dot(way, way);
      if (best_.proven || length == 0) return;
      const double slope = corner.alpha_s - mixture.alpha_s + 2 * dot(mixture.roots, way);
      const double go = std::clamp(-slope / (2 * length), 0.0, 1.0);
      if (go == 0) return;
      mixture.alpha_s += go * (corner.alpha_s - mixture.alpha_s);
      for (int i = 0; i < max_resources; ++i) mixture.roots[i] += go * way[i];
    }
  }

  // The sum of any choice is at least its cost at any prices, less their square.
  void enumerate_rest() {
    while (search_.nodes > best_.nodes) {
      std::vector<std::vector<double>> costs(problem_.devices());
      for (std::size_t n = 0; n < problem_.devices(); ++n) {
        for (const Option& option : problem_.of(n)) costs[n].push_back(cost_at(option, prices_));
      }
      std::optional<Cuts> better;
      const double target_s = best_.round_s * (1 - sum_rounding);
      const Enumerated walk = enumerate({.cost = std::move(costs),
                                         .budget = target_s + dot(prices_, prices_),
                                         .nodes = search_.nodes - best_.nodes,
                                         .better = [&](const Cuts& cuts) {
                                           if (aggregate(cuts).sum_s() < target_s) better = cuts;
                                           return better.has_value();
                                         }});
      best_.nodes += walk.nodes;
      best_.proven = walk.complete;
      if (!better) return;
      descend(*better);
      if (best_.proven) return;
    }
  }

  const Problem& problem_;
  const CutSearch& search_;
  ChosenCuts best_;
  PerResource prices_{};
};

}  // namespace

double least_sum_s(std::span<const Option> chosen) {
  Aggregate all;
  for (const Option& option : chosen) all.add(option);
  return all.sum_s();
}

std::vector<PerResource> shares_of_least_sum(std::span<const Option> chosen) {
  Aggregate all;
  for (const Option& option : chosen) all.add(option);
  std::vector<PerResource> shares(chosen.size());
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    for (int i = 0; i < max_resources; ++i) shares[n][i] = all.roots[i] > 0 ? chosen[n].root[i] / all.roots[i] : 0;
  }
  return shares;
}

ChosenCuts choose_cuts_for_sum(const Problem& problem, const CutSearch& search) { return SumChooser(problem, search).run(); }

}  // namespace rehearse::federated

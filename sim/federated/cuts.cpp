#include "sim/federated/cuts.hpp"

#include <algorithm>
#include <optional>

#include "sim/federated/descent.hpp"
#include "sim/federated/enumeration.hpp"
#include "sim/federated/load_matrix.hpp"

namespace rehearse::federated {
namespace {

constexpr double rounding = 1e-12;

class Chooser {
 public:
  Chooser(const Problem& problem, const CutSearch& search) : problem_(problem), search_(search) {}

  ChosenCuts run() {
    from(alone_best(problem_));
    if (best_.proven) return finished();
    improve_bound();
    if (best_.proven || near_enough()) return finished();
    from(bound_.cuts);
    if (best_.proven || near_enough()) return finished();
    enumerate_rest();
    return finished();
  }

 private:
  // Few options: nothing is left undone.
  [[nodiscard]] double enough() const {
    constexpr std::size_t few = 20'000;
    return problem_.options.size() <= few ? rounding : search_.gap;
  }
  [[nodiscard]] bool near_enough() const { return best_.bound_s >= best_.round_s * (1 - enough()); }

  void from(const Cuts& start) {
    const Descended found = descend(problem_, start, enough());
    best_.solves += found.solves;
    if (!best_.cuts.empty() && found.at.round_s >= best_.round_s) return;
    best_.cuts = found.cuts;
    best_.round_s = found.at.round_s;
    best_.proven = found.fixed_point;
    at_ = found.at;
  }

  void improve_bound() {
    constexpr PerResource alike{0.577, 0.577, 0.577};  // where no resource has a price: a device alone sets the round
    bound_ = price_bound(problem_, best_.round_s, best_.round_s * (1 - enough()), at_.slope > 0 ? at_.root_price : alike);
    best_.bound_s = bound_.bound_s;
    best_.proven = best_.bound_s >= best_.round_s * (1 - rounding);
  }

  // A choice with a shorter round has a load matrix with a radius below 1 at the present deadline, so that at any root prices v of length 1
  // its demands cost less than 1 there.
  void enumerate_rest() {
    while (search_.nodes > best_.nodes) {
      std::optional<Cuts> better;
      const Enumerated walk =
          enumerate({.cost = costs(), .budget = 1, .nodes = search_.nodes - best_.nodes, .better = [&](const Cuts& cuts) {
                       if (has_room(cuts)) better = cuts;
                       return better.has_value();
                     }});
      best_.nodes += walk.nodes;
      if (!better) {
        best_.proven = walk.complete;
        return;
      }
      from(*better);
      if (best_.proven) return;
    }
  }

  [[nodiscard]] std::vector<std::vector<double>> costs() const {
    std::vector<std::vector<double>> costs(problem_.devices());
    for (std::size_t n = 0; n < problem_.devices(); ++n) {
      for (const Option& option : problem_.of(n)) costs[n].push_back(cost_of(option, best_.round_s, bound_.root_price));
    }
    return costs;
  }

  [[nodiscard]] bool has_room(const Cuts& cuts) const {
    const double deadline_s = best_.round_s * (1 - rounding);
    LoadMatrix load;
    for (std::size_t n = 0; n < cuts.size(); ++n) {
      const Option& option = problem_.of(n)[cuts[n]];
      if (option.alpha_s >= deadline_s) return false;
      load.add(option.root, 1 / (deadline_s - option.alpha_s));
    }
    return radius_below_one(load);
  }

  ChosenCuts finished() {
    if (best_.proven) best_.bound_s = best_.round_s;
    best_.bound_s = std::min(best_.bound_s, best_.round_s);
    return best_;
  }

  const Problem& problem_;
  const CutSearch& search_;
  ChosenCuts best_;
  Deadline at_;
  PriceBound bound_;
};

}  // namespace

ChosenCuts choose_cuts(const Problem& problem, const CutSearch& search) { return Chooser(problem, search).run(); }

}  // namespace rehearse::federated

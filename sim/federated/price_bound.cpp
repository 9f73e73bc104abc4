#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/federated/cuts.hpp"
#include "sim/federated/price_polygon.hpp"

namespace rehearse::federated {
namespace {

// The cheapest demands of all devices at a deadline and prices, cuts free.
struct Demand {
  double cost = 0;       // 1 where the prices are a bound's
  double slope = 0;      // -d cost / dT while no device changes its cut
  PerResource amount{};  // of each resource
};

Demand demand_at(const Problem& problem, double deadline_s, const PerResource& v) {
  Demand out;
  for (std::size_t n = 0; n < problem.devices(); ++n) {
    const Response best = best_response(problem.of(n), deadline_s, v);
    if (!best.exists) return {.cost = std::numeric_limits<double>::infinity()};
    out.cost += best.cost;
    out.slope += best.cost / best.left_s;
    const PerResource& root = problem.of(n)[best.option].root;
    const double scale = dot(root, v) / best.left_s;
    for (int i = 0; i < max_resources; ++i) out.amount[i] += root[i] * scale;
  }
  for (int i = 0; i < max_resources; ++i) out.amount[i] = v[i] > 0 ? out.amount[i] / v[i] : 0;
  return out;
}

struct Root {
  double bound_s = 0;  // the cheapest demands cost at least 1 here: no choice of cuts is faster
  Demand demand;       // at the last deadline looked at
};

// The T at which the cheapest demands cost 1, from below: Newton's method on 1 / cost with the best responses of each step.
Root least_deadline_at(const Problem& problem, const PerResource& v, double from_s, double least_s) {
  Root out{.bound_s = least_s, .demand = {}};
  double deadline_s = from_s;
  constexpr int most_steps = 60;
  for (int step = 0; step < most_steps; ++step) {
    out.demand = demand_at(problem, deadline_s, v);
    if (out.demand.cost >= 1) out.bound_s = std::max(out.bound_s, deadline_s);
    if (!std::isfinite(out.demand.cost) || out.demand.slope <= 0) break;
    const double step_s = out.demand.cost * (out.demand.cost - 1) / out.demand.slope;
    const bool arrived = std::abs(step_s) <= 1e-14 * deadline_s;
    if (arrived && out.demand.cost >= 1) break;
    const double next_s = std::max(deadline_s + (arrived ? -4e-15 * deadline_s : step_s), least_s);
    if (next_s == deadline_s) break;
    deadline_s = next_s;
  }
  return out;
}

std::vector<int> used_resources(const Problem& problem) {
  std::vector<int> used;
  for (int i = 0; i < max_resources; ++i) {
    if (std::ranges::any_of(problem.options, [i](const Option& option) { return option.root[i] > 0; })) used.push_back(i);
  }
  return used;
}

PerResource roots_of(const PerResource& prices) {
  PerResource v{};
  for (int i = 0; i < max_resources; ++i) v[i] = std::sqrt(std::max(0.0, prices[i]));
  return v;
}

Cuts responses(const Problem& problem, double deadline_s, const PerResource& v) {
  Cuts cuts;
  for (std::size_t n = 0; n < problem.devices(); ++n) cuts.push_back(best_response(problem.of(n), deadline_s, v).option);
  return cuts;
}

}  // namespace

PriceBound price_bound(const Problem& problem, double known_s, double enough_s, const PerResource& start) {
  const double least_s = slowest_alone_s(problem);
  PriceBound out{.bound_s = least_s, .root_price = start, .cuts = {}};
  const auto look = [&](const PerResource& v) {
    const Root root = least_deadline_at(problem, v, std::max(known_s, least_s), least_s);
    if (root.bound_s > out.bound_s) {
      out.bound_s = root.bound_s;
      out.root_price = v;
    }
    return root.demand.amount;
  };
  look(start);
  PricePolygon polygon(used_resources(problem));
  constexpr int most_cuts = 120;
  constexpr double narrow = 1e-11;
  const bool prices_differ = polygon.extent() > 0;
  for (int i = 0; prices_differ && i < most_cuts && out.bound_s < enough_s && polygon.extent() > narrow; ++i) {
    const PerResource centre = polygon.centre();
    polygon.keep_above(centre, look(roots_of(centre)));
  }
  out.cuts = responses(problem, known_s, out.root_price);
  return out;
}

}  // namespace rehearse::federated

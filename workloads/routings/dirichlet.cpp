// Popularity drawn from a symmetric Dirichlet distribution for every layer, micro-batch and step: by its concentration (the smaller, the
// more uneven), or by the load-balancing loss that it has in the mean.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/random.hpp"
#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

// A Gamma(shape, 1) variate, shape >= 1: Marsaglia and Tsang 2000, with their squeeze, which accepts nothing that the logarithms would not.
double gamma_variate(double shape, config::Random& random) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), root = 1 + c * x, v = root * root * root;
    if (v <= 0) continue;
    const double drawn = random.uniform(), square = x * x;
    if (drawn < 1 - 0.0331 * square * square || std::log(drawn) < 0.5 * square + d - d * v + d * std::log(v)) return d * v;
  }
}

// Below 1 by their boost, in logarithms since it may underflow, and against the largest.
void draw_boosted(double shape, config::Random& random, std::vector<double>& variates) {
  for (double& variate : variates) {
    const double boosted = std::log(gamma_variate(shape + 1, random));  // drawn first by every compiler
    variate = boosted + std::log(random.uniform()) / shape;
  }
  const double largest = std::ranges::max(variates);
  for (double& variate : variates) variate = std::exp(variate - largest);
}

std::vector<double> drawn_shares(double concentration, int experts, config::Random random) {
  std::vector<double> shares(static_cast<std::size_t>(experts));
  if (concentration < 1) {
    draw_boosted(concentration, random, shares);
  } else {
    for (double& share : shares) share = gamma_variate(concentration, random);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

class Dirichlet final : public Routing {
 public:
  [[nodiscard]] std::vector<double> shares(const ExpertPlan& plan, int experts, const RoutingPlace& place) const override {
    return drawn_shares(plan.skew, experts, config::Random(seed_of(plan, place)));
  }
};

// The loss that trainers log is E sum(f_i p_i), of the experts' shares of tokens f and of probability p; where both are alike it is E times
// the sum of squared shares, whose mean is E (c + 1) / (E c + 1) with the concentration c.
class LoadBalancingLoss final : public Routing {
 public:
  [[nodiscard]] std::vector<double> shares(const ExpertPlan& plan, int experts, const RoutingPlace& place) const override {
    const double concentration = (experts - plan.skew) / (experts * (plan.skew - 1));
    return drawn_shares(concentration, experts, config::Random(seed_of(plan, place)));
  }
};

const RoutingRegistry::Registration<Dirichlet> dirichlet_registration("dirichlet");
const RoutingRegistry::Registration<LoadBalancingLoss> load_balancing_loss_registration("load_balancing_loss");

}  // namespace
}  // namespace rehearse::workloads

// Popularity drawn from a symmetric Dirichlet distribution for every layer, micro-batch and step: by its concentration (the smaller, the
// more uneven), or by the load-balancing loss that it has in the mean.
#include <algorithm>
#include <cmath>

#include "config/random.hpp"
#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

// ln of a Gamma(shape, 1) variate: Marsaglia and Tsang 2000; below 1 by their boost, in logarithms since it may underflow.
double log_gamma_variate(double shape, config::Random& random) {
  if (shape < 1) {
    const double boosted = log_gamma_variate(shape + 1, random);  // drawn first by every compiler
    return boosted + std::log(random.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

std::vector<double> drawn_shares(double concentration, int experts, config::Random random) {
  std::vector<double> shares;
  for (int e = 0; e < experts; ++e) shares.push_back(log_gamma_variate(concentration, random));
  double largest = shares.front();
  for (const double logarithm : shares) largest = std::max(largest, logarithm);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - largest);
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

// Popularity falls with rank r as r^-exponent; which expert has which rank is drawn anew for every layer, micro-batch and step.
#include <cmath>
#include <numeric>
#include <random>

#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

class Zipf final : public Routing {
 public:
  [[nodiscard]] std::vector<double> shares(const ExpertPlan& plan, int experts, const RoutingPlace& place) const override {
    std::vector<std::size_t> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(seed_of(plan, place));
    // Fisher-Yates by hand: std::shuffle differs between libraries, and results must not.
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    const std::vector<double>& by_rank = popularity(order.size(), plan.skew);
    std::vector<double> shares(order.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank) shares[order[rank]] = by_rank[rank];
    return shares;
  }

 private:
  // Shares by popularity rank: the same at every place of a job.
  static const std::vector<double>& popularity(std::size_t experts, double skew) {
    thread_local std::vector<double> shares;
    thread_local double exponent = 0;
    if (shares.size() == experts && exponent == skew) return shares;
    shares.resize(experts);
    exponent = skew;
    for (std::size_t rank = 0; rank < experts; ++rank) shares[rank] = std::pow(static_cast<double>(rank + 1), -skew);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= sum;
    return shares;
  }
};

const RoutingRegistry::Registration<Zipf> zipf_registration("zipf");

}  // namespace
}  // namespace rehearse::workloads

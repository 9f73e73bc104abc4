// As counted: tokens per step, layer, micro-batch and expert out of a file, for each sender or for all of them.
#include <algorithm>
#include <string>
#include <tuple>

#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

class Counts final : public Routing {
 public:
  [[nodiscard]] std::vector<double> shares(const ExpertPlan& plan, int experts, const RoutingPlace& place) const override {
    const int sender = std::max(0, place.sender);
    const auto of = [](const RoutedTokens& row) { return std::tuple(row.step, row.layer, row.microbatch, row.sender); };
    const auto here = std::tuple(place.step, place.layer, place.microbatch, sender);
    const auto first = std::ranges::lower_bound(plan.counts, here, {}, of);
    const auto last = std::ranges::upper_bound(plan.counts, here, {}, of);
    std::vector<double> shares(static_cast<std::size_t>(experts), 0.0);
    double sum = 0;
    for (auto row = first; row != last; ++row) {
      if (row->expert < 0 || row->expert >= experts) continue;
      shares[static_cast<std::size_t>(row->expert)] += row->tokens;
      sum += row->tokens;
    }
    if (sum <= 0) {
      throw config::InputError("the counts have no tokens for step " + std::to_string(place.step) + ", layer " +
                               std::to_string(place.layer) + ", micro-batch " + std::to_string(place.microbatch) +
                               (place.sender >= 0 ? ", sender " + std::to_string(place.sender) : ""));
    }
    for (double& share : shares) share /= sum;
    return shares;
  }
};

const RoutingRegistry::Registration<Counts> counts_registration("counts");

}  // namespace
}  // namespace rehearse::workloads

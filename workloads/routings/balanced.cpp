// Every expert gets the same.
#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

class Balanced final : public Routing {
 public:
  [[nodiscard]] bool even() const override { return true; }
  [[nodiscard]] std::vector<double> shares(const ExpertPlan& /*plan*/, int experts, const RoutingPlace& /*place*/) const override {
    return std::vector<double>(static_cast<std::size_t>(experts), 1.0 / experts);
  }
};

const RoutingRegistry::Registration<Balanced> balanced_registration("balanced");

}  // namespace
}  // namespace rehearse::workloads

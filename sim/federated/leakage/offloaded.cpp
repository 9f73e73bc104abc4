#include "sim/federated/leakage.hpp"

namespace rehearse::federated {
namespace {

// What is offloaded is at risk.
class Offloaded final : public LeakageMeasure {
 public:
  [[nodiscard]] std::string_view about() const override { return "proxy: share of the parameters that are offloaded"; }
  [[nodiscard]] double of(const Cut& /*cut*/, double held_share) const override { return 1 - held_share; }
};
const LeakageRegistry::Registration<Offloaded> offloaded_registration("offloaded");

}  // namespace
}  // namespace rehearse::federated

#include <cmath>

#include "sim/federated/leakage.hpp"

namespace rehearse::federated {
namespace {

// (9) SFL-GA (arXiv 2501.01078) bounds privacy from below by log(1 + client parameters / all parameters); turned into a risk from 1 to 0.
class Parameters final : public LeakageMeasure {
 public:
  [[nodiscard]] std::string_view about() const override { return "proxy: 1 - log2(1 + held / all parameters)"; }
  [[nodiscard]] double of(const Cut& /*cut*/, double held_share) const override { return 1 - std::log2(1 + held_share); }
};
const LeakageRegistry::Registration<Parameters> parameters_registration("parameters");

}  // namespace
}  // namespace rehearse::federated

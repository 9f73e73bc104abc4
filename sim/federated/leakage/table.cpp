#include <fmt/format.h>

#include "sim/federated/leakage.hpp"

namespace rehearse::federated {
namespace {

// Measured by whoever wrote the model file: distance correlation, similarity of a reconstruction, mutual information.
class Measured final : public LeakageMeasure {
 public:
  [[nodiscard]] std::string_view about() const override { return "measured: as the model's units say"; }
  [[nodiscard]] double of(const Cut& cut, double /*held_share*/) const override {
    if (cut.measured_leakage) return *cut.measured_leakage;
    throw config::InputError(fmt::format("leakage.measure is table, and unit '{}' of the model has no leakage", cut.name));
  }
};
const LeakageRegistry::Registration<Measured> measured_registration("table");

}  // namespace
}  // namespace rehearse::federated

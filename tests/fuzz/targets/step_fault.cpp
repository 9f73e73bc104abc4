#include <cmath>

#include "sim/faults/step_faults.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

class StepFault final : public Target {
  void read(const std::string& input) const override {
    const config::Node list = config::Node::load_text(input, "faults.yaml");
    const sim::StepFaults faults = sim::read_step_faults(list, {.places = {.gpus = 64, .gpus_per_node = 8, .rails = 8}, .spines = 4});
    for (const sim::StepFailure& failure : faults.failures) {
      if (!std::isfinite(failure.at_s) || failure.at_s < 0) throw Nonsense(fmt::format("a failure at {} s", failure.at_s));
    }
  }
};

const TargetRegistry::Registration<StepFault> step_fault_registration("step_fault");

}  // namespace
}  // namespace rehearse::fuzz

#include "sim/faults/scenario.hpp"

#include "tests/fuzz/target.hpp"
#include "tests/fuzz/targets/draw.hpp"

namespace rehearse::fuzz {
namespace {

class Scenario final : public Target {
  void read(const std::string& input) const override {
    const sim::FaultContext context{.nodes = 16, .rails = 8, .gpus_per_node = 8, .spines = 4};
    draw(sim::FaultScenario::read(config::Node::load_text(input, "faults.yaml"), context));
  }
};

const TargetRegistry::Registration<Scenario> scenario_registration("scenario");

}  // namespace
}  // namespace rehearse::fuzz

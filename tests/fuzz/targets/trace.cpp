#include "sim/faults/scenario.hpp"

#include "tests/fuzz/target.hpp"
#include "tests/fuzz/targets/draw.hpp"

namespace rehearse::fuzz {
namespace {

class Trace final : public Target {
  void read(const std::string& input) const override {
    const sim::FaultContext context{.nodes = 16, .rails = 8, .gpus_per_node = 8, .spines = 4};
    const std::string path = scratch_file("trace.csv", input);
    draw(sim::FaultScenario::read(config::Node::load_text(path, "job.yaml"), context));
  }
};

const TargetRegistry::Registration<Trace> trace_registration("trace");

}  // namespace
}  // namespace rehearse::fuzz

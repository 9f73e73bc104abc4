#include "sim/cost/gpu.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

class Software final : public Target {
  void read(const std::string& input) const override {
    static_cast<void>(sim::read_software(config::Node::load_text(input, "software.yaml"), "software"));
  }
};

const TargetRegistry::Registration<Software> software_registration("software");

}  // namespace
}  // namespace rehearse::fuzz

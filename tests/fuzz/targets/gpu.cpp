#include "sim/cost/gpu.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

class Gpu final : public Target {
  void read(const std::string& input) const override {
    static_cast<void>(sim::read_gpu(config::Node::load_text(input, "gpu.yaml"), "gpu"));
  }
};

const TargetRegistry::Registration<Gpu> gpu_registration("gpu");

}  // namespace
}  // namespace rehearse::fuzz

#include <cmath>

#include "sim/calibrate/kineto_trace.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

class Kineto final : public Target {
  void read(const std::string& input) const override {
    const sim::KinetoTrace trace = sim::read_kineto(scratch_file("trace.json", input));
    for (const sim::TraceKernel& kernel : trace.kernels) {
      if (!std::isfinite(kernel.start_us) || !(kernel.end_us >= kernel.start_us)) throw Nonsense("a kernel that ends before it begins");
    }
  }
};

const TargetRegistry::Registration<Kineto> kineto_registration("kineto");

}  // namespace
}  // namespace rehearse::fuzz

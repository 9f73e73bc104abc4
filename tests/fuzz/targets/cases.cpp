#include "sim/validate/measured_case.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

class Cases final : public Target {
  void read(const std::string& input) const override {
    for (const sim::MeasuredCase& one : sim::read_cases({scratch_file("cases.yaml", input)})) {
      read_or_refuse(TargetRegistry::get("job"), one.job.to_yaml());
    }
  }
};

const TargetRegistry::Registration<Cases> cases_registration("cases");

}  // namespace
}  // namespace rehearse::fuzz

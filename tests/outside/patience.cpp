// A recovery policy of these tests: whatever fails, as much time is taken as for a lost pod.
#include "sim/job/recovery_policy.hpp"

namespace rehearse::tests {
namespace {

class Patience final : public sim::RecoveryPolicy {
 public:
  [[nodiscard]] sim::Response respond(const sim::Situation& situation, const sim::RecoverySpec& spec) const override {
    sim::Response response = sim::in_place(situation, spec);
    response.time = &sim::time_of(sim::FaultLevel::pod, spec);
    return response;
  }
};

const sim::RecoveryPolicyRegistry::Registration<Patience> patience_registration("patience");

}  // namespace
}  // namespace rehearse::tests

// Restart everything: whatever fails, all processes of the job start again on rescheduled nodes.
#include "sim/job/recovery_policy.hpp"

namespace rehearse::sim {
namespace {

class Restart final : public RecoveryPolicy {
 public:
  [[nodiscard]] Response respond(const Situation& situation, const RecoverySpec& spec) const override {
    Response response;
    response.time = &time_of(FaultLevel::job, spec);
    response.everything = true;
    if (situation.nodes > 0) response.nodes = situation.enough ? Response::Nodes::replace : Response::Nodes::wait;
    return response;
  }
};

const RecoveryPolicyRegistry::Registration<Restart> restart_registration("restart");

}  // namespace
}  // namespace rehearse::sim

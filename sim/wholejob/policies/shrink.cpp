// Elastic: the data-parallel replicas of lost nodes are left out until the nodes are repaired; the others go on with the same global batch.
#include "sim/job/recovery_policy.hpp"

namespace rehearse::sim {
namespace {

class Shrink final : public RecoveryPolicy {
 public:
  [[nodiscard]] bool leaves_out() const override { return true; }
  [[nodiscard]] Response respond(const Situation& situation, const RecoverySpec& spec) const override {
    return situation.nodes > 0 ? leave_out(spec) : in_place(situation, spec);
  }
};

const RecoveryPolicyRegistry::Registration<Shrink> shrink_registration("shrink");

}  // namespace
}  // namespace rehearse::sim

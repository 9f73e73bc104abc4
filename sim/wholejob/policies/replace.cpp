// Process, pod and job level as in MoFa, section 2.2: processes start again in place, lost pods are started on spare nodes, and only what
// nobody understands restarts the whole job.
#include "sim/job/recovery_policy.hpp"

namespace rehearse::sim {
namespace {

class Replace final : public RecoveryPolicy {
 public:
  [[nodiscard]] Response respond(const Situation& situation, const RecoverySpec& spec) const override {
    if (!situation.enough) return without_spares(spec);
    Response response = in_place(situation, spec);
    if (situation.nodes > 0) response.nodes = Response::Nodes::replace;
    return response;
  }
};

const RecoveryPolicyRegistry::Registration<Replace> replace_registration("replace");

}  // namespace
}  // namespace rehearse::sim

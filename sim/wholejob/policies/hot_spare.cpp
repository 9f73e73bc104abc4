// Hot spares: idle nodes with the job's processes already started, so that taking one in costs no more than restarting processes.
#include "sim/job/recovery_policy.hpp"

namespace rehearse::sim {
namespace {

class HotSpare final : public RecoveryPolicy {
 public:
  [[nodiscard]] Response respond(const Situation& situation, const RecoverySpec& spec) const override {
    if (!situation.enough) return without_spares(spec);
    Response response = in_place(situation, spec);
    if (situation.nodes == 0) return response;
    response.time = &swap_time(spec);
    response.own_time_of_fault = false;
    response.nodes = Response::Nodes::replace;
    return response;
  }
};

const RecoveryPolicyRegistry::Registration<HotSpare> hot_spare_registration("hot-spare");

}  // namespace
}  // namespace rehearse::sim

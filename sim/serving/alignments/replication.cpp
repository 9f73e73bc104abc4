// More tensor ranks than key/value heads: a head that several ranks of the receiver hold is sent to each of them, and of those that hold it
// at the sender each sends to some. Copies of a latent state likewise. No kernel; the pairs of ranks carry the bytes (kv_layout.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "sim/serving/kv_alignment.hpp"

namespace rehearse::sim {
namespace {

class Replication final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    const int from = copies(*sender.plan), to = copies(*receiver.plan);
    if (from == to) return {};
    return {{.reason = fmt::format("{} held by {} ranks of the sender and by {} of the receiver: each of these is sent its own",
                                   sender.plan->model.mla ? "the latent state is" : "a head is", from, to)}};
  }

 private:
  static int copies(const workloads::InstancePlan& plan) { return plan.model.mla ? plan.tp : std::max(1, plan.tp / plan.model.kv_heads); }
};

const KvAlignmentRegistry::Registration<Replication> replication_registration("replication");

}  // namespace
}  // namespace rehearse::sim

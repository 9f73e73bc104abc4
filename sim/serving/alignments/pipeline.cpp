// Layers cut into stages otherwise: each leaves from the stage that has it for the one that wants it. No kernel; other pairs of ranks.
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"

namespace rehearse::sim {
namespace {

class Pipeline final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    if (sender.plan->pp == receiver.plan->pp) return {};
    return {{.reason = fmt::format("layers of pp {} go to the stages of pp {}", sender.plan->pp, receiver.plan->pp)}};
  }
};

const KvAlignmentRegistry::Registration<Pipeline> pipeline_registration("pipeline-parallel");

}  // namespace
}  // namespace rehearse::sim

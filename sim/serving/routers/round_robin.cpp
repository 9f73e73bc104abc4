// One after the other.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class RoundRobin final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::turns; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double) const override {
    return memory.next++ % instances.size();
  }
};

const RouterRegistry::Registration<RoundRobin> round_robin_registration("round-robin");

}  // namespace
}  // namespace rehearse::sim

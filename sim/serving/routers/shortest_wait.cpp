// With the least work before a prompt that comes now, each prompt priced alone: one queue for all, as M/G/n.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class ShortestWait final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::seconds; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double now_s) const override {
    return least(instances, memory, [now_s](const Instance& one) { return one.backlog_s(now_s); });
  }
};

const RouterRegistry::Registration<ShortestWait> shortest_wait_registration("shortest-wait");

}  // namespace
}  // namespace rehearse::sim

// With the fewest requests.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class LeastRequests final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::requests; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double) const override {
    return least(instances, memory, [](const Instance& one) { return one.requests_here(); });
  }
};

const RouterRegistry::Registration<LeastRequests> least_requests_registration("least-requests");

}  // namespace
}  // namespace rehearse::sim

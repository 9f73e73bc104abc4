// With the fewest requests.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class LeastRequests final : public RequestRouter {
 public:
  [[nodiscard]] std::size_t choose(const std::vector<std::unique_ptr<Instance>>& instances, RouterMemory&, double) const override {
    return least(instances, [](const Instance& one) { return one.requests_here(); });
  }
};

const RouterRegistry::Registration<LeastRequests> registration("least-requests");

}  // namespace
}  // namespace rehearse::sim

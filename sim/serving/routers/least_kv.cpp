// With the smallest share of its cache taken.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class LeastKv final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::caches; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double now_s) const override {
    return least(instances, memory,
                 [now_s](const Instance& one) { return static_cast<double>(one.pages_used(now_s)) / static_cast<double>(one.pages()); });
  }
};

const RouterRegistry::Registration<LeastKv> least_kv_registration("least-kv");

}  // namespace
}  // namespace rehearse::sim

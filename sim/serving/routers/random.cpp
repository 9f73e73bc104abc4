// Any of them, with equal chances.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class Random final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::chance; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double) const override {
    return static_cast<std::size_t>(memory.random.uniform() * static_cast<double>(instances.size()));
  }
};

const RouterRegistry::Registration<Random> random_registration("random");

}  // namespace
}  // namespace rehearse::sim

// With the fewest prompt tokens to compute.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class LeastTokens final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::tokens; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double) const override {
    return least(instances, memory, [](const Instance& one) { return one.tokens_to_come(); });
  }
};

const RouterRegistry::Registration<LeastTokens> least_tokens_registration("least-tokens");

}  // namespace
}  // namespace rehearse::sim

// The pool that takes prompts of that length, as llm-d's `context-length-aware` filter has it for pods that say a range of lengths; of its
// instances the one with the fewest requests.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class ByLength final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::lengths; }
  [[nodiscard]] bool sends(const Instance& to, RequestId request) const override { return to.takes(request); }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId, double) const override {
    return least(instances, memory, [](const Instance& one) { return one.requests_here(); });
  }
};

const RouterRegistry::Registration<ByLength> by_length_registration("by-length");

}  // namespace
}  // namespace rehearse::sim

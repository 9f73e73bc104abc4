// Where its first token is to be expected soonest: after the prompts that are there, and without what is found of its own (Qin et al.,
// Mooncake, FAST 2025, algorithm 1). On a side that decodes: with the smallest share of the cache taken, were what is found there free.
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

class Prefix final : public RequestRouter {
 public:
  [[nodiscard]] GoesBy goes_by() const override { return GoesBy::seconds; }
  [[nodiscard]] bool finds_prefixes() const override { return true; }
  [[nodiscard]] std::size_t choose(const std::vector<Instance*>& instances, RouterMemory& memory, RequestId request,
                                   double now_s) const override {
    return least(instances, memory, [=](Instance& one) {
      return one.computes_prompts() ? one.backlog_s(now_s) + one.prompt_s(request, now_s) : one.filled_with(request, now_s);
    });
  }
};

const RouterRegistry::Registration<Prefix> prefix_registration("prefix");

}  // namespace
}  // namespace rehearse::sim

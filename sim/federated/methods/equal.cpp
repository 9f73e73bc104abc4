#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

// Each device's best cut when everybody gets as much as everybody else.
class Equal final : public Method {
 public:
  [[nodiscard]] int place() const override { return 1; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    const CutChoice cuts = own_best_cuts(job, 1 / static_cast<double>(job.devices.size()));
    return {row_of(job, "equal", "own best", "equal", plan_with_shares(job, cuts, equal_shares(job, cuts)))};
  }
};
const MethodRegistry::Registration<Equal> equal_registration("equal");

}  // namespace
}  // namespace rehearse::federated

#include <algorithm>

#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

// Nobody cuts: federated learning.
class Federated final : public Method {
 public:
  [[nodiscard]] int place() const override { return 4; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    const auto none = static_cast<std::uint16_t>(job.cuts.size() - 1);
    for (std::size_t n = 0; n < job.devices.size(); ++n) {
      if (std::ranges::find(job.available[n], none) == job.available[n].end())
        return {impossible("federated", "device '" + job.device_name(n) + "' cannot hold the whole model")};
    }
    const CutChoice cuts(job.devices.size(), none);
    return {row_of(job, "federated", no_cut, "tuned", plan_with_tuned_shares(job, cuts)),
            row_of(job, "federated", no_cut, "equal", plan_with_shares(job, cuts, equal_shares(job, cuts)))};
  }
};
const MethodRegistry::Registration<Federated> federated_registration("federated");

}  // namespace
}  // namespace rehearse::federated

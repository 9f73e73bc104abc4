#include <algorithm>

#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

// Sequential split learning: one device after another with everything to itself, each its best cut, the model handed on by the server.
class Sequential final : public Method {
 public:
  [[nodiscard]] int place() const override { return 5; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    MethodRow row{.method = "sequential", .cuts = "own best", .shares = "all, in turn"};
    const double aggregation_s = job.aggregation_s(job.devices.size());
    CutChoice cuts;
    for (std::size_t n = 0; n < job.devices.size(); ++n) {
      const auto alone = [&](std::uint16_t cut) { return alone_s(job, n, cut); };
      cuts.push_back(*std::ranges::min_element(job.available[n], {}, alone));
      row.formula_s += alone(cuts.back());
    }
    row.formula_s += aggregation_s;
    row.any_schedule_s = any_schedule_s(job, cuts) + aggregation_s;
    row.note = "one device at a time";
    return {row};
  }
};
const MethodRegistry::Registration<Sequential> sequential_registration("sequential");

}  // namespace
}  // namespace rehearse::federated

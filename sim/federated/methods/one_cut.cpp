#include <algorithm>
#include <functional>

#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

// The best cut that all devices share.
class OneCut final : public Method {
 public:
  [[nodiscard]] int place() const override { return 2; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    const auto tuned = best(job, [&](const CutChoice& cuts) { return plan_with_tuned_shares(job, cuts); });
    if (!tuned) return {impossible("one-cut", "no cut is available to all devices")};
    const auto equal = best(job, [&](const CutChoice& cuts) { return plan_with_shares(job, cuts, equal_shares(job, cuts)); });
    return {row_of(job, "one-cut", job.cuts[tuned->cuts.front()].name, "tuned", *tuned),
            row_of(job, "one-cut", job.cuts[equal->cuts.front()].name, "equal", *equal)};
  }

 private:
  static std::optional<Plan> best(const Job& job, const std::function<Plan(const CutChoice&)>& plan_of) {
    std::optional<Plan> best;
    for (std::uint16_t cut = 0; cut < job.cuts.size(); ++cut) {
      const auto may = [&](const std::vector<std::uint16_t>& cuts) { return std::ranges::find(cuts, cut) != cuts.end(); };
      if (!std::ranges::all_of(job.available, may)) continue;
      Plan plan = plan_of(CutChoice(job.devices.size(), cut));
      if (!best || plan.round_s < best->round_s) best = std::move(plan);
    }
    return best;
  }
};
const MethodRegistry::Registration<OneCut> one_cut_registration("one-cut");

}  // namespace
}  // namespace rehearse::federated

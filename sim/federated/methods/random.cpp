#include <algorithm>
#include <cmath>

#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

// Cuts drawn among those that each device may take, with equal shares: mean and spread over seeds.
class RandomCuts final : public Method {
 public:
  [[nodiscard]] int place() const override { return 3; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& options) const override {
    MethodRow row{.method = "random", .cuts = "random", .shares = "equal"};
    double sum_s = 0, least_bound_s = 0;
    for (int run = 0; run < options.runs; ++run) {
      const CutChoice cuts = drawn(job, job.settings.seed + static_cast<std::uint64_t>(run));
      const MethodRow one = row_of(job, "", "", "", plan_with_shares(job, cuts, equal_shares(job, cuts)));
      row.least_s = run == 0 ? one.formula_s : std::min(*row.least_s, one.formula_s);
      row.most_s = run == 0 ? one.formula_s : std::max(*row.most_s, one.formula_s);
      least_bound_s = run == 0 ? one.any_schedule_s : std::min(least_bound_s, one.any_schedule_s);
      sum_s += one.formula_s;
    }
    row.formula_s = sum_s / options.runs;
    row.any_schedule_s = least_bound_s;
    row.note = "mean of " + std::to_string(options.runs) + " seeds";
    return {row};
  }

 private:
  static CutChoice drawn(const Job& job, std::uint64_t seed) {
    constexpr std::uint64_t field = 100;
    CutChoice cuts;
    for (std::size_t n = 0; n < job.devices.size(); ++n) {
      config::Random random = field_random(seed, n, field);
      cuts.push_back(job.available[n][random.next() % job.available[n].size()]);
    }
    return cuts;
  }
};
const MethodRegistry::Registration<RandomCuts> random_cuts_registration("random");

}  // namespace
}  // namespace rehearse::federated

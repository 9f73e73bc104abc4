#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

// Sequential split learning: one device after another with everything to itself, each its best cut, the model handed on by the server.
class Sequential final : public Method {
 public:
  [[nodiscard]] int place() const override { return 5; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    MethodRow row{.method = "sequential", .cuts = "own best", .shares = "all, in turn"};
    for (const double latency_s : plan_alone(job)) row.formula_s += latency_s;
    row.formula_s += job.aggregation_s(job.devices.size());
    row.any_schedule_s = row.formula_s;
    row.note = "one device at a time";
    return {row};
  }

 private:
  static std::vector<double> plan_alone(const Job& job) {
    const CutChoice cuts = own_best_cuts(job, 1);
    std::vector<double> alone_s;
    for (std::size_t n = 0; n < cuts.size(); ++n)
      alone_s.push_back(option_of(job, job.devices[n], load_of(job, job.devices[n], cuts[n])).alone_s());
    return alone_s;
  }
};
const MethodRegistry::Registration<Sequential> registration("sequential");

}  // namespace
}  // namespace rehearse::federated

#include "sim/federated/methods.hpp"
#include "sim/federated/run_rounds.hpp"

namespace rehearse::federated {
namespace {

// One plan for all rounds against one for each round's devices and channels, both played over the job's rounds. What a plan of one round
// costs by formula says nothing here.
class RetuneMethod final : public Method {
 public:
  [[nodiscard]] int place() const override { return 6; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    if (!rounds_differ(job)) return {impossible("retune", "its rounds are alike: nobody is selected, nothing fades, no rates change")};
    return {played(job, Retune::once, "once"), played(job, Retune::every_round, "every-round")};
  }

 private:
  static MethodRow played(Job job, Retune when, const std::string& word) {
    job.settings.retune = when;
    const RunHistory history = run_rounds(job, [](double) {});
    MethodRow row{.method = "retune " + word, .cuts = "as the job", .shares = "as the job"};
    row.simulated_s = history.training_s / static_cast<double>(job.settings.rounds);
    row.note = "mean of " + std::to_string(job.settings.rounds) + " rounds";
    return row;
  }
};
const MethodRegistry::Registration<RetuneMethod> retune_method_registration("retune");

}  // namespace
}  // namespace rehearse::federated

// Failures without memory: each node (or group, or the job) fails at a constant rate.
#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {
namespace {

class PoissonStream final : public FaultStream {
 public:
  PoissonStream(const Consequence& consequence, double per_s, int nodes, Random random)
      : consequence_(consequence), per_s_(per_s), nodes_(nodes), random_(random) {}

  std::optional<Fault> next() override {
    if (per_s_ <= 0) return std::nullopt;
    at_s_ += random_.exponential(1 / per_s_);
    if (at_s_ > longest_job_s) return std::nullopt;
    return consequence_.at(to_ns(at_s_), random_.below(nodes_), random_);
  }

 private:
  const Consequence& consequence_;
  double per_s_;
  int nodes_;
  Random random_;
  double at_s_ = 0;
};

class PoissonPlan final : public FaultPlan {
 public:
  PoissonPlan(Consequence consequence, double per_s, int nodes) : consequence_(std::move(consequence)), per_s_(per_s), nodes_(nodes) {}
  [[nodiscard]] std::unique_ptr<FaultStream> open(Random random) const override {
    return std::make_unique<PoissonStream>(consequence_, per_s_, nodes_, random);
  }
  [[nodiscard]] std::vector<FailureRate> rates(double /*horizon_s*/) const override { return shared_rates(consequence_, per_s_); }

 private:
  Consequence consequence_;
  double per_s_;
  int nodes_;
};

class Poisson final : public FaultSource {
 public:
  [[nodiscard]] std::vector<config::Parameter> keys() const override { return Consequence::keys(rate_keys()); }
  [[nodiscard]] std::unique_ptr<FaultPlan> read(const config::Node& node, const FaultContext& context,
                                                const std::string& label) const override {
    check_keys(node);
    const Consequence consequence = Consequence::read(node, context, label);
    return std::make_unique<PoissonPlan>(consequence, read_rate(node, context, consequence.nodes()), context.nodes);
  }
};

const FaultSourceRegistry::Registration<Poisson> poisson_registration("poisson");

}  // namespace
}  // namespace rehearse::sim

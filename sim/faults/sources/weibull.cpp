// Failures that depend on age: each node (or group, or the job) is new at the start and again after each of its failures, and the time to
// the next one follows a Weibull distribution: shape < 1 early failures, shape 1 none of either, shape > 1 wear.
#include <algorithm>
#include <queue>

#include "config/form.hpp"
#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {
namespace {

constexpr double least_shape = 0.1, largest_shape = 10;

struct Lives {
  double scale_s = 0, shape = 1;
  int members = 1;  // that fail, each for itself
  int nodes_per_member = 1;
  int nodes = 1;
};

class WeibullStream final : public FaultStream {
 public:
  WeibullStream(const Consequence& consequence, const Lives& lives, Random random)
      : consequence_(consequence), lives_(lives), random_(random) {
    for (int member = 0; member < lives.members; ++member) queue_.emplace(life_s(), member);
  }

  std::optional<Fault> next() override {
    const auto [at_s, member] = queue_.top();
    if (at_s > longest_job_s) return std::nullopt;
    queue_.pop();
    queue_.emplace(at_s + life_s(), member);
    const int node = member * lives_.nodes_per_member + random_.below(lives_.nodes_per_member);
    return consequence_.at(to_ns(at_s), std::min(node, lives_.nodes - 1), random_);
  }

 private:
  double life_s() { return random_.weibull(lives_.scale_s, lives_.shape); }

  using Death = std::pair<double, int>;
  const Consequence& consequence_;
  const Lives& lives_;
  Random random_;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> queue_;
};

class WeibullPlan final : public FaultPlan {
 public:
  WeibullPlan(Consequence consequence, const Lives& lives, double per_s)
      : consequence_(std::move(consequence)), lives_(lives), per_s_(per_s) {}
  [[nodiscard]] std::unique_ptr<FaultStream> open(Random random) const override {
    return std::make_unique<WeibullStream>(consequence_, lives_, random);
  }
  // The rate in the long run.
  [[nodiscard]] std::vector<FailureRate> rates(double /*horizon_s*/) const override { return shared_rates(consequence_, per_s_); }

 private:
  Consequence consequence_;
  Lives lives_;
  double per_s_;
};

class Weibull final : public FaultSource {
 public:
  [[nodiscard]] std::vector<config::Parameter> keys() const override {
    std::vector<config::Parameter> own = rate_keys();
    own.push_back({"shape", config::number(least_shape, largest_shape).shape, true, "", "Of the Weibull distribution."});
    return Consequence::keys(std::move(own));
  }
  [[nodiscard]] std::unique_ptr<FaultPlan> read(const config::Node& node, const FaultContext& context,
                                                const std::string& label) const override {
    check_keys(node);
    const Consequence consequence = Consequence::read(node, context, label);
    const double per_s = read_rate(node, context, consequence.nodes());
    if (per_s <= 0) node.at("rate").fail("the rate must be positive");
    Lives lives{.shape = node.at("shape").as_number(least_shape, largest_shape),
                .members = read_members(node, context, consequence.nodes()),
                .nodes = context.nodes};
    // Mean life of one member: members / per_s = scale gamma(1 + 1 / shape).
    lives.scale_s = lives.members / per_s / std::tgamma(1 + 1 / lives.shape);
    lives.nodes_per_member = lives.members == context.nodes ? 1 : lives.members == 1 ? context.nodes : consequence.nodes();
    return std::make_unique<WeibullPlan>(consequence, lives, per_s);
  }
};

const FaultSourceRegistry::Registration<Weibull> weibull_registration("weibull");

}  // namespace
}  // namespace rehearse::sim

#include "sim/faults/given_faults.hpp"

#include <utility>

#include "config/form.hpp"

namespace rehearse::sim {
namespace {

constexpr std::int64_t most_nodes = 1'000'000;

class GivenStream final : public FaultStream {
 public:
  explicit GivenStream(const std::vector<Fault>& faults) : faults_(faults) {}
  std::optional<Fault> next() override { return at_ < faults_.size() ? std::optional(faults_[at_++]) : std::nullopt; }

 private:
  const std::vector<Fault>& faults_;
  std::size_t at_ = 0;
};

class GivenPlan final : public FaultPlan {
 public:
  explicit GivenPlan(std::vector<Fault> faults) : faults_(std::move(faults)) {}
  [[nodiscard]] std::unique_ptr<FaultStream> open(Random /*random*/) const override { return std::make_unique<GivenStream>(faults_); }
  [[nodiscard]] std::vector<FailureRate> rates(double horizon_s) const override {
    std::vector<FailureRate> rates;
    for (const Fault& fault : faults_) {
      if (fault.kind == FaultKind::slow || to_s(fault.at) > horizon_s) continue;
      rates.push_back({fault.level, 1 / horizon_s, fault.recovery ? std::optional(to_s(*fault.recovery)) : std::nullopt});
    }
    return rates;
  }

 private:
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<config::Parameter> given_fault_keys() {
  return Consequence::keys({{"at", config::quantity(config::Dimension::time).shape, true, "", "After so long."},
                            {"node", config::whole(0, most_nodes).shape, false, "0", "Where."}});
}

Fault read_given_fault(const config::Node& node, const FaultContext& context, const std::string& label) {
  static const std::vector<std::string> known = config::names_of(given_fault_keys());
  node.allow_keys(known);
  const config::Node at = node.at("at");
  const double at_s = at.as_quantity(config::Dimension::time);
  if (at_s > longest_job_s) at.fail("later than 100 years");
  const auto where = node.find("node");
  const int first = where ? static_cast<int>(where->as_int(0, context.nodes - 1)) : 0;
  Random same_for_all(0);  // what is drawn at all (a distribution, several levels) is the same in every history
  return Consequence::read(node, context, label).at(to_ns(at_s), first, same_for_all);
}

std::unique_ptr<FaultPlan> given_faults(std::vector<Fault> faults) { return std::make_unique<GivenPlan>(std::move(faults)); }

}  // namespace rehearse::sim

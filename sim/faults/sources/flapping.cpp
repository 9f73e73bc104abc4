// A link or switch that comes and goes: every `period` it is slow for `down`, from `from` on, `times` times (or until the job ends).
#include "config/form.hpp"
#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::int64_t most_times = 1'000'000'000, most_nodes = 1'000'000;

struct Rhythm {
  Ns from = 0, period = 1, down = 1;
  std::int64_t times = INT64_MAX;
  int node = 0;
};

class FlappingStream final : public FaultStream {
 public:
  FlappingStream(const Consequence& consequence, const Rhythm& rhythm, Random random)
      : consequence_(consequence), rhythm_(rhythm), random_(random) {}

  std::optional<Fault> next() override {
    const Ns at = rhythm_.from + done_ * rhythm_.period;
    if (done_ == rhythm_.times || to_s(at) > longest_job_s) return std::nullopt;
    ++done_;
    Fault fault = consequence_.at(at, rhythm_.node, random_);
    fault.duration = rhythm_.down;
    return fault;
  }

 private:
  const Consequence& consequence_;
  const Rhythm& rhythm_;
  Random random_;
  std::int64_t done_ = 0;
};

class FlappingPlan final : public FaultPlan {
 public:
  FlappingPlan(Consequence consequence, const Rhythm& rhythm) : consequence_(std::move(consequence)), rhythm_(rhythm) {}
  [[nodiscard]] std::unique_ptr<FaultStream> open(Random random) const override {
    return std::make_unique<FlappingStream>(consequence_, rhythm_, random);
  }
  [[nodiscard]] std::vector<FailureRate> rates(double /*horizon_s*/) const override { return {}; }

 private:
  Consequence consequence_;
  Rhythm rhythm_;
};

Ns time_of(const Node& node) {
  const double seconds = node.as_quantity(config::Dimension::time);
  if (seconds > longest_job_s) node.fail("longer than 100 years");
  return to_ns(seconds);
}

class Flapping final : public FaultSource {
 public:
  [[nodiscard]] std::vector<config::Parameter> keys() const override {
    const config::Shape time = config::quantity(config::Dimension::time).shape;
    std::vector<config::Parameter> keys =
        Consequence::keys({{"from", time, false, "0 s", "When it first is slow."},
                           {"period", time, true, "", "From one time to the next."},
                           {"down", time, true, "", "How long it is slow each time."},
                           {"times", config::whole(1, most_times).shape, false, "until the job ends", "How often."},
                           {"node", config::whole(0, most_nodes).shape, false, "0", "Where."}});
    std::erase_if(keys, [](const config::Parameter& key) {  // it is slow, as long as it is down
      return key.name == "kind" || key.name == "level" || key.name == "recovery" || key.name == "duration";
    });
    return keys;
  }
  [[nodiscard]] std::unique_ptr<FaultPlan> read(const Node& node, const FaultContext& context, const std::string& label) const override {
    check_keys(node);
    Node slow = node;
    slow.set("kind", "slow");
    Rhythm rhythm{.period = time_of(node.at("period")), .down = time_of(node.at("down"))};
    if (rhythm.down < 1) node.at("down").fail("must be longer than 0 s");
    if (rhythm.period <= rhythm.down) node.at("period").fail("the period must be longer than the time down");
    if (const auto from = node.find("from")) rhythm.from = time_of(*from);
    if (const auto times = node.find("times")) rhythm.times = times->as_int(1, most_times);
    if (const auto where = node.find("node")) rhythm.node = static_cast<int>(where->as_int(0, context.nodes - 1));
    return std::make_unique<FlappingPlan>(Consequence::read(slow, context, label), rhythm);
  }
};

const FaultSourceRegistry::Registration<Flapping> flapping_registration("flapping");

}  // namespace
}  // namespace rehearse::sim

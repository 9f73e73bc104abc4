#include "sim/faults/consequence.hpp"

#include <algorithm>
#include <utility>

#include "config/form.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// Process : pod : job in the history of a cluster of thousands of GPUs (MoFa, section 3.4).
constexpr LevelShares paper_shares{0.3, 0.6, 0.1};
constexpr double most_shares = 1e9;
constexpr double largest_slowdown = 1e6;
constexpr std::int64_t most_units = 1'000'000;  // of any cluster; a job's own are known when it is read

LevelShares read_levels(const Node& node) {
  LevelShares shares{};
  if (!node.is_map()) {
    shares[static_cast<std::size_t>(fault_levels.read(node))] = 1;
    return shares;
  }
  node.allow_keys({"process", "pod", "job"});
  double sum = 0;
  for (const FaultLevel level : {FaultLevel::process, FaultLevel::pod, FaultLevel::job}) {
    const auto share = node.find(fault_levels.of(level));
    if (share) sum += shares[static_cast<std::size_t>(level)] = share->as_number(0, most_shares);
  }
  if (sum <= 0) node.fail("one of the shares must be positive");
  for (double& share : shares) share /= sum;
  return shares;
}

// Losing one of n equal ways leaves the others n / (n - 1) times the load.
double without_one_of(int ways, const Node& node, std::string_view what) {
  if (ways > 1) return static_cast<double>(ways) / (ways - 1);
  node.fail("missing key 'slowdown'",
            "how many times as long the component takes; it follows by itself only where there are several " + std::string(what));
}

double read_slowdown(const Node& node, Component component, const FaultContext& context) {
  if (slowed_by(component) == Slows::nothing) {
    node.fail("kind slow needs a component that can be slow", "gpu, hbm, host, nic, link, switch or spine");
  }
  if (const auto given = node.find("slowdown")) return given->as_number(1, largest_slowdown);
  if (component == Component::switch_) return without_one_of(context.rails, node, "rails");
  if (component == Component::spine) return without_one_of(context.spines, node, "spines");
  node.fail("missing key 'slowdown'", "how many times as long the component takes, for example 1.3");
}

void refuse_keys(const Node& node, const std::vector<std::string>& keys, std::string_view why) {
  for (const std::string& key : keys) {
    if (const auto found = node.find(key)) found->fail_at_key(key + std::string(why));
  }
}

// Which GPU or port of its node: the first, or the one that is named.
int read_unit(const Node& node, Component component, const FaultContext& context) {
  const bool gpu = component == Component::gpu || component == Component::hbm;
  const bool port = component == Component::nic || component == Component::link || component == Component::switch_;
  if (!gpu) refuse_keys(node, {"gpu"}, " is for component gpu or hbm");
  if (!port) refuse_keys(node, {"rail"}, " is for component nic, link or switch");
  if (const auto given = node.find("gpu")) return static_cast<int>(given->as_int(0, context.gpus_per_node - 1));
  if (const auto given = node.find("rail")) return static_cast<int>(given->as_int(0, context.rails - 1));
  return 0;
}

}  // namespace

std::vector<config::Parameter> Consequence::keys(std::vector<config::Parameter> and_these) {
  const auto add = [&](const char* name, config::Shape shape, const char* otherwise, const char* means) {
    and_these.push_back({name, std::move(shape), false, otherwise, means});
  };
  const config::Shape share = config::number(0, most_shares).shape, number = config::whole(0, most_units).shape;
  const config::Shape shares{.kind = config::Shape::Kind::mapping,
                             .keys = {{"process", share, false, "0", "Its share."},
                                      {"pod", share, false, "0", "Its share."},
                                      {"job", share, false, "0", "Its share."}}};
  add("component", config::choice(components).shape, "any", "What fails or is slow.");
  add("kind", config::choice(fault_kinds).shape, "fail", "What happens to it.");
  add("level", config::either({config::choice(fault_levels).shape, shares}), "{process: 0.3, pod: 0.6, job: 0.1}",
      "How much must start anew: one, or shares of each.");
  add("recovery", DurationLaw::form().shape, "the policy's", "Of what fails: until it is back.");
  add("slowdown", config::number(1, largest_slowdown).shape, "", "Of what is slow: so many times as long; of a switch or spine by itself.");
  add("duration", DurationLaw::form().shape, "until the job ends", "Of what is slow.");
  add("nodes", config::whole(1, most_units).shape, "1", "So many at once, an aligned block.");
  add("gpu", number, "0", "Which one of its node: component gpu or hbm.");
  add("rail", number, "0", "Which port of its node: component nic, link or switch.");
  return and_these;
}

Consequence Consequence::read(const Node& node, const FaultContext& context, const std::string& label) {
  Consequence out;
  out.label_ = label;
  out.job_nodes_ = context.nodes;
  if (const auto component = node.find("component")) out.component_ = components.read(*component);
  if (const auto kind = node.find("kind")) out.kind_ = fault_kinds.read(*kind);
  const auto level = node.find("level");
  out.shares_ = level ? read_levels(*level) : paper_shares;
  if (const auto nodes = node.find("nodes")) out.nodes_ = static_cast<int>(nodes->as_int(1, context.nodes));
  if (const auto recovery = node.find("recovery")) out.recovery_ = DurationLaw::read(*recovery);
  if (const auto duration = node.find("duration")) out.duration_ = DurationLaw::read(*duration);
  if (out.kind_ == FaultKind::fail) {
    refuse_keys(node, {"slowdown", "duration"}, " is for kind slow; what fails takes its recovery time");
  } else {
    refuse_keys(node, {"level", "recovery"}, " is for kind fail; what is slow lasts for its duration");
    out.slowdown_ = read_slowdown(node, out.component_, context);
  }
  out.unit_ = read_unit(node, out.component_, context);
  if (out.kind_ == FaultKind::slow && !node.find("slowdown")) {  // gone, and the others carry its traffic
    out.lost_ = out.component_ == Component::spine;
    if (out.component_ == Component::switch_) out.unit_ = all_units;
  }
  return out;
}

Fault Consequence::at(Ns when, int node, Random& random) const {
  Fault fault;
  fault.at = when;
  fault.label = label_;
  fault.component = component_;
  fault.kind = kind_;
  fault.slowdown = slowdown_;
  fault.unit = unit_;
  fault.lost = lost_;
  fault.node = node - node % nodes_;
  fault.nodes = std::min(nodes_, job_nodes_ - fault.node);
  if (recovery_) fault.recovery = to_ns(recovery_->draw_s(random));
  if (duration_) fault.duration = to_ns(duration_->draw_s(random));
  const double draw = random.uniform();
  fault.level = draw < shares_[0] ? FaultLevel::process : draw < shares_[0] + shares_[1] ? FaultLevel::pod : FaultLevel::job;
  return fault;
}

std::optional<double> Consequence::mean_recovery_s() const { return recovery_ ? std::optional(recovery_->mean_s()) : std::nullopt; }

}  // namespace rehearse::sim

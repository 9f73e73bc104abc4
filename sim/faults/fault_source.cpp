#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {

config::Node FaultSource::resolved(const config::Node& node, const FaultContext& /*context*/) const { return node; }

std::vector<FailureRate> shared_rates(const Consequence& consequence, double per_s) {
  std::vector<FailureRate> rates;
  if (consequence.kind() == FaultKind::slow) return rates;
  for (std::size_t level = 0; level < level_count; ++level) {
    const double share = consequence.shares()[level];
    if (share > 0) rates.push_back({static_cast<FaultLevel>(level), per_s * share, consequence.mean_recovery_s()});
  }
  return rates;
}

int read_members(const config::Node& node, const FaultContext& context, int nodes_per_group) {
  const auto per = node.find("per");
  const std::string word = per ? per->as_choice({"node", "group", "job"}) : "node";
  if (word == "job") return 1;
  return word == "node" ? context.nodes : (context.nodes + nodes_per_group - 1) / nodes_per_group;
}

double read_rate(const config::Node& node, const FaultContext& context, int nodes_per_group) {
  constexpr double most_per_s = 1;  // of one node: it could not run a step
  const double rate = node.at("rate").as_quantity(config::Dimension::rate);
  if (rate > most_per_s) node.at("rate").fail("more than one failure a second");
  return rate * read_members(node, context, nodes_per_group);
}

}  // namespace rehearse::sim

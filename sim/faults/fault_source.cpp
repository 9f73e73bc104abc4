#include "sim/faults/fault_source.hpp"

#include <algorithm>

#include "config/form.hpp"

namespace rehearse::sim {
namespace {

const std::vector<std::string> counted{"node", "group", "job"};

}  // namespace

config::Node FaultSource::resolved(const config::Node& node, const FaultContext& /*context*/) const { return node; }

void FaultSource::check_keys(const config::Node& node) const {
  std::vector<std::string> known{"source"};
  std::ranges::copy(config::names_of(keys()), std::back_inserter(known));
  node.allow_keys(known);
}

config::Shape fault_sources_shape() {
  config::Shape any{.kind = config::Shape::Kind::mapping};
  any.keys.push_back({"source", config::word(FaultSourceRegistry::names()).shape, true, "", "Where its faults come from."});
  for (const std::string& name : FaultSourceRegistry::names()) {
    for (config::Parameter& key : FaultSourceRegistry::get(name).keys()) {
      if (std::ranges::find(any.keys, key.name, &config::Parameter::name) != any.keys.end()) continue;
      key.required = false;  // another source has no such key
      any.keys.push_back(std::move(key));
    }
  }
  return any;
}

std::vector<config::Parameter> rate_keys() {
  return {{"rate", config::quantity(config::Dimension::rate).shape, true, "", "Mean failures of each of what `per` counts."},
          {"per", config::word(counted).shape, false, "node", "What the rate is of; group: the blocks of `nodes`."}};
}

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
  const std::string word = per ? per->as_choice(counted) : "node";
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

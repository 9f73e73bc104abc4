#include "topology/nic_scale.hpp"

#include <charconv>
#include <cmath>
#include <map>

#include "config/form.hpp"
#include "topology/typical_link.hpp"

namespace rehearse::topology {
namespace {

constexpr int most_listed_nodes = 1 << 20;
constexpr int few_nodes = 16, many_nodes = 64;  // where the fall of an unmeasured network begins and ends

int number_of_nodes(const std::string& key, const config::Node& value) {
  int nodes = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), nodes);
  if (error != std::errc{} || end != key.data() + key.size() || nodes < 2 || nodes > most_listed_nodes) {
    value.fail_at_key("'" + key + "' is no number of nodes from 2 on", "by_nodes: {4: 0.8, 64: 0.3}");
  }
  return nodes;
}

std::map<int, double> read(const config::Node& node) {
  std::map<int, double> by_nodes;
  for (const std::string& key : node.keys()) {
    const config::Node value = node.at(key);
    by_nodes[number_of_nodes(key, value)] = value.as_number(least_nic_efficiency, 1);
  }
  if (by_nodes.empty()) node.fail("no number of nodes is listed", "by_nodes: {4: 0.8, 64: 0.3}");
  return by_nodes;
}

double efficiency_at(const std::map<int, double>& by_nodes, double below, int nodes) {
  const auto above = by_nodes.lower_bound(nodes);
  if (above == by_nodes.end()) return by_nodes.rbegin()->second;
  if (above->first == nodes) return above->second;
  if (above == by_nodes.begin()) return below;
  const auto before = std::prev(above);
  const double share = std::log(static_cast<double>(nodes) / before->first) / std::log(static_cast<double>(above->first) / before->first);
  return before->second * std::pow(above->second / before->second, share);
}

double said_share(const config::Node& document, const std::string& path, double otherwise) {
  const auto said = document.find_path(path);
  return said ? said->as_number(least_nic_efficiency, 1) : otherwise;
}

}  // namespace

config::Shape by_nodes_shape() {
  return {.kind = config::Shape::Kind::mapping,
          .keys = {{"*", config::number(least_nic_efficiency, 1).shape, false, "", "Efficiency in jobs of so many nodes."}}};
}

void settle_nics(ClusterSpec& cluster, const config::Node& document, int nodes) {
  const auto listed = document.find_path("nics.by_nodes");
  if (!listed && cluster.network.kind != Network::leaf_spine) return;
  const double few = said_share(document, "nics.efficiency", typical_nic.efficiency);
  const std::map<int, double> unmeasured{{few_nodes, few},
                                         {many_nodes, few * said_share(document, "network.at_scale", unmeasured_at_scale)}};
  cluster.nic.efficiency = efficiency_at(listed ? read(*listed) : unmeasured, few, nodes);
}

}  // namespace rehearse::topology

#include "topology/network_plan.hpp"

namespace rehearse::topology {

std::uint32_t NetworkPlan::switch_count() const {
  std::uint32_t sum = 0;
  for (const auto& tier : tiers) sum += tier.count;
  return sum;
}

NetworkPlan plan_network(const ClusterSpec& cluster, int nodes) {
  switch (cluster.network.kind) {
    case Network::none:
      return {};
    case Network::single_switch:
      return plan_single_switch(cluster, nodes);
    case Network::leaf_spine:
      return plan_leaf_spine(cluster, nodes);
    case Network::rail_optimised:
      return plan_rail_optimised(cluster, nodes);
    case Network::fat_tree:
      return plan_fat_tree(cluster, nodes);
    case Network::torus:
      return plan_torus(cluster, nodes);
    case Network::dragonfly:
      return plan_dragonfly(cluster, nodes);
    case Network::graph:
      return plan_graph(cluster, nodes);
  }
  return {};
}

}  // namespace rehearse::topology

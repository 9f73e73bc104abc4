// Clos networks: one switch, leaf-spine, rail-optimised, three-level fat-tree. The capacity above a switch is that below it divided by the
// oversubscription, exactly; the rate of one cable only decides over how many parallel paths it is spread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topology/network_plan.hpp"

namespace rehearse::topology {
namespace {

struct Uplinks {
  std::uint32_t count = 1;
  double bandwidth_bytes_per_s = 0;  // effective, of one
};

// More parallel paths than this from one switch is a slip of the pen in the trunk's unit, not a network.
constexpr double most_uplinks = 4096;

// Line rate `up` towards the next tier over `fixed` switches, or over as many as cables of the given rate are needed. The tolerance of one
// part in 10^9 keeps rounding in a division such as 3200/1.25 from adding a switch.
Uplinks spread(double up_line_rate, const LinkSpec& cable, int fixed) {
  const double needed = std::ceil(up_line_rate / cable.bandwidth_bytes_per_s * (1 - 1e-9));
  if (fixed == 0 && needed > most_uplinks) {
    throw config::InputError(fmt::format("network: a trunk of {} is too thin: one switch would need {:.0f} of them upwards",
                                         config::human_quantity(cable.bandwidth_bytes_per_s, config::Dimension::bandwidth), needed));
  }
  const auto count = static_cast<std::uint32_t>(fixed > 0 ? fixed : std::max(1.0, needed));
  return {count, up_line_rate / count * cable.efficiency};
}

double node_line_rate(const ClusterSpec& cluster) { return cluster.nics_per_node * cluster.nic.bandwidth_bytes_per_s; }

std::uint32_t blocks(int nodes, int per_block) { return static_cast<std::uint32_t>((nodes + per_block - 1) / per_block); }

// All ports of a node on switch node / per_leaf.
std::vector<std::uint32_t> attach_by_node(const ClusterSpec& cluster, int nodes, int per_leaf) {
  const int rails = cluster.rails_per_node();
  std::vector<std::uint32_t> attach(static_cast<std::size_t>(nodes) * rails);
  for (std::size_t port = 0; port < attach.size(); ++port) attach[port] = static_cast<std::uint32_t>(port / rails / per_leaf);
  return attach;
}

// Every switch of [first_low, first_low + low) with every one of [first_high, first_high + high).
void mesh(NetworkPlan& plan, std::uint32_t first_low, std::uint32_t low, std::uint32_t first_high, const Uplinks& up) {
  for (std::uint32_t a = 0; a < low; ++a) {
    for (std::uint32_t b = 0; b < up.count; ++b) plan.trunks.push_back({first_low + a, first_high + b, up.bandwidth_bytes_per_s});
  }
}

}  // namespace

NetworkPlan plan_single_switch(const ClusterSpec& cluster, int nodes) {
  return {.tiers = {{"switch", 1}}, .trunks = {}, .attach = attach_by_node(cluster, nodes, nodes)};
}

NetworkPlan plan_leaf_spine(const ClusterSpec& cluster, int nodes) {
  const auto& net = cluster.network;
  const auto leaves = blocks(nodes, net.nodes_per_leaf);
  NetworkPlan plan{.tiers = {{"leaf", leaves}}, .trunks = {}, .attach = attach_by_node(cluster, nodes, net.nodes_per_leaf)};
  if (leaves == 1) return plan;
  const auto up = spread(net.nodes_per_leaf * node_line_rate(cluster) / net.oversubscription, net.trunk, net.spines);
  plan.tiers.push_back({.name = "spine", .count = up.count, .level = 2});
  mesh(plan, 0, leaves, leaves, up);
  return plan;
}

NetworkPlan plan_rail_optimised(const ClusterSpec& cluster, int nodes) {
  const auto& net = cluster.network;
  const auto rails = static_cast<std::uint32_t>(cluster.rails_per_node());
  const auto groups = blocks(nodes, net.nodes_per_leaf);
  const auto leaves = groups * rails;
  NetworkPlan plan{.tiers = {{"leaf", leaves}}, .trunks = {}, .attach = {}};
  for (int node = 0; node < nodes; ++node) {
    for (std::uint32_t rail = 0; rail < rails; ++rail) {
      plan.attach.push_back(static_cast<std::uint32_t>(node / net.nodes_per_leaf) * rails + rail);
    }
  }
  if (leaves == 1 || (net.separate_planes && groups == 1)) return plan;
  const auto up = spread(net.nodes_per_leaf * node_line_rate(cluster) / rails / net.oversubscription, net.trunk, net.spines);
  plan.tiers.push_back({.name = "spine", .count = net.separate_planes ? up.count * rails : up.count, .level = 2});
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    mesh(plan, leaf, 1, leaves + (net.separate_planes ? leaf % rails * up.count : 0), up);
  }
  return plan;
}

NetworkPlan plan_fat_tree(const ClusterSpec& cluster, int nodes) {
  const auto& net = cluster.network;
  const auto edges = blocks(nodes, net.nodes_per_leaf);
  const auto edges_per_pod = static_cast<std::uint32_t>(net.nodes_per_pod / net.nodes_per_leaf);
  const auto pods = blocks(nodes, net.nodes_per_pod);
  NetworkPlan plan{.tiers = {{"edge", edges}}, .trunks = {}, .attach = attach_by_node(cluster, nodes, net.nodes_per_leaf)};
  if (edges == 1) return plan;

  const double edge_up = net.nodes_per_leaf * node_line_rate(cluster) / net.oversubscription;
  const auto up = spread(edge_up, net.trunk, net.spines);
  plan.tiers.push_back({.name = "aggregation", .count = pods * up.count, .level = 2});
  for (std::uint32_t edge = 0; edge < edges; ++edge) mesh(plan, edge, 1, edges + edge / edges_per_pod * up.count, up);
  if (pods == 1) return plan;

  // Aggregation switch k of every pod is linked to the cores of plane k.
  const auto core = spread(edge_up * edges_per_pod / up.count / net.pod_oversubscription, net.trunk, 0);
  const auto first_core = edges + pods * up.count;
  plan.tiers.push_back({.name = "core", .count = up.count * core.count, .level = 3});
  for (std::uint32_t agg = 0; agg < pods * up.count; ++agg) mesh(plan, edges + agg, 1, first_core + agg % up.count * core.count, core);
  return plan;
}

}  // namespace rehearse::topology

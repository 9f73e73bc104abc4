// Direct networks, with a router per node or few nodes: torus, dragonfly; and the free-form graph.
#include <algorithm>
#include <cstddef>
#include <limits>

#include "topology/network_plan.hpp"

namespace rehearse::topology {
namespace {

std::uint32_t index_of(const SwitchGraph& graph, const std::string& name) {
  const auto it = std::find(graph.switches.begin(), graph.switches.end(), name);
  return static_cast<std::uint32_t>(it - graph.switches.begin());
}

// All ports of a node on its router.
std::vector<std::uint32_t> attach_to_routers(const ClusterSpec& cluster, int nodes, int nodes_per_router) {
  const int rails = cluster.rails_per_node();
  std::vector<std::uint32_t> attach;
  attach.reserve(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(rails));
  for (int port = 0; port < nodes * rails; ++port) attach.push_back(static_cast<std::uint32_t>(port / rails / nodes_per_router));
  return attach;
}

struct Axis {
  std::uint32_t size = 1, stride = 1;  // routers in a row, and how far they are apart in number
  double bandwidth_bytes_per_s = 0;
  bool wrap = true;
  std::uint8_t dimension = 0;
};

// A row of routers from `first` on, closed to a ring when it wraps around; two routers are joined by one link, one by none.
void row(NetworkPlan& plan, std::uint32_t first, const Axis& axis) {
  const auto [size, stride, bandwidth, wrap, dimension] = axis;
  for (std::uint32_t i = 0; i + 1 < size; ++i) plan.trunks.push_back({first + i * stride, first + (i + 1) * stride, bandwidth, dimension});
  if (size > 2 && wrap) plan.trunks.push_back({first + (size - 1) * stride, first, bandwidth, dimension});
}

}  // namespace

// Router of node n = its coordinates in row-major order: the last dimension varies fastest. Dimension-ordered routing: a packet finishes
// the first dimension before the second.
NetworkPlan plan_torus(const ClusterSpec& cluster, int nodes) {
  const auto& net = cluster.network;
  std::uint32_t routers = 1;
  for (const int size : net.dims) routers *= static_cast<std::uint32_t>(size);
  NetworkPlan plan{.tiers = {{"router", routers}}, .trunks = {}, .attach = attach_to_routers(cluster, nodes, 1)};
  std::uint32_t stride = routers;
  for (std::size_t dimension = 0; dimension < net.dims.size(); ++dimension) {
    const auto size = static_cast<std::uint32_t>(net.dims[dimension]);
    const std::uint32_t block = stride;
    stride /= size;
    const Axis axis{size, stride, net.axes[dimension].effective_bytes_per_s(), net.wrap[dimension], static_cast<std::uint8_t>(dimension)};
    for (std::uint32_t first = 0; first < routers; ++first) {
      if (first % block < stride) row(plan, first, axis);
    }
  }
  return plan;
}

// Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology" (ISCA 2008): all-to-all inside a group, one global link between any
// two groups, here from router (j-i-1) mod groups mod routers_per_group of group i. A global link counts for three hops: a path with two of
// them is never as short as the minimal one (local, global, local).
NetworkPlan plan_dragonfly(const ClusterSpec& cluster, int nodes) {
  constexpr std::uint8_t global_weight = 3;
  const auto& net = cluster.network;
  const auto groups = static_cast<std::uint32_t>(net.groups);
  const auto size = static_cast<std::uint32_t>(net.routers_per_group);
  const double bandwidth = net.trunk.effective_bytes_per_s();
  NetworkPlan plan{.tiers = {{"router", groups * size}}, .trunks = {}, .attach = attach_to_routers(cluster, nodes, net.nodes_per_router)};
  const auto gateway = [&](std::uint32_t from, std::uint32_t to) { return from * size + (to + groups - from - 1) % groups % size; };
  for (std::uint32_t i = 0; i < groups; ++i) {
    for (std::uint32_t a = 0; a < size; ++a) {
      for (std::uint32_t b = a + 1; b < size; ++b) plan.trunks.push_back({i * size + a, i * size + b, bandwidth});
    }
    for (std::uint32_t j = i + 1; j < groups; ++j) plan.trunks.push_back({gateway(i, j), gateway(j, i), bandwidth, 0, global_weight});
  }
  return plan;
}

NetworkPlan plan_graph(const ClusterSpec& cluster, int nodes) {
  const auto& graph = cluster.network.graph;
  NetworkPlan plan;
  for (const auto& name : graph.switches) plan.tiers.push_back({name, 1, false});
  for (const auto& trunk : graph.trunks) {
    plan.trunks.push_back({index_of(graph, trunk.a), index_of(graph, trunk.b), trunk.link.effective_bytes_per_s() * trunk.count});
  }
  const int rails = cluster.rails_per_node();
  const auto bundle = static_cast<std::size_t>(cluster.nics_per_node / rails);
  for (int node = 0; node < nodes; ++node) {
    const auto& row = graph.attach[graph.attach.size() == 1 ? 0 : static_cast<std::size_t>(node)];
    for (int rail = 0; rail < rails; ++rail) plan.attach.push_back(index_of(graph, row[static_cast<std::size_t>(rail) * bundle]));
  }
  return plan;
}

}  // namespace rehearse::topology

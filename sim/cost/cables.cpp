#include "sim/cost/cables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "topology/flow_hash.hpp"

namespace rehearse::sim {
namespace {

using topology::LinkSpec;
using topology::Network;

// All that routes and rates hang on.
std::string text_of(const topology::ClusterSpec& c, int gpus) {
  const topology::NetworkSpec& net = c.network;
  std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {}", gpus, c.gpus_per_node, c.nodes, c.supernode_gpus, c.nics_per_node,
                                 c.nic.effective_bytes_per_s(), c.to_nic_bytes_per_s(), static_cast<int>(c.intra_kind),
                                 static_cast<int>(net.kind), net.trunk.effective_bytes_per_s());
  text += fmt::format(" {} {} {} {} {}", net.dims, net.wrap, net.groups, net.routers_per_group, net.nodes_per_router);
  for (const LinkSpec& axis : net.axes) text += fmt::format(" {}", axis.effective_bytes_per_s());
  for (const auto& trunk : net.graph.trunks)
    text += fmt::format(" {}-{} {} {}", trunk.a, trunk.b, trunk.count, trunk.link.effective_bytes_per_s());
  return text + fmt::format(" {} {}", net.graph.switches, net.graph.attach);
}

}  // namespace

std::shared_ptr<Cables> Cables::of(const topology::ClusterSpec& cluster, int gpus) {
  const Network kind = cluster.network.kind;
  if (kind != Network::torus && kind != Network::dragonfly && kind != Network::graph) return nullptr;
  thread_local std::pair<std::string, std::shared_ptr<Cables>> last;
  if (std::string text = text_of(cluster, gpus); !last.second || last.first != text)
    last = {std::move(text), std::make_shared<Cables>(cluster, gpus)};
  return last.second;
}

double Cables::seconds(const std::string& name, const std::function<Rounds()>& flows) {
  const std::scoped_lock lock(mutex_);
  const auto [it, added] = known_.try_emplace(name, 0);
  if (added) {
    for (const std::vector<Flow>& round : flows()) it->second += round_s(round);
  }
  return it->second;
}

double Cables::round_s(std::span<const Flow> flows) const {
  std::map<topology::LinkId, double> bytes;
  topology::Route route;
  for (const Flow& flow : flows) {
    fabric_.route(flow.from, flow.to, topology::flow_hash(0, flow.from, flow.to), route, flow.rail);
    for (const topology::LinkId link : route.links) {
      if (fabric_.links()[link].kind != topology::LinkKind::scale_up) bytes[link] += flow.bytes;
    }
  }
  double longest_s = 0;
  for (const auto& [link, sum] : bytes) longest_s = std::max(longest_s, sum / fabric_.links()[link].bandwidth_bytes_per_s);
  return longest_s;
}

}  // namespace rehearse::sim

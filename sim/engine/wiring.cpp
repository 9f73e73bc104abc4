#include "sim/engine/wiring.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "topology/flow_hash.hpp"

namespace rehearse::sim {
namespace {

using topology::IntraNode;
using topology::Network;
using workloads::GroupKind;

enum class Kind : std::uint8_t { node_port, domain_port, mesh, pcie, nic, leaf, pod, trunk, to_host, from_host, host_memory };

constexpr int kind_shift = 48;
constexpr Wire index_mask = (Wire{1} << (kind_shift - 1)) - 1;

Wire wire_of(Kind kind, bool out, std::size_t index) {
  return (static_cast<Wire>(kind) << kind_shift) | (static_cast<Wire>(out ? 1 : 0) << (kind_shift - 1)) | index;
}
Kind kind_of(Wire wire) { return static_cast<Kind>(wire >> kind_shift); }
std::size_t index_of(Wire wire) { return static_cast<std::size_t>(wire & index_mask); }

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Whether what NICs below an uplink can send fills it: rounding in a division by the oversubscription is none.
double limiting(double uplink_bytes_per_s, double below_bytes_per_s) {
  return uplink_bytes_per_s < below_bytes_per_s * (1 - 1e-9) ? uplink_bytes_per_s : 0;
}

topology::Failures lost_spines(const topology::Fabric& fabric, int spines) {
  constexpr int spine_level = 2;
  topology::Failures lost;
  for (topology::VertexId v = 0; v < fabric.vertex_count() && spines > 0; ++v) {
    if (fabric.level(v) != spine_level) continue;
    lost.vertices.push_back(v);
    --spines;
  }
  return lost;
}

}  // namespace

Wiring::Wiring(const System& system)
    : cluster_(system.cluster),
      gpus_(system.gpus),
      shares_port_(cluster_.supernode_gpus > 0 && cluster_.intra_kind == IntraNode::nvswitch &&
                   cluster_.intra.effective_bytes_per_s() == cluster_.supernode.effective_bytes_per_s()),
      own_nics_(cluster_.nics_per_node >= cluster_.gpus_per_node),
      cluster_is_mesh_(cluster_.intra_kind == IntraNode::full_mesh && cluster_.gpus_per_node > 1) {
  const SlowParts& slow = system.simulation.faults.slow;
  const Routing routing = system.simulation.routing;
  slow_nics(slow);
  const Network kind = cluster_.network.kind;
  const bool tree = kind == Network::leaf_spine || kind == Network::rail_optimised || kind == Network::fat_tree;
  const bool direct = kind == Network::torus || kind == Network::dragonfly || kind == Network::graph;
  if (tree && routing == Routing::balanced) plan_trees(slow);
  if (direct || (tree && routing == Routing::ecmp)) plan_fabric(slow);
}

void Wiring::slow_nics(const SlowParts& slow) {
  const int rails = cluster_.rails_per_node();
  if (slow.ports.empty() || rails == 0) return;
  slow_nic_.assign(at((node_of(gpus_ - 1) + 1) * rails), 1);
  for (const auto& [rank, slowdown] : slow.ports) {
    double& nic = slow_nic_[at(node_of(rank) * rails + rail_of(rank))];
    nic = std::max(nic, slowdown);
  }
}

// As topology/plan_trees.cpp wires them.
void Wiring::plan_trees(const SlowParts& slow) {
  const topology::NetworkSpec& net = cluster_.network;
  const bool rail_leaves = net.kind == Network::rail_optimised;
  const int rails = cluster_.rails_per_node();
  const int nodes = node_of(gpus_ - 1) + 1;
  if (nodes <= net.nodes_per_leaf) return;
  const double ports = net.nodes_per_leaf * (rail_leaves ? 1.0 : rails);
  const double line_rate = ports * cluster_.nic.bandwidth_bytes_per_s * cluster_.nics_per_node / rails;
  const double leaf_up = line_rate / net.oversubscription / slow.trunk_factor(net.spines) * net.trunk.efficiency;
  leaf_bytes_per_s_ = limiting(leaf_up, ports * cluster_.rail_bytes_per_s());
  if (net.kind != Network::fat_tree || nodes <= net.nodes_per_pod) return;
  const int leaves = net.nodes_per_pod / net.nodes_per_leaf;
  pod_bytes_per_s_ = limiting(leaf_up * leaves / net.pod_oversubscription, ports * leaves * cluster_.rail_bytes_per_s());
}

void Wiring::plan_fabric(const SlowParts& slow) {
  fabric_ = std::make_unique<topology::Fabric>(topology::Fabric::build(cluster_, gpus_));
  slow_trunks_ = slow.trunks;
  if (const topology::Failures lost = lost_spines(*fabric_, slow.lost_spines); !lost.vertices.empty()) *fabric_ = fabric_->without(lost);
}

int Wiring::leaf_of(int node, int rail) const {
  const int group = node / cluster_.network.nodes_per_leaf;
  return cluster_.network.kind == Network::rail_optimised ? group * cluster_.rails_per_node() + rail : group;
}

bool Wiring::between_nodes(std::span<const int> members) const {
  if (cluster_.supernode_gpus == 0) return false;
  std::map<int, int> node_of_domain;
  return std::ranges::any_of(members, [&](int rank) {
    return node_of_domain.try_emplace(rank / cluster_.domain_gpus(), node_of(rank)).first->second != node_of(rank);
  });
}

void Wiring::scale_up_port(int rank, bool out, bool between_nodes, std::vector<Wire>& into) const {
  into.push_back(wire_of(between_nodes || shares_port_ ? Kind::domain_port : Kind::node_port, out, at(rank)));
}

void Wiring::nic_port(int rank, bool out, std::vector<Wire>& into) const {
  if (cluster_.intra_kind == IntraNode::pcie) {
    into.push_back(wire_of(Kind::node_port, out, at(rank)));
  } else if (cluster_.to_nic_bytes_per_s() > 0) {
    into.push_back(wire_of(Kind::pcie, out, at(rank)));
  }
  into.push_back(wire_of(Kind::nic, out, at(node_of(rank) * cluster_.rails_per_node() + rail_of(rank))));
}

void Wiring::route(int from, int to, int rail, std::uint64_t flow, std::vector<Wire>& into) const {
  if (from == to) return;
  const bool same_node = node_of(from) == node_of(to) && cluster_.intra_kind != IntraNode::none;
  if (same_node && cluster_is_mesh_) {
    into.push_back(wire_of(Kind::mesh, true, at(from * cluster_.gpus_per_node + to % cluster_.gpus_per_node)));
    return;
  }
  if (same_node || same_domain(from, to)) {
    scale_up_port(from, true, !same_node, into);
    scale_up_port(to, false, !same_node, into);
    return;
  }
  const int over = rail < 0 ? rail_of(from) : rail;
  const auto port = [&](int rank, bool out) {
    nic_port(rank, out, into);
    into.back() = wire_of(Kind::nic, out, at(node_of(rank) * cluster_.rails_per_node() + over));
  };
  port(from, true);
  trunks(from, to, over, flow, into);
  port(to, false);
}

void Wiring::trunks(int from, int to, int rail, std::uint64_t flow, std::vector<Wire>& into) const {
  if (fabric_) {
    topology::Route route;
    fabric_->route(from, to, topology::flow_hash(flow, from, to), route, rail);
    for (const topology::LinkId link : route.links) {
      if (fabric_->links()[link].kind == topology::LinkKind::trunk) into.push_back(wire_of(Kind::trunk, true, link));
    }
    return;
  }
  if (leaf_bytes_per_s_ == 0 && pod_bytes_per_s_ == 0) return;
  const auto side = [&](Kind kind, int here, int there) {
    if (here == there) return;
    into.push_back(wire_of(kind, true, at(here)));
    into.push_back(wire_of(kind, false, at(there)));
  };
  if (leaf_bytes_per_s_ > 0) side(Kind::leaf, leaf_of(node_of(from), rail), leaf_of(node_of(to), rail));
  if (pod_bytes_per_s_ > 0) side(Kind::pod, node_of(from) / cluster_.network.nodes_per_pod, node_of(to) / cluster_.network.nodes_per_pod);
}

void Wiring::tree_from(int root, int to, int rail, std::uint64_t flow, std::vector<Wire>& into) const {
  if (!fabric_) return trunks(root, to, rail, flow, into);
  topology::Route route;
  fabric_->route(root, to, topology::flow_hash(flow, root, root), route, rail);
  for (const topology::LinkId link : route.links) {
    if (fabric_->links()[link].kind == topology::LinkKind::trunk) into.push_back(wire_of(Kind::trunk, true, link));
  }
}

void Wiring::tree_to(int root, int from, int rail, std::uint64_t flow, std::vector<Wire>& into) const {
  if (!fabric_) return trunks(from, root, rail, flow, into);
  const auto first = static_cast<std::ptrdiff_t>(into.size());
  tree_from(root, from, rail, flow, into);
  for (auto wire = into.begin() + first; wire != into.end(); ++wire)
    *wire = wire_of(Kind::trunk, true, fabric_->reverse(static_cast<topology::LinkId>(index_of(*wire))));
}

// In a PCIe box over the GPU's only port, and beyond it the link to the host where that is narrower or shared.
void Wiring::host_copy(int rank, GroupKind kind, std::vector<Wire>& into) const {
  if (kind == GroupKind::host_memory) {
    into.push_back(wire_of(Kind::host_memory, true, at(node_of(rank))));
    return;
  }
  const bool out = kind == GroupKind::to_host;
  const bool box = cluster_.intra_kind == IntraNode::pcie;
  if (box) into.push_back(wire_of(Kind::node_port, out, at(rank)));
  const bool free = cluster_.gpus_per_host_link == 1 && cluster_.host.effective_bytes_per_s() >= cluster_.intra.effective_bytes_per_s();
  if (box && free) return;
  const int first = rank - rank % cluster_.gpus_per_node % cluster_.gpus_per_host_link;
  into.push_back(wire_of(out ? Kind::to_host : Kind::from_host, out, at(first)));
}

double Wiring::bytes_per_s(Wire wire) const {
  switch (kind_of(wire)) {
    case Kind::node_port:
    case Kind::mesh:
      return cluster_.intra.effective_bytes_per_s();
    case Kind::domain_port:
      return cluster_.supernode.effective_bytes_per_s();
    case Kind::pcie:
      return cluster_.to_nic_bytes_per_s();
    case Kind::nic:
      return cluster_.rail_bytes_per_s() / (slow_nic_.empty() ? 1 : slow_nic_[index_of(wire)]);
    case Kind::leaf:
      return leaf_bytes_per_s_;
    case Kind::pod:
      return pod_bytes_per_s_;
    case Kind::trunk:
      return fabric_->links()[index_of(wire)].bandwidth_bytes_per_s / slow_trunks_;
    case Kind::to_host:
    case Kind::from_host:
      return cluster_.host.effective_bytes_per_s();
    case Kind::host_memory:
      return cluster_.host_memory.bytes_per_s;
  }
  throw std::logic_error("no such wire");
}

std::optional<PortKind> Wiring::port_kind(Wire wire) const {
  switch (kind_of(wire)) {
    case Kind::node_port:
    case Kind::domain_port:
    case Kind::mesh:
      return PortKind::scale_up;
    case Kind::pcie:
    case Kind::nic:
      return PortKind::nic;
    case Kind::leaf:
    case Kind::pod:
    case Kind::trunk:
      return std::nullopt;
    case Kind::to_host:
    case Kind::from_host:
    case Kind::host_memory:
      return PortKind::host;
  }
  throw std::logic_error("no such wire");
}

std::vector<int> Wiring::users(Wire wire) const {
  const auto index = static_cast<int>(index_of(wire));
  const auto run = [&](int first, int count) {
    std::vector<int> ranks;
    for (int rank = first; rank < std::min(first + count, gpus_); ++rank) ranks.push_back(rank);
    return ranks;
  };
  switch (kind_of(wire)) {
    case Kind::node_port:
    case Kind::domain_port:
    case Kind::pcie:
      return {index};
    case Kind::mesh:
      return {index / cluster_.gpus_per_node};
    case Kind::nic: {
      std::vector<int> ranks = run(index / cluster_.rails_per_node() * cluster_.gpus_per_node, cluster_.gpus_per_node);
      std::erase_if(ranks, [&](int rank) { return rail_of(rank) != index % cluster_.rails_per_node(); });
      return ranks;
    }
    case Kind::to_host:
    case Kind::from_host: {
      const int left_in_node = cluster_.gpus_per_node - index % cluster_.gpus_per_node;
      return run(index, std::min(cluster_.gpus_per_host_link, left_in_node));
    }
    case Kind::host_memory:
      return run(index * cluster_.gpus_per_node, cluster_.gpus_per_node);
    case Kind::leaf:
    case Kind::pod:
    case Kind::trunk:
      return {};
  }
  throw std::logic_error("no such wire");
}

std::string_view Wiring::name_of(Wire wire) {
  switch (kind_of(wire)) {
    case Kind::node_port:
    case Kind::domain_port:
      return "scale-up ports";
    case Kind::mesh:
      return "mesh links";
    case Kind::pcie:
      return "PCIe links";
    case Kind::nic:
      return "NICs";
    case Kind::leaf:
      return "leaf uplinks";
    case Kind::pod:
      return "pod uplinks";
    case Kind::trunk:
      return "trunks";
    case Kind::to_host:
    case Kind::from_host:
      return "host links";
    case Kind::host_memory:
      return "host memories";
  }
  throw std::logic_error("no such wire");
}

std::uint64_t Wiring::sort_of(Wire wire) { return wire >> (kind_shift - 1); }

int Wiring::owner(Wire wire) const {
  const auto index = static_cast<int>(index_of(wire));
  switch (kind_of(wire)) {
    case Kind::node_port:
    case Kind::domain_port:
    case Kind::pcie:
      return index;
    case Kind::nic:  // a port of a node's last rail may have no GPU of the job behind it
      if (!own_nics_ || index / cluster_.rails_per_node() * cluster_.gpus_per_node + index % cluster_.rails_per_node() >= gpus_) return -1;
      return index / cluster_.rails_per_node() * cluster_.gpus_per_node + index % cluster_.rails_per_node();
    case Kind::to_host:
    case Kind::from_host:
      return cluster_.gpus_per_host_link == 1 ? index : -1;
    default:
      return -1;
  }
}

Wire Wiring::of_owner(Wire wire, int rank) const {
  const bool out = wire == wire_of(kind_of(wire), true, index_of(wire));
  const bool nic = kind_of(wire) == Kind::nic;
  return wire_of(kind_of(wire), out, at(nic ? node_of(rank) * cluster_.rails_per_node() + rail_of(rank) : rank));
}

}  // namespace rehearse::sim

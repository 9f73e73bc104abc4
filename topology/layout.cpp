#include "topology/layout.hpp"

#include <algorithm>

namespace rehearse::topology {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// With equal rates inside the node and between the nodes of a supernode there is one port per GPU and one switch for all.
bool shares_port(const ClusterSpec& cluster) {
  return cluster.supernode_gpus > 0 && cluster.intra_kind == IntraNode::nvswitch &&
         cluster.intra.effective_bytes_per_s() == cluster.supernode.effective_bytes_per_s();
}

}  // namespace

Layout::Layout(const ClusterSpec& cluster, int gpu_count)
    : gpus(gpu_count),
      gpus_per_node(cluster.gpus_per_node),
      nodes(ceil_div(gpu_count, cluster.gpus_per_node)),
      rails(cluster.rails_per_node()),
      domain_gpus(cluster.domain_gpus()),
      domains(cluster.supernode_gpus > 0 ? ceil_div(gpu_count, cluster.supernode_gpus) : 0),
      mesh(cluster.intra_kind == IntraNode::full_mesh),
      node_switch(cluster.intra_kind == IntraNode::pcie || (cluster.intra_kind == IntraNode::nvswitch && !shares_port(cluster))),
      pcie_box(cluster.intra_kind == IntraNode::pcie) {}

void Layout::number_vertices(std::uint32_t network_switches, bool disks, bool shared) {
  const auto node_count = static_cast<VertexId>(nodes);
  node_switch0 = static_cast<VertexId>(gpus);
  domain_switch0 = node_switch0 + (node_switch ? node_count : 0);
  nic0 = domain_switch0 + static_cast<VertexId>(domains);
  switch0 = nic0 + node_count * static_cast<VertexId>(rails);
  host0 = switch0 + network_switches;
  disk0 = host0 + node_count;
  shared0 = disk0 + (disks ? node_count : 0);
  vertices = shared0 + (shared ? 2 : 0);
}

int Layout::gpus_in(int node) const { return std::min(gpus_per_node, gpus - node * gpus_per_node); }

LinkId Layout::mesh_link(int from, int to) const {
  const int node = node_of(from);
  const int first = node * gpus_per_node;
  const int peers = gpus_in(node) - 1;
  const int before = first * (gpus_per_node - 1) + (from - first) * peers;
  return mesh0 + static_cast<LinkId>(before + (to - first) - (to > from ? 1 : 0));
}

LinkId Layout::to_nic(int gpu) const {
  const LinkId base = pcie_box ? node0 : pcie0;
  return base == no_link ? no_link : base + 2 * static_cast<LinkId>(gpu);
}

VertexKind Layout::kind(VertexId vertex) const {
  if (vertex < node_switch0) return VertexKind::gpu;
  if (vertex < nic0) return VertexKind::scale_up_switch;
  if (vertex < switch0) return VertexKind::nic;
  if (vertex < host0) return VertexKind::network_switch;
  return vertex < disk0 ? VertexKind::host : VertexKind::storage;
}

}  // namespace rehearse::topology

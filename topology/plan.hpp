// The immutable part of a fabric, shared by all its copies with failures: numbering, links, the graph of network switches.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/fabric.hpp"
#include "topology/layout.hpp"

namespace rehearse::topology {

struct Hop {
  LinkId link = 0;
  std::uint8_t order = 0;  // as in NetworkPlan::Trunk
  std::uint8_t weight = 1;
};

// Network switches only, numbered from 0; both directions of every trunk.
using SwitchMesh =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Hop, boost::no_property, std::uint32_t, std::uint32_t>;

struct Plan {
  Plan(const ClusterSpec& cluster_spec, int gpu_count);

  ClusterSpec cluster;
  Layout layout;
  std::vector<Link> links;
  std::vector<SwitchTier> tiers;
  std::vector<std::uint32_t> attach;  // switch of each NIC port
  SwitchMesh switches;

  [[nodiscard]] std::string name(VertexId vertex) const;
  [[nodiscard]] int level(VertexId vertex) const;
  // The other direction of a trunk.
  [[nodiscard]] LinkId reverse_trunk(LinkId link) const { return layout.trunk0 + ((link - layout.trunk0) ^ 1U); }
};

// What failed. Empty vectors: nothing.
struct Mask {
  std::vector<std::uint8_t> vertex, link;
  [[nodiscard]] bool alive_vertex(VertexId v) const { return vertex.empty() || vertex[v] == 0; }
  [[nodiscard]] bool alive(LinkId l) const { return link.empty() || link[l] == 0; }
  [[nodiscard]] bool any() const { return !link.empty(); }
};

// One directed step between neighbours. `link` is no_link for the hop between a GPU (or PCIe switch) and a NIC that is not modelled as a
// link.
struct Edge {
  VertexId from = 0, to = 0;
  LinkId link = no_link;
};

// Every step that traffic between GPUs can take over what is alive; hosts and storage are left out.
[[nodiscard]] std::vector<Edge> traffic_edges(const Plan& plan, const Mask& mask);

}  // namespace rehearse::topology

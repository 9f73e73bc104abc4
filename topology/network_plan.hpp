// The scale-out network alone: which switches there are, how they are linked, on which one each NIC port hangs.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/layout.hpp"

namespace rehearse::topology {

struct NetworkPlan {
  // A cable or bundle between two switches, the same in both directions.
  struct Trunk {
    std::uint32_t a = 0, b = 0;
    double bandwidth_bytes_per_s = 0;  // effective
    std::uint8_t order = 0;            // among shortest next hops those of the lowest order are taken (torus: the dimension)
    std::uint8_t weight = 1;           // length in hops (dragonfly: a global link outweighs two local ones)
  };
  std::vector<SwitchTier> tiers;
  std::vector<Trunk> trunks;
  std::vector<std::uint32_t> attach;  // [node * rails + rail]: index of the switch

  [[nodiscard]] std::uint32_t switch_count() const;
};

// The part of the network that the first `nodes` nodes need. Trees are built above the leaves in use; their uplink capacity is that of the
// whole tree. Torus, dragonfly and free-form networks are built whole.
[[nodiscard]] NetworkPlan plan_network(const ClusterSpec& cluster, int nodes);

// One function per family of networks.
[[nodiscard]] NetworkPlan plan_single_switch(const ClusterSpec& cluster, int nodes);
[[nodiscard]] NetworkPlan plan_leaf_spine(const ClusterSpec& cluster, int nodes);
[[nodiscard]] NetworkPlan plan_rail_optimised(const ClusterSpec& cluster, int nodes);
[[nodiscard]] NetworkPlan plan_fat_tree(const ClusterSpec& cluster, int nodes);
[[nodiscard]] NetworkPlan plan_torus(const ClusterSpec& cluster, int nodes);
[[nodiscard]] NetworkPlan plan_dragonfly(const ClusterSpec& cluster, int nodes);
[[nodiscard]] NetworkPlan plan_graph(const ClusterSpec& cluster, int nodes);

}  // namespace rehearse::topology

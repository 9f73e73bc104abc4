// What NICs reach in jobs of many nodes: `nics.by_nodes` of a cluster file, as nccl-tests measured it.
#pragma once

#include "config/node.hpp"
#include "config/shape.hpp"
#include "topology/cluster.hpp"

namespace rehearse::topology {

[[nodiscard]] config::Shape by_nodes_shape();

// Sets the efficiency of the NICs to what `document`, the cluster's own, says of jobs of so many nodes: between two listed numbers of nodes
// on a straight line in logarithms, above the last as of the last, below the first `efficiency`. Refuses with position what is no list.
void settle_nics(ClusterSpec& cluster, const config::Node& document, int nodes);

}  // namespace rehearse::topology

// What NICs reach in jobs of many nodes: `nics.by_nodes` of a cluster file, as nccl-tests measured it, else `network.at_scale`.
#pragma once

#include "config/node.hpp"
#include "config/shape.hpp"
#include "topology/cluster.hpp"

namespace rehearse::topology {

constexpr double least_nic_efficiency = 1e-3;

// What is left on 64 nodes and more of a network of leaves and spines that nobody measured. Fitted to half of the steps of InternEvo,
// Modalities (Leonardo, MareNostrum 5), nanotron, vTrain, fms-fsdp, torchtitan and Neuron on 2 to 512 nodes, each source's own level of few
// nodes taken out; with one of them left out it is 0.5 to 0.55 for all but one (docs/accuracy.md, "Networks that nobody measured").
constexpr double unmeasured_at_scale = 0.55;

[[nodiscard]] config::Shape by_nodes_shape();

// Sets the efficiency of the NICs to what `document`, the cluster's own, says of jobs of so many nodes. Listed (`nics.by_nodes`): between
// two numbers of nodes on a straight line in logarithms, above the last as of the last, below the first `efficiency`. Not listed, on leaves
// and spines: `efficiency` up to 16 nodes, `network.at_scale` of it from 64 on, between them on the same line. Refuses with position what
// is no list.
void settle_nics(ClusterSpec& cluster, const config::Node& document, int nodes);

}  // namespace rehearse::topology

#include <fmt/format.h>

#include <map>

#include "topology/read_link.hpp"

namespace rehearse::topology {
namespace {

constexpr int most_gpus_per_node = 1024;
constexpr int most_nodes = 1 << 20;
constexpr int most_gpus_per_supernode = 1 << 16;

IntraNode kind_of(const config::Node& node) {
  static const std::map<std::string, IntraNode> by_name{
      {"nvswitch", IntraNode::nvswitch}, {"full_mesh", IntraNode::full_mesh}, {"pcie", IntraNode::pcie}, {"none", IntraNode::none}};
  return by_name.at(node.at("kind").as_choice({"nvswitch", "full_mesh", "pcie", "none"}));
}

// NVLink SHARP, by the switch of the whole scale-up domain.
void read_in_network(const config::Node& link, const LinkSpec& port, ClusterSpec& cluster) {
  const auto node = link.find("in_network");
  if (!node) return;
  if (cluster.intra_kind != IntraNode::nvswitch) node->fail_at_key("only the switch of a scale-up domain reduces", "kind: nvswitch");
  cluster.in_switch = read_service(*node, port, {"kind"});
  static_cast<void>(node->at("kind").as_choice({"nvls"}));
}

void read_intra(const config::Node& node, ClusterSpec& cluster) {
  cluster.intra_kind = kind_of(node);
  if (cluster.intra_kind == IntraNode::none) {
    node.allow_keys({"kind"});
  } else {
    cluster.intra = read_link(node, {"kind", "in_network"});
    read_in_network(node, cluster.intra, cluster);
  }
}

int read_whole_nodes(const config::Node& node, int low, int high, const ClusterSpec& cluster, std::string_view what) {
  const int gpus = read_count(node, low, high);
  if (gpus % cluster.gpus_per_node != 0)
    node.fail(fmt::format("{} of {} GPUs is not made of whole nodes of {}", what, gpus, cluster.gpus_per_node));
  return gpus;
}

// Spare GPUs are there but left idle by jobs; the fabric consists of the others.
void read_supernode(const config::Node& node, ClusterSpec& cluster) {
  if (cluster.intra_kind == IntraNode::pcie) node.fail_at_key("the nodes of a supernode are linked by NVLink or the like, not by PCIe");
  if (cluster.in_switch.bandwidth_bytes_per_s > 0) node.fail_at_key("in_network belongs to the whole supernode", "supernode.in_network");
  cluster.supernode = read_link(node, {"gpus", "spare", "in_network"});
  read_in_network(node, cluster.supernode, cluster);
  const int gpus = read_whole_nodes(node.at("gpus"), 1, most_gpus_per_supernode, cluster, "a supernode");
  if (const auto spare = node.find("spare")) {
    cluster.supernode_spare_gpus = read_whole_nodes(*spare, 0, gpus - cluster.gpus_per_node, cluster, "a spare part");
  }
  cluster.supernode_gpus = gpus - cluster.supernode_spare_gpus;
}

void read_nics(const config::Node& node, ClusterSpec& cluster) {
  cluster.nic = read_link(node, {"per_node"});
  cluster.nics_per_node = read_count(node.at("per_node"), 1, most_gpus_per_node);
  const int nics = cluster.nics_per_node;
  const int gpus = cluster.gpus_per_node;
  if (gpus % nics != 0 && nics % gpus != 0) {
    node.at("per_node")
        .fail(fmt::format("{} NICs cannot be shared out evenly among {} GPUs", nics, gpus), "one number must divide the other");
  }
}

// In a PCIe box host memory is reached over the GPU's own port.
void read_host(const config::Node& node, ClusterSpec& cluster) {
  const auto host = node.find("host");
  if (cluster.intra_kind != IntraNode::pcie) {
    cluster.host = read_link(node.at("host"), {"gpus_per_link"});
    const int gpus = read_count(node.at("host"), "gpus_per_link", 1, cluster.gpus_per_node, 1);
    if (cluster.gpus_per_node % gpus != 0) {
      node.at("host.gpus_per_link").fail(fmt::format("{} GPUs of a node cannot be shared out to links of {}", cluster.gpus_per_node, gpus));
    }
    cluster.gpus_per_host_link = gpus;
    return;
  }
  if (host) host->fail_at_key("in a pcie node copies to the host use the GPU's own port", "intra_node describes it; leave host out");
  cluster.host = cluster.intra;
}

HostMemorySpec read_host_memory(const config::Node& node) {
  node.allow_keys({"size", "bandwidth"});
  HostMemorySpec memory;
  memory.bytes = node.at("size").as_quantity(config::Dimension::bytes, 1e6);
  if (const auto bandwidth = node.find("bandwidth")) memory.bytes_per_s = read_bandwidth(*bandwidth);
  return memory;
}

double read_rate(const config::Node& node, std::string_view key, std::string_view partner) {
  const auto value = node.find(key);
  if (value && !node.find(partner)) value->fail_at_key(fmt::format("{} without {}", key, partner));
  return value ? read_bandwidth(*value) : 0;
}

StorageSpec read_storage(const config::Node& node) {
  node.allow_keys({"disk_read", "disk_write", "shared_read", "shared_write"});
  return {.disk_read_bytes_per_s = read_rate(node, "disk_read", "disk_write"),
          .disk_write_bytes_per_s = read_rate(node, "disk_write", "disk_read"),
          .shared_read_bytes_per_s = read_rate(node, "shared_read", "shared_write"),
          .shared_write_bytes_per_s = read_rate(node, "shared_write", "shared_read")};
}

void read_pcie(const config::Node& node, ClusterSpec& cluster) {
  if (cluster.intra_kind == IntraNode::pcie) node.fail_at_key("in a pcie node intra_node already describes the way to the NIC");
  if (cluster.nics_per_node == 0) node.fail_at_key("pcie is the way from GPU to NIC, but there are no nics");
  cluster.pcie_bytes_per_s = read_bandwidth(node);
}

// Without a network the cluster is one scale-up domain.
void settle_single_domain(const config::Node& node, ClusterSpec& cluster) {
  const int room = cluster.domain_gpus() / cluster.gpus_per_node;
  if (const auto nics = node.find("nics"))
    nics->fail_at_key("nics without a network: say what they are plugged into", "network: {kind: single_switch}");
  if (cluster.nodes > room)
    node.at("nodes").fail(fmt::format("{} nodes but no network between them", cluster.nodes), "add nics and network");
  if (cluster.intra_kind == IntraNode::none && cluster.gpus_per_node > 1 && cluster.supernode_gpus == 0) {
    node.at("intra_node").fail("the GPUs of a node are not linked: neither inside the node nor by a network");
  }
  if (cluster.nodes == 0) cluster.nodes = room;
}

}  // namespace

ClusterSpec read_cluster(const config::Node& node, const std::string& name) {
  node.allow_keys({"gpu", "gpus_per_node", "nodes", "intra_node", "supernode", "nics", "pcie", "network", "host", "host_memory", "storage",
                   "source", "sources", "notes"});
  ClusterSpec cluster;
  cluster.name = name;
  cluster.gpu = node.at("gpu").as_string();
  cluster.gpus_per_node = read_count(node.at("gpus_per_node"), 1, most_gpus_per_node);
  cluster.nodes = read_count(node, "nodes", 1, most_nodes, 0);
  read_intra(node.at("intra_node"), cluster);
  if (const auto supernode = node.find("supernode")) read_supernode(*supernode, cluster);
  const auto network = node.find("network");
  if (const auto nics = node.find("nics")) read_nics(*nics, cluster);
  if (const auto pcie = node.find("pcie")) read_pcie(*pcie, cluster);
  read_host(node, cluster);
  if (const auto memory = node.find("host_memory")) cluster.host_memory = read_host_memory(*memory);
  if (const auto storage = node.find("storage")) cluster.storage = read_storage(*storage);
  if (!network) {
    settle_single_domain(node, cluster);
  } else if (cluster.nics_per_node == 0) {
    network->fail_at_key("a network but no nics to reach it");
  } else {
    cluster.network = read_network(*network, cluster);
  }
  return cluster;
}

}  // namespace rehearse::topology

#include <fmt/format.h>

#include "config/keys.hpp"
#include "topology/nic_scale.hpp"
#include "topology/read_link.hpp"

namespace rehearse::topology {
namespace {

using config::Key;
using config::Keys;

constexpr int most_gpus_per_node = 1024;
constexpr int most_nodes = 1 << 20;
constexpr int most_gpus_per_supernode = 1 << 16;

const config::Names<IntraNode> intra_kinds{
    {"nvswitch", IntraNode::nvswitch}, {"full_mesh", IntraNode::full_mesh}, {"pcie", IntraNode::pcie}, {"none", IntraNode::none}};

const InNetwork nvls{"nvls", "NVLink SHARP.", "The switch reduces and multicasts."};

// Inside a scale-up domain GPUs read one another's memory.
const config::Parameter& reads() {
  static const config::Parameter key{"read_latency", config::quantity(config::Dimension::time).shape, false, "as latency",
                                     "Of one round of an engine's kernel that reads the memory of its peers (one-shot, two-shot)."};
  return key;
}

void read_reads(const config::Node& node, LinkSpec& link) {
  if (const auto latency = node.find("read_latency")) link.read_latency_s = read_latency(*latency);
}

More and_protocols(More keys, const TypicalProtocols& typical = typical_nvlink_protocols) {
  for (config::Parameter& key : protocol_keys(typical)) keys.push_back(std::move(key));
  return keys;
}

constexpr double least_exchange_share = 0.01;
constexpr std::string_view all_to_alls = "Share of that rate at which a library's all-to-all goes.";

config::Parameter exchange_share(std::string_view what) {
  return {"exchange", config::number(least_exchange_share, 1).shape, false, "1", std::string(what)};
}

void read_exchange_share(const config::Node& node, LinkSpec& link) {
  if (const auto share = node.find("exchange")) link.exchange_share = share->as_number(least_exchange_share, 1);
}

// Of a domain whose GPUs write one another's memory.
const config::Parameter& exchange_latency() {
  static const config::Parameter key{"exchange_latency", config::quantity(config::Dimension::time).shape, false, "as latency",
                                     "Of a library's all-to-all, all of whose messages are posted at once."};
  return key;
}

void read_exchange_latency(const config::Node& node, LinkSpec& link) {
  if (const auto latency = node.find("exchange_latency")) link.exchange_latency_s = read_latency(*latency);
}

const More& intra_keys() {
  static const More keys = and_protocols({{"kind", choice(intra_kinds).shape, true, "", "How the GPUs of a node are linked."},
                                          in_network_key(nvls),
                                          reads(),
                                          exchange_share(all_to_alls),
                                          exchange_latency()});
  return keys;
}

// GPUs that are not linked inside their node have no bandwidth.
config::Shape intra_shape() {
  config::Parameter kind = intra_keys().front();
  kind.shape.choices = {"none"};
  const auto either = [](double pcie, double scale_up, std::string_view unit) {
    return fmt::format("{:.3g}{} (pcie), {:.3g}{}", pcie, unit, scale_up, unit);
  };
  const config::Shape linked = link_shape(either(typical_pcie.efficiency, typical_scale_up.efficiency, ""),
                                          either(typical_pcie.latency_s * 1e6, typical_scale_up.latency_s * 1e6, " us"), intra_keys());
  return config::either({linked, {.kind = config::Shape::Kind::mapping, .keys = {kind}}});
}

const More& supernode_keys() {
  static const More keys =
      and_protocols({{"gpus", config::whole(1, most_gpus_per_supernode).shape, true, "", "In one domain of several nodes."},
                     {"spare", config::whole(0, most_gpus_per_supernode).shape, false, "0", "Of them left idle."},
                     in_network_key(nvls),
                     reads(),
                     exchange_share(all_to_alls),
                     exchange_latency()});
  return keys;
}

const More& nic_keys() {
  static const More keys = and_protocols(
      {{"per_node", config::whole(1, most_gpus_per_node).shape, true, "", "NICs of a node."},
       exchange_share("Share of that rate at which exchanges of experts go."),
       {"by_nodes", by_nodes_shape(), false, "efficiency, in jobs of any size", "Efficiency by the number of nodes of a job, as measured."},
       {"dispatch_latency", config::quantity(config::Dimension::time).shape, false, "0 s",
        "More for each dispatch and combine between nodes by kernels that send by themselves (moe.dispatcher: hierarchical) where the host "
        "sends for them."}},
      typical_nic_protocols);
  return keys;
}

const More& host_keys() {
  static const More keys{
      {"gpus_per_link", config::whole(1, most_gpus_per_node).shape, false, "1", "Neighbouring GPUs that share one such link."}};
  return keys;
}

// NVLink SHARP, by the switch of the whole scale-up domain.
void read_in_switch(const config::Node& link, const LinkSpec& port, ClusterSpec& cluster) {
  const auto node = link.find("in_network");
  if (!node) return;
  if (cluster.intra_kind != IntraNode::nvswitch) node->fail_at_key("only the switch of a scale-up domain reduces", "kind: nvswitch");
  cluster.in_switch = read_in_network(*node, port, nvls);
}

void refuse_in_pcie_nodes(const config::Node& link, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const auto given = link.find(key))
      given->fail_at_key("the ports of a pcie node carry all of its traffic alike: by one protocol, exchanges as all else", "leave it out");
  }
}

void read_intra(const config::Node& node, ClusterSpec& cluster) {
  cluster.intra_kind = intra_kinds.read(node.at("kind"));
  if (cluster.intra_kind == IntraNode::none) {
    node.allow_keys({"kind"});
  } else {
    cluster.intra = read_link(node, cluster.intra_kind == IntraNode::pcie ? typical_pcie : typical_scale_up, intra_keys());
    read_reads(node, cluster.intra);
    if (cluster.intra_kind == IntraNode::pcie) refuse_in_pcie_nodes(node, {"exchange", "exchange_latency"});
    read_exchange_share(node, cluster.intra);
    read_exchange_latency(node, cluster.intra);
    read_in_switch(node, cluster.intra, cluster);
    read_protocols(node, cluster.intra, typical_nvlink_protocols, cluster.intra.typical && cluster.intra_kind == IntraNode::nvswitch);
    if (cluster.intra_kind == IntraNode::pcie && (cluster.intra.ll || cluster.intra.ll128))
      node.at(cluster.intra.ll ? "ll" : "ll128")
          .fail_at_key("the ports of a pcie node carry all of its traffic by one protocol", "leave it out");
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
  cluster.supernode = read_link(node, typical_scale_up, supernode_keys());
  read_reads(node, cluster.supernode);
  read_exchange_share(node, cluster.supernode);
  read_exchange_latency(node, cluster.supernode);
  read_in_switch(node, cluster.supernode, cluster);
  read_protocols(node, cluster.supernode, typical_nvlink_protocols, cluster.supernode.typical && cluster.intra.ll.has_value());
  const int gpus = read_whole_nodes(node.at("gpus"), 1, most_gpus_per_supernode, cluster, "a supernode");
  if (const auto spare = node.find("spare")) {
    cluster.supernode_spare_gpus = read_whole_nodes(*spare, 0, gpus - cluster.gpus_per_node, cluster, "a spare part");
  }
  cluster.supernode_gpus = gpus - cluster.supernode_spare_gpus;
}

void read_nics(const config::Node& node, ClusterSpec& cluster) {
  if (cluster.intra_kind == IntraNode::pcie) refuse_in_pcie_nodes(node, {"ll", "ll128", "exchange"});
  cluster.nic = read_link(node, typical_nic, nic_keys());
  if (node.find("by_nodes")) cluster.nic.typical = false;
  read_protocols(node, cluster.nic, typical_nic_protocols, cluster.nic.typical && cluster.intra.ll.has_value());
  read_exchange_share(node, cluster.nic);
  if (const auto more = node.find("dispatch_latency")) cluster.dispatch_s = read_latency(*more);
  cluster.nics_per_node = read_count(node.at("per_node"), 1, most_gpus_per_node);
  const int nics = cluster.nics_per_node;
  const int gpus = cluster.gpus_per_node;
  if (gpus % nics != 0 && nics % gpus != 0) {
    node.at("per_node")
        .fail(fmt::format("{} NICs cannot be shared out evenly among {} GPUs", nics, gpus), "one number must divide the other");
  }
}

// In a PCIe box host memory is reached over the GPU's own port.
void read_host(const config::Node& host, ClusterSpec& cluster) {
  if (cluster.intra_kind == IntraNode::pcie) {
    host.fail_at_key("in a pcie node copies to the host use the GPU's own port", "intra_node describes it; leave host out");
  }
  cluster.host = read_link(host, typical_host, host_keys());
  const int gpus = read_count(host, "gpus_per_link", 1, cluster.gpus_per_node, 1);
  if (cluster.gpus_per_node % gpus != 0) {
    host.at("gpus_per_link").fail(fmt::format("{} GPUs of a node cannot be shared out to links of {}", cluster.gpus_per_node, gpus));
  }
  cluster.gpus_per_host_link = gpus;
}

config::Form<double> bandwidth_form() {
  config::Form<double> form = config::quantity(config::Dimension::bandwidth);
  form.read = read_bandwidth;
  return form;
}

const Keys<HostMemorySpec>& host_memory_keys() {
  using K = Key<HostMemorySpec>;
  static const Keys<HostMemorySpec> keys{
      K("size", &HostMemorySpec::bytes, config::quantity(config::Dimension::bytes, 1e6), "Of one node.").required(),
      K("bandwidth", &HostMemorySpec::bytes_per_s, bandwidth_form(), "Effective, of all processors together.").otherwise("not known"),
  };
  return keys;
}

const Keys<StorageSpec>& storage_keys() {
  using K = Key<StorageSpec>;
  static const Keys<StorageSpec> keys{
      K("disk_read", &StorageSpec::disk_read_bytes_per_s, bandwidth_form(), "Local disk of one node.").otherwise("none"),
      K("disk_write", &StorageSpec::disk_write_bytes_per_s, bandwidth_form(), "Local disk of one node.").otherwise("none"),
      K("shared_read", &StorageSpec::shared_read_bytes_per_s, bandwidth_form(), "Shared file system, whole cluster.").otherwise("none"),
      K("shared_write", &StorageSpec::shared_write_bytes_per_s, bandwidth_form(), "Shared file system, whole cluster.").otherwise("none"),
  };
  return keys;
}

void read_storage(const config::Node& node, ClusterSpec& cluster) {
  for (const auto& [key, partner] : {std::pair("disk_read", "disk_write"), std::pair("disk_write", "disk_read"),
                                     std::pair("shared_read", "shared_write"), std::pair("shared_write", "shared_read")}) {
    const auto given = node.is_map() ? node.find(key) : std::nullopt;
    if (given && !node.find(partner)) given->fail_at_key(fmt::format("{} without {}", key, partner));
  }
  storage_keys().read(node, cluster.storage);
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

void read_network(const config::Node& node, ClusterSpec& cluster) {
  if (cluster.nics_per_node == 0) node.fail_at_key("a network but no nics to reach it");
  cluster.network = read_network(node, std::as_const(cluster));
}

const Keys<ClusterSpec>& cluster_keys() {
  using K = Key<ClusterSpec>;
  using Spec = ClusterSpec;
  const auto note = [](const config::Node&, Spec&) {};
  const config::Shape bandwidth = bandwidth_form().shape;
  static const Keys<ClusterSpec> keys{
      K(
          "gpu", config::text().shape, [](const config::Node& node, Spec& cluster) { cluster.gpu = node.as_string(); }, {},
          "A name, a path or the content.")
          .required(),
      K("gpus_per_node", &Spec::gpus_per_node, config::whole(1, most_gpus_per_node), "GPUs of a node.").required(),
      K("nodes", &Spec::nodes, config::whole(1, most_nodes), "Nodes.").otherwise("as many as a job needs"),
      K("intra_node", intra_shape(), read_intra, {}, "Links inside a node.").required(),
      K("supernode", link_shape(typical_scale_up, supernode_keys()), read_supernode, {}, "A scale-up domain of several nodes.")
          .otherwise("the node is the domain"),
      K("nics", link_shape(typical_nic, nic_keys()), read_nics, {}, "Ports to the network.").otherwise("none"),
      K("pcie", bandwidth, read_pcie, {}, "From GPU to NIC.").otherwise("not limiting"),
      K(
          "network", network_shape(), [](const config::Node& node, Spec& cluster) { read_network(node, cluster); }, {},
          "Between the nodes (cluster-format.md).")
          .otherwise("none: one scale-up domain"),
      K("host", link_shape(typical_host, host_keys()), read_host, {}, "From GPU to host memory; required but in a pcie node.")
          .otherwise("as intra_node in a pcie node", [](Spec& cluster) { cluster.host = cluster.intra; }),
      K("host_memory", &Spec::host_memory, mapping(host_memory_keys()), "Of one node's host.").otherwise("not known"),
      K("storage", storage_keys().shape(), read_storage, {}, "For checkpoints.").otherwise("none"),
      K("source", config::Shape{}, note, {}, "Where the numbers come from."),
      K("sources", config::Shape{}, note, {}, "The same, several."),
      K("notes", config::Shape{}, note, {}, "What else is to be said."),
  };
  return keys;
}

}  // namespace

config::Shape cluster_shape() { return cluster_keys().shape(); }

ClusterSpec read_cluster(const config::Node& node, const std::string& name) {
  ClusterSpec cluster;
  cluster.name = name;
  cluster_keys().read(node, cluster);
  if (cluster.intra_kind != IntraNode::pcie) static_cast<void>(node.at("host"));
  if (!node.find("network")) settle_single_domain(node, cluster);
  settle_nics(cluster, node, 1);  // refuses a list that is none
  return cluster;
}

}  // namespace rehearse::topology

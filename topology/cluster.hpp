// A cluster as described by a YAML file (platforms/clusters/*.yaml; docs/cluster-format.md).
// Rates are per direction, in bytes per second; `efficiency` is the share of the line rate that large messages reach.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.hpp"
#include "config/shape.hpp"

namespace rehearse::topology {

// How NCCL moves a buffer. simple: chunks, each told by a flag after it; ll, ll128: with a flag in every 8 (128) bytes, of which 4 (120)
// are data, so that nobody waits for a chunk. automatic: the fastest for the call.
enum class Protocol : std::uint8_t { automatic, simple, ll, ll128 };

// Of ll or ll128 over one kind of link.
struct ProtocolSpec {
  double call_s = 0;      // of a call, beside its rounds
  double latency_s = 0;   // of a round
  double efficiency = 1;  // share of the line rate that data reaches
};

struct LinkSpec {
  double bandwidth_bytes_per_s = 0;           // line rate, one direction
  double efficiency = 1;                      // (0, 1]: what a large transfer reaches; header and protocol overhead
  double latency_s = 0;                       // alpha of one message or one round of a collective over this kind of link
  std::optional<double> read_latency_s = {};  // of one round of a kernel that reads the memory of its peers; as latency_s where not known
  bool typical = false;                       // `efficiency` is what links of the kind have in common, and not this one's own
  double exchange_share = 1;                  // of the effective rate, what a library's all-to-all reaches; NICs: any exchange of experts
  std::optional<double> exchange_latency_s = {};    // of a library's all-to-all over it, in the place of latency_s
  std::optional<ProtocolSpec> ll = {}, ll128 = {};  // none: collectives do without; all that stands above is of `simple`
  [[nodiscard]] double exchange_wait_s() const { return exchange_latency_s.value_or(latency_s) - latency_s; }  // more than another call
  [[nodiscard]] const std::optional<ProtocolSpec>& by(Protocol protocol) const {
    static const std::optional<ProtocolSpec> none;
    switch (protocol) {
      case Protocol::ll:
        return ll;
      case Protocol::ll128:
        return ll128;
      default:
        return none;
    }
  }
  [[nodiscard]] double effective_bytes_per_s() const { return bandwidth_bytes_per_s * efficiency; }
  [[nodiscard]] double round_s(bool reads) const { return reads ? read_latency_s.value_or(latency_s) : latency_s; }
};

enum class IntraNode { nvswitch, full_mesh, pcie, none };
enum class Network { none, single_switch, leaf_spine, rail_optimised, fat_tree, torus, dragonfly, graph };

// A free-form graph of switches: named switches, trunks between them, and the switch each (node, nic) hangs on.
struct SwitchGraph {
  struct Trunk {
    std::string a, b;
    LinkSpec link;
    int count = 1;  // parallel cables
  };
  std::vector<std::string> switches;
  std::vector<Trunk> trunks;
  std::vector<std::vector<std::string>> attach;  // [node][nic]; one row repeated for all nodes when there is one row only
};

struct NetworkSpec {
  Network kind = Network::none;
  LinkSpec trunk;                   // switch to switch; bandwidth of one cable
  LinkSpec in_switch;               // a NIC's rate and a pass's latency when the switches reduce and multicast; bandwidth 0: they do not
  double oversubscription = 1;      // leaf down / leaf up capacity, >= 1
  int nodes_per_leaf = 0;           // leaf_spine, rail_optimised (per rail group), fat_tree (edge)
  int spines = 0;                   // leaf_spine, rail_optimised (per plane); 0 = as many as the uplinks need
  bool separate_planes = false;     // rail_optimised: each rail has spines of its own (multi-plane); else all leaves share the spines
  int nodes_per_pod = 0;            // fat_tree; a file may give the number of pods instead
  double pod_oversubscription = 1;  // fat_tree: pod down / pod up (1:7 in Llama 3's cluster = 7)
  std::vector<int> dims;            // torus: nodes per dimension
  std::vector<LinkSpec> axes;       // torus: cable of each dimension
  std::vector<bool> wrap;           // torus: whether each dimension closes to a ring
  int groups = 0, routers_per_group = 0, nodes_per_router = 0;  // dragonfly
  SwitchGraph graph;
};

struct StorageSpec {
  double disk_read_bytes_per_s = 0, disk_write_bytes_per_s = 0;      // local disk of one node; 0 = none
  double shared_read_bytes_per_s = 0, shared_write_bytes_per_s = 0;  // shared file system, whole cluster; 0 = none
};

// Of one node; 0 = not known.
struct HostMemorySpec {
  double bytes = 0;
  double bytes_per_s = 0;  // effective, of all processors together
};

struct ClusterSpec {
  std::string name;
  std::string gpu;  // a file in platforms/gpus/
  int gpus_per_node = 0;
  int nodes = 0;  // 0 = as many as a job needs
  IntraNode intra_kind = IntraNode::nvswitch;
  LinkSpec intra;          // GPU to NVSwitch (or to each peer in a full mesh, or to the PCIe switch)
  LinkSpec in_switch;      // a port's rate and a pass's latency when the scale-up switch reduces and multicasts; bandwidth 0: it does not
  int supernode_gpus = 0;  // GPUs that jobs use in one high-bandwidth domain of several nodes; 0 = the node is the domain
  int supernode_spare_gpus = 0;  // further ones that they leave idle (NVL72: 64 used, 8 spare); not part of the fabric
  LinkSpec supernode;            // GPU to the domain's switch; used between nodes of one supernode
  int nics_per_node = 0;         // GPU g of a node uses NIC g * nics / gpus_per_node (rail = NIC index); see rails_per_node()
  LinkSpec nic;                  // NIC to its switch
  double dispatch_s = 0;         // a dispatch or combine by kernels that send by themselves takes so much more between nodes
  double pcie_bytes_per_s = 0;   // GPU to NIC; 0 = not limiting
  double sent_bytes_per_s = 0;   // what the job's stack brings of a GPU's messages to its NIC; 0 = not limiting
  NetworkSpec network;
  LinkSpec host;               // GPU to host memory (H2D and D2H)
  int gpus_per_host_link = 1;  // neighbouring GPUs that share one such link: those behind one PCIe switch
  HostMemorySpec host_memory;
  StorageSpec storage;

  // Of which the line rates are known, and not what messages reach.
  [[nodiscard]] bool by_line_rates() const { return intra.typical || supernode.typical || nic.typical; }
  [[nodiscard]] int domain_gpus() const { return supernode_gpus > 0 ? supernode_gpus : gpus_per_node; }
  // Network ports per node. NICs beyond one per GPU are bundled: a transfer is striped over all NICs of its GPU, as NCCL does.
  [[nodiscard]] int rails_per_node() const { return nics_per_node < gpus_per_node ? nics_per_node : gpus_per_node; }
  [[nodiscard]] double rail_bytes_per_s() const {  // effective, one port
    return nics_per_node > 0 ? nic.effective_bytes_per_s() * nics_per_node / rails_per_node() : 0;
  }
  // The narrower of both; 0 = not limiting. GPUs on PCIe switches have one port for everything, which says it.
  [[nodiscard]] double to_nic_bytes_per_s() const {
    if (intra_kind == IntraNode::pcie) return 0;
    if (pcie_bytes_per_s <= 0 || sent_bytes_per_s <= 0) return std::max(pcie_bytes_per_s, sent_bytes_per_s);
    return std::min(pcie_bytes_per_s, sent_bytes_per_s);
  }
  [[nodiscard]] int max_gpus() const { return nodes > 0 ? nodes * gpus_per_node : 0; }  // 0 = unlimited
};

// The keys of a cluster document.
[[nodiscard]] config::Shape cluster_shape();

// Reads and checks a cluster document. Throws config::InputError.
[[nodiscard]] ClusterSpec read_cluster(const config::Node& node, const std::string& name);

}  // namespace rehearse::topology

// How vertices and links of a fabric are numbered. Everything regular is found by arithmetic, so that 16,384 GPUs need no tables.
#pragma once

#include <vector>

#include "topology/cluster.hpp"
#include "topology/fabric.hpp"

namespace rehearse::topology {

inline constexpr LinkId no_link = ~LinkId{0};

// A number of switches with a common name: "leaf" x 64 are leaf0 .. leaf63.
struct SwitchTier {
  std::string name;
  std::uint32_t count = 1;
  bool numbered = true;  // false: one switch of exactly this name
  int level = 1;         // of a tree: 1 has the NICs, 2 is above it (spines, aggregation), 3 above that
};

struct Layout {
  explicit Layout(const ClusterSpec& cluster, int gpu_count);

  int gpus = 0, gpus_per_node = 0, nodes = 0, rails = 0;
  int domain_gpus = 0, domains = 0;  // supernodes; 0 when the node is the domain
  bool mesh = false;                 // GPUs of a node are linked directly
  bool node_switch = false;          // GPUs of a node hang on a switch of their own (NVSwitch or PCIe)
  bool pcie_box = false;             // ... which is a PCIe switch: NICs and host memory lie behind it

  // First vertex of each kind. Order: GPUs, node switches, domain switches, NICs, network switches, hosts, disks, shared storage.
  VertexId node_switch0 = 0, domain_switch0 = 0, nic0 = 0, switch0 = 0, host0 = 0, disk0 = 0, shared0 = 0, vertices = 0;
  void number_vertices(std::uint32_t network_switches, bool disks, bool shared);

  // First link of each kind; links of a pair lie side by side: away from the GPU (or first switch) first, then back.
  LinkId mesh0 = no_link, node0 = no_link, domain0 = no_link, pcie0 = no_link, rail0 = no_link, trunk0 = no_link, host_link0 = no_link;

  [[nodiscard]] int node_of(int gpu) const { return gpu / gpus_per_node; }
  [[nodiscard]] int domain_of(int gpu) const { return gpu / domain_gpus; }
  [[nodiscard]] int gpus_in(int node) const;  // the last node may be filled in part
  [[nodiscard]] int rail_of(int gpu) const { return gpu % gpus_per_node * rails / gpus_per_node; }
  [[nodiscard]] int port(int node, int rail) const { return node * rails + rail; }
  [[nodiscard]] VertexId nic(int node, int rail) const { return nic0 + static_cast<VertexId>(port(node, rail)); }
  [[nodiscard]] LinkId rail_up(int node, int rail) const { return rail0 + 2 * static_cast<LinkId>(port(node, rail)); }
  [[nodiscard]] LinkId mesh_link(int from, int to) const;
  // GPU to the PCIe switch or NIC; no_link when that hop is not limiting.
  [[nodiscard]] LinkId to_nic(int gpu) const;
  [[nodiscard]] VertexKind kind(VertexId vertex) const;
};

}  // namespace rehearse::topology

// Small clusters for the tests, written as their users would write them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "topology/fabric.hpp"

namespace rehearse::topology::test {

inline ClusterSpec cluster_of(const std::string& yaml) { return read_cluster(config::Node::load_text(yaml, "cluster.yaml"), "test"); }

// Nodes of `gpus` GPUs behind an NVSwitch (100 GB/s per GPU) with `nics` NICs of 10 GB/s; `network` in flow style; nodes 0 = not said.
inline std::string yaml_of(const std::string& network, int nodes = 0, int gpus = 4, int nics = 4, const std::string& more = "") {
  return fmt::format(R"(gpu: some-gpu
gpus_per_node: {}
{}intra_node: {{kind: nvswitch, bandwidth: 100 GB/s, efficiency: 1, latency: 2 us}}
nics: {{per_node: {}, bandwidth: 10 GB/s, efficiency: 1, latency: 9 us}}
network: {}
host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
{})",
                     gpus, nodes > 0 ? fmt::format("nodes: {}\n", nodes) : "", nics, network, more);
}

inline Fabric fabric_of(const std::string& yaml, int gpus) { return Fabric::build(cluster_of(yaml), gpus); }

inline std::vector<LinkId> links_of(const Fabric& fabric, int from, int to, std::uint64_t flow = 0, int rail = -1) {
  Route route;
  fabric.route(from, to, flow, route, rail);
  return route.links;
}

// "gpu0 node0/nvswitch gpu1": the vertices along a route, where the way from GPU to NIC is no link beginning at the NIC.
inline std::string way(const Fabric& fabric, const std::vector<LinkId>& links) {
  std::string text;
  for (const LinkId id : links) {
    if (text.empty()) text = fabric.vertex_name(fabric.links()[id].from);
    text += fmt::format(" {}", fabric.vertex_name(fabric.links()[id].to));
  }
  return text;
}

// The vertex of that name; every name is unique.
inline VertexId vertex_named(const Fabric& fabric, const std::string& name) {
  for (VertexId v = 0; v < fabric.vertex_count(); ++v) {
    if (fabric.vertex_name(v) == name) return v;
  }
  throw std::invalid_argument("no vertex " + name);
}

inline LinkId link_between(const Fabric& fabric, const std::string& from, const std::string& to) {
  const VertexId a = vertex_named(fabric, from);
  const VertexId b = vertex_named(fabric, to);
  for (LinkId id = 0; id < fabric.links().size(); ++id) {
    if (fabric.links()[id].from == a && fabric.links()[id].to == b) return id;
  }
  throw std::invalid_argument("no link " + from + " to " + to);
}

}  // namespace rehearse::topology::test

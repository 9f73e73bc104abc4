// Does every route lead from source to destination, link by link, without a loop, and as short as possible?
#include <gtest/gtest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <random>
#include <set>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse::topology;
using namespace rehearse::topology::test;

// "node3/" of "node3/nic0"; "" for others.
std::string node_prefix(const std::string& name) { return name.rfind("node", 0) == 0 ? name.substr(0, name.find('/') + 1) : ""; }

// A GPU stands at all NICs of its node: between it and a NIC no link is needed.
bool follows(const Fabric& fabric, VertexId before, VertexId after) {
  if (before == after) return true;
  const auto nic = [&](VertexId v) { return fabric.vertex_kind(v) == VertexKind::nic; };
  const auto node = [&](VertexId v) {
    const bool gpu = fabric.vertex_kind(v) == VertexKind::gpu;
    return gpu ? fmt::format("node{}/", fabric.node_of(static_cast<int>(v))) : node_prefix(fabric.vertex_name(v));
  };
  return (nic(before) || nic(after)) && node(before) == node(after) && !node(before).empty();
}

void expect_valid(const Fabric& fabric, int from, int to, std::uint64_t flow) {
  const auto links = links_of(fabric, from, to, flow);
  VertexId at = fabric.gpu_vertex(from);
  std::set<VertexId> seen;
  for (const LinkId id : links) {
    const auto& link = fabric.links()[id];
    ASSERT_TRUE(follows(fabric, at, link.from)) << way(fabric, links);
    ASSERT_TRUE(seen.insert(link.from).second) << "loop: " << way(fabric, links);
    ASSERT_GT(link.bandwidth_bytes_per_s, 0);
    at = link.to;
  }
  ASSERT_TRUE(follows(fabric, at, fabric.gpu_vertex(to))) << way(fabric, links);
}

void expect_all_valid(const Fabric& fabric) {
  for (int from = 0; from < fabric.gpu_count(); ++from) {
    for (int to = 0; to < fabric.gpu_count(); ++to) expect_valid(fabric, from, to, static_cast<std::uint64_t>(from * 131 + to));
  }
}

TEST(AreRoutesValid, OnOneSwitch) { expect_all_valid(fabric_of(yaml_of("{kind: single_switch}"), 12)); }
TEST(AreRoutesValid, OnLeafSpine) { expect_all_valid(fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2}"), 30)); }
TEST(AreRoutesValid, OnRails) { expect_all_valid(fabric_of(yaml_of("{kind: rail_optimised, nodes_per_leaf: 2}"), 30)); }
TEST(AreRoutesValid, OnSeparatePlanes) {
  expect_all_valid(fabric_of(yaml_of("{kind: rail_optimised, nodes_per_leaf: 2, separate_planes: true}"), 32));
}
TEST(AreRoutesValid, OnAFatTree) { expect_all_valid(fabric_of(yaml_of("{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2}"), 32)); }
TEST(AreRoutesValid, OnATorus) { expect_all_valid(fabric_of(yaml_of("{kind: torus, dims: [3, 2, 4]}", 24, 2, 2), 48)); }
TEST(AreRoutesValid, OnADragonfly) {
  expect_all_valid(fabric_of(yaml_of("{kind: dragonfly, groups: 5, routers_per_group: 2, nodes_per_router: 2}", 20, 2, 1), 40));
}
TEST(AreRoutesValid, WithSharedNicsAndPcieLinks) {
  expect_all_valid(fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2}", 0, 4, 2, "pcie: 30 GB/s\n"), 24));
}
TEST(AreRoutesValid, WithMoreNicsThanGpus) { expect_all_valid(fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2}", 0, 2, 8), 12)); }

TEST(AreRoutesValid, InsideAMeshAndAPcieBox) {
  const std::string host = "host: {bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}\n";
  expect_all_valid(
      fabric_of("gpu: g\ngpus_per_node: 8\nintra_node: {kind: full_mesh, bandwidth: 25 GB/s, efficiency: 1, latency: 2 us}\n" + host, 8));
  expect_all_valid(fabric_of("gpu: g\ngpus_per_node: 4\nintra_node: {kind: pcie, bandwidth: 25 GB/s, efficiency: 1, latency: 2 us}\n", 4));
}

// The last node of a mesh may be filled in part: its links are numbered differently.
TEST(AreRoutesValid, InAMeshFilledInPart) {
  expect_all_valid(
      fabric_of("gpu: g\ngpus_per_node: 4\nintra_node: {kind: full_mesh, bandwidth: 25 GB/s, efficiency: 1, latency: 2 us}\n"
                "nics: {per_node: 2, bandwidth: 10 GB/s, efficiency: 1, latency: 9 us}\nnetwork: {kind: single_switch}\n"
                "host: {bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}\n",
                11));
}

TEST(AreRoutesValid, BetweenPcieBoxes) {
  const auto fabric = fabric_of(
      "gpu: g\ngpus_per_node: 4\nintra_node: {kind: pcie, bandwidth: 25 GB/s, efficiency: 1, latency: 2 us}\n"
      "nics: {per_node: 1, bandwidth: 10 GB/s, efficiency: 1, latency: 9 us}\nnetwork: {kind: single_switch}\n",
      8);
  EXPECT_EQ(way(fabric, links_of(fabric, 1, 6)), "gpu1 node0/pcie switch0 node1/nic0 gpu6");
}

TEST(AreRoutesValid, InSupernodes) {
  const std::string supernode = "supernode: {gpus: 8, bandwidth: 50 GB/s, efficiency: 1, latency: 3 us}\n";
  expect_all_valid(fabric_of(yaml_of("{kind: single_switch}", 0, 4, 4, supernode), 24));
}

// A random connected graph of switches: a random tree and some more trunks, nodes on random switches.
struct RandomGraph {
  int switches, nodes;
  std::vector<std::pair<int, int>> trunks;
  std::vector<int> attach;

  explicit RandomGraph(std::mt19937& random) : switches(2 + static_cast<int>(random() % 12)), nodes(2 + static_cast<int>(random() % 8)) {
    const auto any = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    for (int s = 1; s < switches; ++s) trunks.emplace_back(s, any(s));
    for (int extra = any(10); extra > 0; --extra) {
      const int a = any(switches);
      const int b = any(switches);
      if (a != b) trunks.emplace_back(a, b);
    }
    for (int n = 0; n < nodes; ++n) attach.push_back(any(switches));
  }

  [[nodiscard]] std::string yaml() const {
    std::string text = "{kind: graph, switches: [s0";
    for (int s = 1; s < switches; ++s) text += fmt::format(", s{}", s);
    text += "], trunks: [";
    for (const auto& [a, b] : trunks) text += fmt::format("{{between: [s{}, s{}]}}, ", a, b);
    text += "], attach: [";
    for (const int s : attach) text += fmt::format("[s{}], ", s);
    return yaml_of(text + "]}", nodes, 2, 1);
  }

  // Hops between all switches by Boost's breadth-first search: the oracle.
  [[nodiscard]] std::vector<int> hops_from(int source) const {
    using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
    Undirected graph(static_cast<std::size_t>(switches));
    for (const auto& [a, b] : trunks) add_edge(static_cast<std::size_t>(a), static_cast<std::size_t>(b), graph);
    std::vector<int> hops(static_cast<std::size_t>(switches), 0);
    const auto record = boost::record_distances(hops.data(), boost::on_tree_edge());
    boost::breadth_first_search(graph, static_cast<std::size_t>(source), boost::visitor(boost::make_bfs_visitor(record)));
    return hops;
  }
};

TEST(AreRoutesValid, AndShortestOnRandomGraphs) {
  std::mt19937 random(20240917);
  for (int round = 0; round < 200; ++round) {
    const RandomGraph graph(random);
    const auto fabric = fabric_of(graph.yaml(), graph.nodes * 2);
    for (int a = 0; a < graph.nodes; ++a) {
      const auto hops = graph.hops_from(graph.attach[static_cast<std::size_t>(a)]);
      for (int b = 0; b < graph.nodes; ++b) {
        if (a == b) continue;
        const auto flow = random();
        expect_valid(fabric, 2 * a, 2 * b + 1, flow);
        // NIC to switch, the hops between the switches, switch to NIC.
        const auto expected = static_cast<std::size_t>(hops[static_cast<std::size_t>(graph.attach[static_cast<std::size_t>(b)])]) + 2;
        ASSERT_EQ(links_of(fabric, 2 * a, 2 * b + 1, flow).size(), expected) << graph.yaml();
      }
    }
  }
}

}  // namespace

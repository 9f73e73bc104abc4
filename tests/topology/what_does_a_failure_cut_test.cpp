// Which switches are single points of failure, and do routes find their way around what failed?
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse::topology;
using namespace rehearse::topology::test;

bool reaches(const Fabric& fabric, int from, int to) {
  Route route;
  try {
    fabric.route(from, to, 0, route);
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

bool all_reach_each_other(const Fabric& fabric) {
  for (int from = 0; from < fabric.gpu_count(); ++from) {
    for (int to = 0; to < fabric.gpu_count(); ++to) {
      if (!reaches(fabric, from, to)) return false;
    }
  }
  return true;
}

// The definition itself: take each switch away and try every pair of GPUs.
std::vector<std::string> by_removal(const Fabric& fabric) {
  std::vector<std::string> names;
  for (VertexId v = 0; v < fabric.vertex_count(); ++v) {
    const bool is_switch = fabric.vertex_kind(v) == VertexKind::scale_up_switch || fabric.vertex_kind(v) == VertexKind::network_switch;
    if (is_switch && !all_reach_each_other(fabric.without({.vertices = {v}, .links = {}}))) names.push_back(fabric.vertex_name(v));
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(WhatDoesAFailureCut, SinglePointsAreThoseThatRemovalFinds) {
  const std::vector<std::pair<std::string, int>> clusters{
      {yaml_of("{kind: single_switch}"), 12},
      {yaml_of("{kind: leaf_spine, nodes_per_leaf: 2}"), 24},
      {yaml_of("{kind: leaf_spine, nodes_per_leaf: 2, spines: 1}"), 24},
      {yaml_of("{kind: rail_optimised, nodes_per_leaf: 2}"), 24},
      {yaml_of("{kind: rail_optimised, nodes_per_leaf: 2}", 0, 4, 1), 24},
      {yaml_of("{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2, trunk: 800 GB/s}"), 16},
      {yaml_of("{kind: torus, dims: [3, 3]}", 9, 1, 1), 9},
      {yaml_of("{kind: dragonfly, groups: 3, routers_per_group: 2, nodes_per_router: 1}", 6, 1, 1), 6},
      {"gpu: g\ngpus_per_node: 4\nintra_node: {kind: nvswitch, bandwidth: 1 GB/s, efficiency: 1, latency: 1 us}\nhost: {bandwidth: 1 GB/s, "
       "efficiency: 1, latency: 1 "
       "us}\n",
       4},
      {"gpu: g\ngpus_per_node: 4\nintra_node: {kind: full_mesh, bandwidth: 1 GB/s, efficiency: 1, latency: 1 us}\nhost: {bandwidth: 1 "
       "GB/s, efficiency: 1, latency: 1 "
       "us}\n",
       4},
      {"gpu: g\ngpus_per_node: 4\nintra_node: {kind: pcie, bandwidth: 1 GB/s, efficiency: 1, latency: 1 us}\n", 4}};
  for (const auto& [yaml, gpus] : clusters) {
    const auto fabric = fabric_of(yaml, gpus);
    EXPECT_EQ(fabric.cuts().single_points, by_removal(fabric)) << yaml;
  }
}

// Random sparse graphs, whose chains and dangling switches are what articulation points are about: a dangling switch cuts nobody off.
TEST(WhatDoesAFailureCut, SinglePointsOnRandomGraphsToo) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const int switches = 3 + static_cast<int>(random() % 6);
    std::string trunks;
    for (int s = 1; s < switches; ++s) trunks += fmt::format("{{between: [s{}, s{}]}}, ", s, random() % static_cast<unsigned>(s));
    if (random() % 2 == 0) trunks += fmt::format("{{between: [s0, s{}]}}, ", switches - 1);
    std::string names;
    for (int s = 0; s < switches; ++s) names += fmt::format("s{}, ", s);
    std::string attach;
    for (int node = 0; node < 4; ++node) {
      attach += fmt::format("[s{}, s{}], ", random() % static_cast<unsigned>(switches), random() % static_cast<unsigned>(switches));
    }
    const auto yaml = yaml_of(fmt::format("{{kind: graph, switches: [{}], trunks: [{}], attach: [{}]}}", names, trunks, attach), 4, 2, 2);
    const auto fabric = fabric_of(yaml, 8);
    ASSERT_EQ(fabric.cuts().single_points, by_removal(fabric)) << yaml;
  }
}

TEST(WhatDoesAFailureCut, NamesOfSinglePoints) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2, spines: 1}"), 24);
  EXPECT_EQ(fabric.cuts().single_points, (std::vector<std::string>{"leaf0", "leaf1", "leaf2", "spine0"}));
}

TEST(WhatDoesAFailureCut, LevelsCountFromTheNicsUp) {
  const auto tree = fabric_of(yaml_of("{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2}"), 32);
  EXPECT_EQ(tree.level(vertex_named(tree, "edge1")), 1);
  EXPECT_EQ(tree.level(vertex_named(tree, "aggregation0")), 2);
  EXPECT_EQ(tree.level(vertex_named(tree, "core0")), 3);
  EXPECT_EQ(tree.level(tree.gpu_vertex(0)), 0);
  EXPECT_EQ(tree.level(vertex_named(tree, "node0/nic0")), 0);
  const auto two = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2, spines: 4}"), 32);
  EXPECT_EQ(two.level(vertex_named(two, "leaf1")), 1);
  EXPECT_EQ(two.level(vertex_named(two, "spine3")), 2);
}

TEST(WhatDoesAFailureCut, FlowsMoveToTheOtherSpines) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2, spines: 4}"), 32);
  const VertexId dead = vertex_named(fabric, "spine1");
  const auto left = fabric.without({.vertices = {dead}, .links = {}});
  int moved = 0;
  for (std::uint64_t flow = 0; flow < 200; ++flow) {
    const auto before = way(fabric, links_of(fabric, 0, 31, flow));
    const auto after = way(left, links_of(left, 0, 31, flow));
    EXPECT_EQ(after.find("spine1 "), std::string::npos) << after;
    moved += before.find("spine1 ") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
}

TEST(WhatDoesAFailureCut, OneDirectionOfATrunkOnly) {
  const auto fabric = fabric_of(yaml_of("{kind: torus, dims: [5]}", 5, 1, 1), 5);
  const auto left = fabric.without({.vertices = {}, .links = {link_between(fabric, "router0", "router1")}});
  EXPECT_EQ(way(left, links_of(left, 0, 1)), "node0/nic0 router0 router4 router3 router2 router1 node1/nic0");
  EXPECT_EQ(way(left, links_of(left, 1, 0)), "node1/nic0 router1 router0 node0/nic0");
}

TEST(WhatDoesAFailureCut, ALostRailIsReplacedByTheOthers) {
  const auto fabric = fabric_of(yaml_of("{kind: rail_optimised, nodes_per_leaf: 4}"), 16);
  const auto left = fabric.without({.vertices = {vertex_named(fabric, "leaf1")}, .links = {}});
  std::array<int, 4> used{};
  for (std::uint64_t flow = 0; flow < 300; ++flow) {
    const auto taken = way(left, links_of(left, 1, 9, flow));
    ++used[static_cast<std::size_t>(taken[9] - '0')];  // "node0/nicR ..."
  }
  EXPECT_EQ(used[1], 0);
  for (const int rail : {0, 2, 3}) EXPECT_GT(used[static_cast<std::size_t>(rail)], 60) << rail;  // 100 expected, deviation 8
}

// Node 0 lost NIC 0 and node 1 lost NIC 1: with two NICs no rail is whole. gpu0 sends over its neighbour's NIC and on to gpu2 by NVLink.
TEST(WhatDoesAFailureCut, NotWhatANeighboursNicStillReaches) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}", 0, 2, 2), 4);
  const auto left = fabric.without({.vertices = {vertex_named(fabric, "node0/nic0"), vertex_named(fabric, "node1/nic1")}, .links = {}});
  Route route;
  left.route(0, 3, 0, route);
  EXPECT_EQ(way(left, route.links), "gpu0 node0/nvswitch gpu1 switch0 node1/nic0 node1/nvswitch gpu3");
  EXPECT_EQ(route.latency_s, 9e-6);
}

TEST(WhatDoesAFailureCut, NotANodeWhoseNvswitchFailed) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}"), 8);
  const auto left = fabric.without({.vertices = {vertex_named(fabric, "node0/nvswitch")}, .links = {}});
  Route route;
  left.route(0, 1, 0, route);
  EXPECT_EQ(way(left, route.links), "node0/nic0 switch0 node0/nic0");
  EXPECT_EQ(route.latency_s, 9e-6);
}

TEST(WhatDoesAFailureCut, NotAPairOfAMeshWithAThirdGpu) {
  const auto fabric = fabric_of(
      "gpu: g\ngpus_per_node: 3\nintra_node: {kind: full_mesh, bandwidth: 1 GB/s, efficiency: 1, latency: 1 us}\nhost: {bandwidth: 1 GB/s, "
      "efficiency: 1, latency: 1 "
      "us}\n",
      3);
  const auto left = fabric.without({.vertices = {}, .links = {link_between(fabric, "gpu0", "gpu1")}});
  EXPECT_EQ(way(left, links_of(left, 0, 1)), "gpu0 gpu2 gpu1");
  EXPECT_EQ(way(left, links_of(left, 1, 0)), "gpu1 gpu0");
}

TEST(WhatDoesAFailureCut, IsSaidWhenThereIsNoWay) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 1}"), 12);
  const auto left = fabric.without({.vertices = {vertex_named(fabric, "leaf1")}, .links = {}});
  Route route;
  try {
    left.route(3, 7, 0, route);
    FAIL() << way(left, route.links);
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no path from gpu3 to gpu7");
  }
  EXPECT_EQ(way(left, links_of(left, 4, 7)), "gpu4 node1/nvswitch gpu7");  // inside the node all is well
}

TEST(WhatDoesAFailureCut, AFailedGpuFromEverything) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}"), 8);
  const auto left = fabric.without({.vertices = {fabric.gpu_vertex(5)}, .links = {}});
  for (const int other : {0, 4, 6}) {
    EXPECT_FALSE(reaches(left, 5, other));
    EXPECT_FALSE(reaches(left, other, 5));
  }
  EXPECT_TRUE(reaches(left, 4, 6));
}

// Failures add up, numbers stay the same, and the fabric they were taken from is whole as before.
TEST(WhatDoesAFailureCut, AddsUpAndLeavesTheOriginalWhole) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 1, spines: 2}"), 8);
  const auto one = fabric.without({.vertices = {vertex_named(fabric, "spine0")}, .links = {}});
  const auto two = one.without({.vertices = {vertex_named(fabric, "spine1")}, .links = {}});
  EXPECT_TRUE(reaches(one, 0, 4));
  EXPECT_FALSE(reaches(two, 0, 4));
  EXPECT_TRUE(reaches(fabric, 0, 4));
  EXPECT_EQ(two.links().size(), fabric.links().size());
  EXPECT_EQ(two.vertex_name(9), fabric.vertex_name(9));
}

}  // namespace

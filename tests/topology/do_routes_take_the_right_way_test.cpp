// Which way do routes take, on which rail, and how far is it?
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse::topology;
using namespace rehearse::topology::test;

TEST(DoRoutesTakeTheRightWay, InsideANodeOverItsSwitch) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}"), 8);
  EXPECT_EQ(way(fabric, links_of(fabric, 1, 3)), "gpu1 node0/nvswitch gpu3");
  EXPECT_TRUE(links_of(fabric, 2, 2).empty());
}

TEST(DoRoutesTakeTheRightWay, BetweenNodesOverTheSourcesRail) {
  const auto fabric = fabric_of(yaml_of("{kind: rail_optimised, nodes_per_leaf: 2}"), 16);
  EXPECT_EQ(way(fabric, links_of(fabric, 1, 6)), "node0/nic1 leaf1 node1/nic1");
  EXPECT_EQ(way(fabric, links_of(fabric, 1, 6, 0, 3)), "node0/nic3 leaf3 node1/nic3");
}

// 2 nodes per leaf and 4 rails: the leaf of rail r in group g is leaf 4g + r.
TEST(DoRoutesTakeTheRightWay, BetweenGroupsOverASpine) {
  const auto fabric = fabric_of(yaml_of("{kind: rail_optimised, nodes_per_leaf: 2, spines: 1}"), 16);
  EXPECT_EQ(way(fabric, links_of(fabric, 2, 9)), "node0/nic2 leaf2 spine0 leaf6 node2/nic2");
}

// One spine per rail: spine r serves rail r only.
TEST(DoRoutesTakeTheRightWay, InSeparatePlanesOverTheRailsOwnSpine) {
  const auto fabric = fabric_of(yaml_of("{kind: rail_optimised, nodes_per_leaf: 2, spines: 1, separate_planes: true}"), 16);
  EXPECT_EQ(way(fabric, links_of(fabric, 2, 9)), "node0/nic2 leaf2 spine2 leaf6 node2/nic2");
}

TEST(DoRoutesTakeTheRightWay, OverPcieWhenItIsDescribed) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}", 0, 4, 2, "pcie: 30 GB/s\n"), 8);
  EXPECT_EQ(way(fabric, links_of(fabric, 3, 4)), "gpu3 node0/nic1 switch0 node1/nic1 gpu4");
}

TEST(DoRoutesTakeTheRightWay, OverTheCoreBetweenPodsOnly) {
  // One trunk per switch carries everything, so there is one aggregation switch per pod and one core.
  const auto fabric = fabric_of(yaml_of("{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2, trunk: 800 GB/s}"), 16);
  EXPECT_EQ(way(fabric, links_of(fabric, 0, 4)), "node0/nic0 edge0 aggregation0 edge1 node1/nic0");
  EXPECT_EQ(way(fabric, links_of(fabric, 0, 8)), "node0/nic0 edge0 aggregation0 core0 aggregation1 edge2 node2/nic0");
}

// Row-major 4 x 4: node 0 is (0,0), node 14 is (3,2). First dimension first and the short way round: (0,0) (3,0) (3,1) (3,2).
TEST(DoRoutesTakeTheRightWay, OnATorusDimensionByDimension) {
  const auto fabric = fabric_of(yaml_of("{kind: torus, dims: [4, 4]}", 16, 1, 1), 16);
  const std::string up = "node0/nic0 router0 router12 router13 router14 node14/nic0";
  const std::string down = "node0/nic0 router0 router12 router15 router14 node14/nic0";
  for (std::uint64_t flow = 0; flow < 20; ++flow) {
    const auto taken = way(fabric, links_of(fabric, 0, 14, flow));
    EXPECT_TRUE(taken == up || taken == down) << taken;  // 0 to 2 round a ring of 4 is equally far both ways
  }
}

// 5 groups of 2 routers; group 0 reaches group 1 from router (1-0-1) % 5 % 2 = 0, group 2 from 1, group 3 from 0, group 4 from 1. Minimal
// routing: at most one global link.
TEST(DoRoutesTakeTheRightWay, OnADragonflyOverOneGlobalLink) {
  const auto fabric = fabric_of(yaml_of("{kind: dragonfly, groups: 5, routers_per_group: 2, nodes_per_router: 1}", 10, 1, 1), 10);
  for (int from = 0; from < 10; ++from) {
    for (int to = 0; to < 10; ++to) {
      int global = 0;
      for (const LinkId id : links_of(fabric, from, to)) {
        const auto& link = fabric.links()[id];
        if (link.kind != LinkKind::trunk) continue;
        const auto router = [&](VertexId v) { return std::stoi(fabric.vertex_name(v).substr(6)); };
        global += router(link.from) / 2 != router(link.to) / 2 ? 1 : 0;
      }
      EXPECT_EQ(global, from / 2 == to / 2 ? 0 : 1) << from << " to " << to;
    }
  }
  EXPECT_EQ(way(fabric, links_of(fabric, 0, 2)).substr(0, 18), "node0/nic0 router0");
}

TEST(DoRoutesTakeTheRightWay, WithTheAlphaOfTheDistance) {
  const auto fabric =
      fabric_of(yaml_of("{kind: single_switch}", 0, 4, 4, "supernode: {gpus: 8, bandwidth: 50 GB/s, efficiency: 1, latency: 3 us}\n"), 16);
  Route route;
  EXPECT_EQ(fabric.distance(1, 1), Distance::self);
  EXPECT_EQ(fabric.distance(0, 3), Distance::node);
  EXPECT_EQ(fabric.distance(0, 7), Distance::supernode);
  EXPECT_EQ(fabric.distance(0, 8), Distance::network);
  fabric.route(1, 1, 0, route);
  EXPECT_EQ(route.latency_s, 0);
  fabric.route(0, 3, 0, route);
  EXPECT_EQ(route.latency_s, 2e-6);
  fabric.route(0, 7, 0, route);
  EXPECT_EQ(route.latency_s, 3e-6);
  fabric.route(0, 8, 0, route);
  EXPECT_EQ(route.latency_s, 9e-6);
}

// With other rates between nodes than inside, a GPU has a port on each of the two switches; with the same rates it has one port for both.
TEST(DoRoutesTakeTheRightWay, OverOnePortOrTwoInASupernode) {
  const auto two =
      fabric_of(yaml_of("{kind: single_switch}", 0, 4, 4, "supernode: {gpus: 8, bandwidth: 50 GB/s, efficiency: 1, latency: 3 us}\n"), 8);
  EXPECT_EQ(way(two, links_of(two, 0, 3)), "gpu0 node0/nvswitch gpu3");
  EXPECT_EQ(way(two, links_of(two, 0, 7)), "gpu0 supernode0/nvswitch gpu7");
  const auto one =
      fabric_of(yaml_of("{kind: single_switch}", 0, 4, 4, "supernode: {gpus: 8, bandwidth: 100 GB/s, efficiency: 1, latency: 3 us}\n"), 8);
  EXPECT_EQ(way(one, links_of(one, 0, 3)), "gpu0 supernode0/nvswitch gpu3");
  EXPECT_EQ(links_of(one, 0, 3)[0], links_of(one, 0, 7)[0]);
  Route route;
  one.route(0, 3, 0, route);
  EXPECT_EQ(route.latency_s, 2e-6);  // the distance still counts
}

TEST(DoRoutesTakeTheRightWay, OverEffectiveBandwidths) {
  const auto fabric = fabric_of(R"(gpu: g
gpus_per_node: 2
intra_node: {kind: nvswitch, bandwidth: 100 GB/s, efficiency: 0.8, latency: 2 us}
nics: {per_node: 4, bandwidth: 80 Gbps, efficiency: 0.9, latency: 9 us}
network: {kind: single_switch}
host: {bandwidth: 20 GB/s, efficiency: 0.5, latency: 10 us}
)",
                                4);
  const auto rate = [&](LinkId id) { return fabric.links()[id].bandwidth_bytes_per_s; };
  EXPECT_DOUBLE_EQ(rate(links_of(fabric, 0, 1)[0]), 80e9);
  EXPECT_DOUBLE_EQ(rate(links_of(fabric, 0, 2)[0]), 2 * 10e9 * 0.9);  // two NICs per GPU, striped over as one port
  EXPECT_DOUBLE_EQ(rate(fabric.device_to_host(3)), 10e9);
  EXPECT_EQ(way(fabric, {fabric.device_to_host(3), fabric.host_to_device(3)}), "gpu3 node1/host gpu3");
}

TEST(DoRoutesTakeTheRightWay, ToHostMemoryOverTheGpusPortInAPcieBox) {
  const auto fabric =
      fabric_of("gpu: g\ngpus_per_node: 4\nintra_node: {kind: pcie, bandwidth: 25 GB/s, efficiency: 1, latency: 2 us}\n", 4);
  EXPECT_EQ(fabric.device_to_host(2), links_of(fabric, 2, 0)[0]);
  EXPECT_EQ(fabric.host_to_device(2), links_of(fabric, 0, 2)[1]);
}

TEST(DoRoutesTakeTheRightWay, FromAndToGpusThatExist) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}"), 8);
  Route route;
  EXPECT_THROW(fabric.route(0, 8, 0, route), std::out_of_range);
  EXPECT_THROW(fabric.route(-1, 0, 0, route), std::out_of_range);
  EXPECT_THROW(fabric.route(0, 4, 0, route, 4), std::out_of_range);
}

}  // namespace

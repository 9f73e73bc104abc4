// How much can one half of the nodes send to the other? Formulas against the maximum flow.
#include <gtest/gtest.h>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse::topology;
using namespace rehearse::topology::test;

CutReport cuts_of(const std::string& network, int gpus, int nodes = 0) { return fabric_of(yaml_of(network, nodes), gpus).cuts(); }

// 8 nodes x 4 NICs x 10 GB/s: a half injects 4 x 40 = 160 GB/s, and nothing is oversubscribed.
TEST(WhatCanCrossTheMiddle, EverythingInAFullTree) {
  for (const std::string network :
       {"{kind: single_switch}", "{kind: leaf_spine, nodes_per_leaf: 2}", "{kind: rail_optimised, nodes_per_leaf: 2}",
        "{kind: rail_optimised, nodes_per_leaf: 2, separate_planes: true}", "{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2}",
        "{kind: fat_tree, nodes_per_leaf: 2, nodes_per_pod: 4}"}) {
    const auto cuts = cuts_of(network, 32);
    EXPECT_EQ(cuts.injection_bytes_per_s, 160e9) << network;
    EXPECT_EQ(cuts.bisection_bytes_per_s, 160e9) << network;
  }
}

// Each half has 2 leaves with 2 x 40 GB/s below and 80/f above, all of which crosses: 2 x 80/f = 160/f GB/s. The capacity is exact even
// where the cables of 10 GB/s do not come out even.
TEST(WhatCanCrossTheMiddle, TheOversubscribedShareOfALeafSpine) {
  for (const double f : {1.0, 1.25, 2.0, 3.0, 4.0, 8.0}) {
    const auto cuts = cuts_of(fmt::format("{{kind: leaf_spine, nodes_per_leaf: 2, oversubscription: {}}}", f), 32);
    EXPECT_NEAR(cuts.bisection_bytes_per_s, 160e9 / f, 16) << f;  // rounded to whole bytes/s on each of at most 16 uplinks
    EXPECT_EQ(cuts.injection_bytes_per_s, 160e9);
  }
}

// Per rail and half 2 leaves with 2 x 10 GB/s below, 20/f above: 4 rails x 2 x 20/f.
TEST(WhatCanCrossTheMiddle, TheOversubscribedShareOfRails) {
  for (const double f : {1.0, 2.0, 4.0}) {
    for (const char* planes : {"true", "false"}) {
      const auto text = fmt::format("{{kind: rail_optimised, nodes_per_leaf: 2, oversubscription: {}, separate_planes: {}}}", f, planes);
      EXPECT_EQ(cuts_of(text, 32).bisection_bytes_per_s, 160e9 / f) << text;
    }
  }
}

// Capacities whose sum no integer of 64 bits holds.
TEST(WhatCanCrossTheMiddle, AsMuchOfTheFastestLinksThatMayBe) {
  std::string yaml = yaml_of("{kind: leaf_spine, nodes_per_leaf: 2, oversubscription: 2}");
  yaml.replace(yaml.find("bandwidth: 10 GB/s"), 18, "bandwidth: 1000 PB/s");
  const auto cuts = fabric_of(yaml, 32).cuts();
  EXPECT_DOUBLE_EQ(cuts.injection_bytes_per_s, 16e18);
  EXPECT_NEAR(cuts.bisection_bytes_per_s, 8e18, 8e18 * 1e-15);
}

// Pods of 4 nodes inject 160 GB/s and have 160/7 GB/s upwards, as the 1:7 between the pods of Llama 3's cluster.
TEST(WhatCanCrossTheMiddle, TheOversubscribedShareOfPods) {
  const auto cuts = cuts_of("{kind: fat_tree, nodes_per_leaf: 2, nodes_per_pod: 4, pod_oversubscription: 7}", 32);
  EXPECT_NEAR(cuts.bisection_bytes_per_s, 160e9 / 7, 16);
}

// A k1 x k2 torus with k1 even and > 2 is cut between the rows k1/2-1 and k1/2 and across the wrap-around: 2 k2 links. Nodes inject 40 GB/s
// each, trunks carry 10: the links are what limits.
TEST(WhatCanCrossTheMiddle, TwoLayersOfATorus) {
  EXPECT_EQ(cuts_of("{kind: torus, dims: [4, 5]}", 80, 20).bisection_bytes_per_s, 2 * 5 * 10e9);
  EXPECT_EQ(cuts_of("{kind: torus, dims: [6, 2, 3]}", 144, 36).bisection_bytes_per_s, 2 * 6 * 10e9);
  EXPECT_EQ(cuts_of("{kind: torus, dims: [2, 4]}", 32, 8).bisection_bytes_per_s, 4 * 10e9);  // a ring of two is one link
  // Without the wrap-around half of the links are left; cables of 20 Gbit/s carry a quarter of 80.
  EXPECT_EQ(cuts_of("{kind: torus, dims: [4, 5], wrap: [false, true]}", 80, 20).bisection_bytes_per_s, 5 * 10e9);
  EXPECT_EQ(cuts_of("{kind: torus, dims: [4, 5], trunk: [20 Gbps, 80 Gbps]}", 80, 20).bisection_bytes_per_s, 2 * 5 * 2.5e9);
}

// The GPU's way to the NIC may be narrower than the NIC: 3 GB/s for each of 4 GPUs, of 10 GB/s.
TEST(WhatCanCrossTheMiddle, NoMoreThanPcieLetsThrough) {
  const auto cuts = fabric_of(yaml_of("{kind: single_switch}", 0, 4, 4, "pcie: 3 GB/s\n"), 16).cuts();
  EXPECT_EQ(cuts.bisection_bytes_per_s, 2 * 4 * 3e9);
  EXPECT_EQ(cuts.injection_bytes_per_s, 2 * 4 * 10e9);
}

// A supernode across the middle carries its GPUs' traffic over its own switch too: 2 nodes of 4 GPUs x 50 GB/s, on top of 4 x 10 GB/s of
// NICs.
TEST(WhatCanCrossTheMiddle, WhatASupernodeCarriesToo) {
  const auto cuts =
      fabric_of(yaml_of("{kind: single_switch}", 0, 4, 4, "supernode: {gpus: 8, bandwidth: 50 GB/s, efficiency: 1, latency: 3 us}\n"), 8)
          .cuts();
  EXPECT_EQ(cuts.bisection_bytes_per_s, 4 * 50e9 + 4 * 10e9);
}

TEST(WhatCanCrossTheMiddle, LessWithoutASpine) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2, spines: 4}"), 32);
  const auto left = fabric.without({.vertices = {vertex_named(fabric, "spine2")}, .links = {}});
  EXPECT_EQ(left.cuts().bisection_bytes_per_s, 160e9 * 3 / 4);
  EXPECT_EQ(left.cuts().injection_bytes_per_s, 160e9);
}

TEST(WhatCanCrossTheMiddle, NothingInASingleNode) { EXPECT_EQ(cuts_of("{kind: single_switch}", 4).bisection_bytes_per_s, 0); }

}  // namespace

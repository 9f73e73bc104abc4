// nics.by_nodes and network.at_scale: what NICs reach in jobs of many nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/topology/clusters.hpp"
#include "topology/nic_scale.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;

std::string text_with(const std::string& by_nodes, const std::string& network = "{kind: single_switch}") {
  return "gpu: h100-sxm5-80g\ngpus_per_node: 8\nintra_node: {kind: nvswitch, bandwidth: 450 GB/s, efficiency: 1, latency: 3 us}\n"
         "nics: {per_node: 8, bandwidth: 400 Gbps, efficiency: 0.9, latency: 7 us" +
         (by_nodes.empty() ? "" : ", by_nodes: " + by_nodes) + "}\nnetwork: " + network +
         "\nhost: {bandwidth: 63 GB/s, efficiency: 1, latency: 10 us}\n";
}

double efficiency(const std::string& by_nodes, int nodes, const std::string& network = "{kind: single_switch}") {
  const config::Node document = config::Node::load_text(text_with(by_nodes, network), "c.yaml");
  ClusterSpec cluster = read_cluster(document, "c");
  settle_nics(cluster, document, nodes);
  return cluster.nic.efficiency;
}

TEST(NicsByNodes, FollowsAStraightLineInLogarithms) {
  const std::string listed = "{4: 0.8, 16: 0.2}";
  EXPECT_DOUBLE_EQ(efficiency(listed, 1), 0.9);
  EXPECT_DOUBLE_EQ(efficiency(listed, 3), 0.9);
  EXPECT_DOUBLE_EQ(efficiency(listed, 4), 0.8);
  EXPECT_NEAR(efficiency(listed, 8), 0.4, 1e-12);  // half way in log(nodes): the geometric mean
  EXPECT_DOUBLE_EQ(efficiency(listed, 16), 0.2);
  EXPECT_DOUBLE_EQ(efficiency(listed, 1000), 0.2);
}

TEST(NicsByNodes, SettledTwiceIsSettledOnce) {
  const config::Node document = config::Node::load_text(text_with("{4: 0.8, 16: 0.2}"), "c.yaml");
  ClusterSpec cluster = read_cluster(document, "c");
  settle_nics(cluster, document, 64);
  settle_nics(cluster, document, 2);
  EXPECT_DOUBLE_EQ(cluster.nic.efficiency, 0.9);
}

TEST(UnmeasuredNetworks, FallFrom16NodesTo64) {
  const std::string said = "{kind: leaf_spine, nodes_per_leaf: 16, at_scale: 0.25}", unsaid = "{kind: leaf_spine, nodes_per_leaf: 16}";
  EXPECT_DOUBLE_EQ(efficiency("", 1, said), 0.9);
  EXPECT_DOUBLE_EQ(efficiency("", 16, said), 0.9);
  EXPECT_NEAR(efficiency("", 32, said), 0.9 * 0.5, 1e-12);  // half way in log(nodes): the geometric mean
  EXPECT_DOUBLE_EQ(efficiency("", 64, said), 0.9 * 0.25);
  EXPECT_DOUBLE_EQ(efficiency("", 4000, said), 0.9 * 0.25);
  EXPECT_DOUBLE_EQ(efficiency("", 64, unsaid), 0.9 * unmeasured_at_scale);
}

TEST(UnmeasuredNetworks, WhatWasMeasuredHoldsInstead) {
  EXPECT_DOUBLE_EQ(efficiency("{4: 0.8}", 64, "{kind: leaf_spine, nodes_per_leaf: 16, at_scale: 0.25}"), 0.8);
}

TEST(UnmeasuredNetworks, OthersReachTheirEfficiency) {
  EXPECT_DOUBLE_EQ(efficiency("", 64), 0.9);
  EXPECT_DOUBLE_EQ(efficiency("", 64, "{kind: rail_optimised, nodes_per_leaf: 16}"), 0.9);
  EXPECT_DOUBLE_EQ(efficiency("", 64, "{kind: fat_tree, nodes_per_leaf: 16, nodes_per_pod: 32}"), 0.9);
}

TEST(UnmeasuredNetworks, SettledTwiceAreSettledOnce) {
  const config::Node document = config::Node::load_text(text_with("", "{kind: leaf_spine, nodes_per_leaf: 16}"), "c.yaml");
  ClusterSpec cluster = read_cluster(document, "c");
  settle_nics(cluster, document, 64);
  settle_nics(cluster, document, 2);
  EXPECT_DOUBLE_EQ(cluster.nic.efficiency, 0.9);
}

TEST(NicsByNodes, WhatIsNoListIsRefusedWhereItStands) {
  for (const char* bad : {"{}", "{1: 0.5}", "{four: 0.5}", "{4.5: 0.5}", "{4: 0}", "{4: 1.5}", "0.5"}) {
    try {
      static_cast<void>(read_cluster(config::Node::load_text(text_with(bad), "c.yaml"), "c"));
      ADD_FAILURE() << bad << " was read";
    } catch (const config::InputError& error) {
      EXPECT_EQ(error.where().file, "c.yaml") << bad;
      EXPECT_EQ(error.where().line, 4) << bad << error.what();
    }
  }
}

}  // namespace

// nics.by_nodes: what NICs reach in jobs of many nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/topology/clusters.hpp"
#include "topology/nic_scale.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;

std::string text_with(const std::string& by_nodes) {
  return "gpu: h100-sxm5-80g\ngpus_per_node: 8\nintra_node: {kind: nvswitch, bandwidth: 450 GB/s, latency: 3 us}\n"
         "nics: {per_node: 8, bandwidth: 400 Gbps, efficiency: 0.9, latency: 7 us, by_nodes: " +
         by_nodes + "}\nnetwork: {kind: single_switch}\nhost: {bandwidth: 63 GB/s, latency: 10 us}\n";
}

double efficiency(const std::string& by_nodes, int nodes) {
  const config::Node document = config::Node::load_text(text_with(by_nodes), "c.yaml");
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

// Are flows spread evenly over equal paths, and always in the same way?
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse::topology;
using namespace rehearse::topology::test;

constexpr int flows = 40000;

// Trunks used by `flows` flows between the same two GPUs, counted over all of the route's trunks.
std::map<LinkId, int> loads(const Fabric& fabric, int from, int to) {
  std::map<LinkId, int> count;
  for (int flow = 0; flow < flows; ++flow) {
    for (const LinkId id : links_of(fabric, from, to, static_cast<std::uint64_t>(flow))) {
      if (fabric.links()[id].kind == LinkKind::trunk) ++count[id];
    }
  }
  return count;
}

// Each of k choices is a binomial variable of mean n/k and deviation sqrt(n/k (1 - 1/k)). Six deviations: one chance in 10^8 per link were
// the hash random.
void expect_even(const std::map<LinkId, int>& load, int choices) {
  const double mean = static_cast<double>(flows) / choices;
  for (const auto& [link, count] : load) EXPECT_NEAR(count, mean, 6 * std::sqrt(mean * (1 - 1.0 / choices))) << "link " << link;
}

// 2 nodes x 4 NICs x 10 GB/s under a leaf: 8 uplinks of 10 GB/s, one to each of 8 spines.
TEST(IsEcmpFair, OverTheSpines) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2}"), 32);
  const auto load = loads(fabric, 0, 31);
  EXPECT_EQ(load.size(), 16u);  // 8 up, 8 down
  expect_even(load, 8);
}

// 4 uplinks of an edge, then 4 x 2 / 4 = 2 of each aggregation switch: 4 x 2 equal paths. Were the choices at both levels made by the same
// bits, only some of the cores would be used.
TEST(IsEcmpFair, AtEveryLevelOfAFatTreeIndependently) {
  const auto fabric = fabric_of(yaml_of("{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2}"), 32);
  std::map<LinkId, int> edge;
  std::map<LinkId, int> core;
  for (const auto& [id, count] : loads(fabric, 0, 31)) {
    const bool at_core = fabric.vertex_name(fabric.links()[id].from).substr(0, 4) == "core" ||
                         fabric.vertex_name(fabric.links()[id].to).substr(0, 4) == "core";
    (at_core ? core : edge)[id] = count;
  }
  EXPECT_EQ(edge.size(), 8u);
  EXPECT_EQ(core.size(), 16u);
  expect_even(edge, 4);
  expect_even(core, 8);
}

TEST(IsEcmpFair, OverParallelTrunks) {
  const auto fabric =
      fabric_of(yaml_of("{kind: graph, switches: [a, b], trunks: [{between: [a, b]}, {between: [b, a]}, {between: [a, b]}], "
                        "attach: [[a], [b]]}",
                        2, 1, 1),
                2);
  const auto load = loads(fabric, 0, 1);
  EXPECT_EQ(load.size(), 3u);
  expect_even(load, 3);
}

TEST(IsEcmpFair, AndRepeatable) {
  const auto yaml = yaml_of("{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2}");
  const auto one = fabric_of(yaml, 32);
  const auto other = fabric_of(yaml, 32);
  for (int pair = 31; pair > 0; --pair) (void)links_of(other, pair, 0);  // tables filled in another order
  for (std::uint64_t flow = 0; flow < 500; ++flow) {
    const int to = static_cast<int>(flow % 31) + 1;
    EXPECT_EQ(links_of(one, 0, to, flow), links_of(other, 0, to, flow));
  }
}

}  // namespace

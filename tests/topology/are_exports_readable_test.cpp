// Can others read what we write? SimGrid's own parser for its platform format; the text for Graphviz.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <sstream>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;
using namespace rehearse::topology::test;

std::string dot_of(const Fabric& fabric) {
  std::ostringstream out;
  fabric.write_dot(out);
  return out.str();
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Every route of the file as SimGrid reads it has our links, in order, with our bandwidths and the same sum of latencies.
TEST(AreExportsReadable, BySimGrid) {
  const auto fabric = fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 1}", 0, 4, 2, "pcie: 30 GB/s\n"), 16);
  const std::string path = testing::TempDir() + "rehearse-platform-" + std::to_string(getpid()) + ".xml";
  {
    std::ofstream file(path);
    fabric.write_simgrid_xml(file);
  }
  int argc = 1;
  std::string name = "test";
  char* argv[] = {name.data(), nullptr};
  simgrid::s4u::Engine engine(&argc, argv);
  engine.load_platform(path);
  std::remove(path.c_str());
  ASSERT_EQ(engine.get_host_count(), 16u);
  ASSERT_EQ(engine.get_link_count(), fabric.links().size() + 1);  // and a loopback that all hosts share
  for (int from = 0; from < 16; ++from) {
    for (int to = 0; to < 16; ++to) {
      if (from == to) continue;
      Route ours;
      fabric.route(from, to, 0, ours);
      std::vector<simgrid::s4u::Link*> theirs;
      double latency = 0;
      engine.host_by_name(fmt::format("gpu{}", from))->route_to(engine.host_by_name(fmt::format("gpu{}", to)), theirs, &latency);
      ASSERT_EQ(theirs.size(), ours.links.size());
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        EXPECT_DOUBLE_EQ(theirs[i]->get_bandwidth(), fabric.links()[ours.links[i]].bandwidth_bytes_per_s);
        EXPECT_EQ(theirs[i]->get_name().substr(0, theirs[i]->get_name().find(':')), std::to_string(ours.links[i]));
      }
      EXPECT_NEAR(latency, ours.latency_s, 1e-12);
    }
  }
}

TEST(AreExportsReadable, OnlyWhenTheyAreNotHuge) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}"), 513);
  std::ostringstream out;
  try {
    fabric.write_simgrid_xml(out);
    FAIL();
  } catch (const config::InputError& error) {
    EXPECT_STREQ(error.what(), "error: 513 GPUs are too many for a SimGrid file, which lists every route: at most 512");
  }
  EXPECT_EQ(out.str(), "");
}

TEST(AreExportsReadable, AsADrawingOfEverything) {
  const auto text = dot_of(fabric_of(yaml_of("{kind: single_switch}", 0, 2, 1), 4));
  EXPECT_EQ(text, R"(graph "test" {
  node [shape=box, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=9];
  "switch0";
  subgraph cluster_node0 {
    label="node0";
    "gpu0";
    "gpu1";
    "node0/nvswitch";
    "node0/nic0";
    "node0/host";
  }
  subgraph cluster_node1 {
    label="node1";
    "gpu2";
    "gpu3";
    "node1/nvswitch";
    "node1/nic0";
    "node1/host";
  }
  "gpu0" -- "node0/host" [label="20.0 GB/s"];
  "gpu0" -- "node0/nvswitch" [label="100 GB/s"];
  "gpu1" -- "node0/host" [label="20.0 GB/s"];
  "gpu1" -- "node0/nvswitch" [label="100 GB/s"];
  "gpu2" -- "node1/host" [label="20.0 GB/s"];
  "gpu2" -- "node1/nvswitch" [label="100 GB/s"];
  "gpu3" -- "node1/host" [label="20.0 GB/s"];
  "gpu3" -- "node1/nvswitch" [label="100 GB/s"];
  "node0/nic0" -- "switch0" [label="10.0 GB/s"];
  "node1/nic0" -- "switch0" [label="10.0 GB/s"];
}
)");
}

// 4,096 GPUs: one node in detail (4 GPUs, NVSwitch, 4 NICs, host), one box for the other nodes, one per tier. 1,024 nodes under 512 leaves,
// each with 8 uplinks.
TEST(AreExportsReadable, AsASummaryOfALargeCluster) {
  const auto text = dot_of(fabric_of(yaml_of("{kind: leaf_spine, nodes_per_leaf: 2}"), 4096));
  EXPECT_LT(count(text, "\n"), 40u);
  EXPECT_EQ(count(text, "\"nodes 1-1023\" -- \"512 x leaf\" [label=\"4092 x 10.0 GB/s\"]"), 1u) << text;
  EXPECT_EQ(count(text, "\"512 x leaf\" -- \"8 x spine\" [label=\"4096 x 10.0 GB/s\"]"), 1u) << text;
}

TEST(AreExportsReadable, WithWhatFailedInRed) {
  const auto fabric = fabric_of(yaml_of("{kind: single_switch}", 0, 2, 1), 4);
  const auto text = dot_of(fabric.without({.vertices = {vertex_named(fabric, "node1/nic0")}, .links = {}}));
  EXPECT_EQ(count(text, "\"node1/nic0\" [color=red, style=dashed]"), 1u) << text;
  EXPECT_EQ(count(text, "\"node1/nic0\" -- \"switch0\" [label=\"10.0 GB/s\", color=red, style=dashed]"), 1u) << text;
}

}  // namespace

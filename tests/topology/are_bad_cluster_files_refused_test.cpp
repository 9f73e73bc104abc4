// Is every way to describe a cluster wrongly refused, with a message that says where, what and how to mend it?
#include <gtest/gtest.h>

#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;
using namespace rehearse::topology::test;

// A correct file; each case below replaces one line of it.
constexpr std::string_view good = R"(gpu: h100-sxm5-80g
gpus_per_node: 8
nodes: 16
intra_node: {kind: nvswitch, bandwidth: 450 GB/s, efficiency: 0.8, latency: 3 us}
nics: {per_node: 8, bandwidth: 400 Gbps, latency: 7 us}
network: {kind: leaf_spine, nodes_per_leaf: 4}
host: {bandwidth: 63 GB/s, latency: 10 us}
)";

// `good` with the line that begins like `line` (up to its colon) replaced; a key of its own is added at the end.
std::string with(const std::string& line) {
  std::string text(good);
  const auto start = text.find(line.substr(0, line.find(':') + 1));
  if (start == std::string::npos) return text + line + "\n";
  return text.replace(start, text.find('\n', start) - start, line);
}

std::string without(const std::string& key) {
  std::string text(good);
  const auto start = text.find(key + ":");
  return text.erase(start, text.find('\n', start) + 1 - start);
}

std::string refusal_of(const std::string& yaml) {
  try {
    (void)cluster_of(yaml);
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AreGoodClusterFilesAccepted, TheOneTheCasesStartFrom) { EXPECT_EQ(refusal_of(std::string(good)), "accepted"); }

TEST(AreGoodClusterFilesAccepted, NetworksWhoseSwitchesReduce) {
  const ClusterSpec plain = cluster_of(std::string(good));
  EXPECT_EQ(plain.network.in_switch.bandwidth_bytes_per_s, 0);
  for (const std::string kind : {"kind: single_switch", "kind: leaf_spine, nodes_per_leaf: 4", "kind: rail_optimised, nodes_per_leaf: 4",
                                 "kind: fat_tree, nodes_per_leaf: 4, nodes_per_pod: 8"}) {
    const LinkSpec sharp =
        cluster_of(with("network: {" + kind + ", in_network: {kind: sharp, efficiency: 0.5, latency: 31 us}}")).network.in_switch;
    EXPECT_DOUBLE_EQ(sharp.effective_bytes_per_s(), 25e9);
    EXPECT_DOUBLE_EQ(sharp.latency_s, 31e-6);
  }
  EXPECT_NE(refusal_of(with("network: {kind: torus, dims: [4, 4], in_network: {kind: sharp}}")).find("unknown key 'in_network'"),
            std::string::npos);
  EXPECT_NE(refusal_of(with("network: {kind: single_switch, in_network: {kind: nvls}}")).find("sharp"), std::string::npos);
}

TEST(AreGoodClusterFilesAccepted, LinksThatListProtocols) {
  const ClusterSpec plain = cluster_of(std::string(good));
  EXPECT_FALSE(plain.intra.ll || plain.intra.ll128 || plain.nic.ll || plain.nic.ll128);
  EXPECT_DOUBLE_EQ(plain.nic.exchange_share, 1);
  const std::string nics = "nics: {per_node: 8, bandwidth: 400 Gbps, exchange: 0.6, ll128: {call: 15 us, latency: 12 us, efficiency: 0.5}}";
  const ClusterSpec listed = cluster_of(with(nics));
  EXPECT_DOUBLE_EQ(listed.nic.exchange_share, 0.6);
  ASSERT_TRUE(listed.nic.ll128.has_value());
  EXPECT_DOUBLE_EQ(listed.nic.ll128->call_s, 15e-6);
  EXPECT_DOUBLE_EQ(listed.nic.ll128->latency_s, 12e-6);
  EXPECT_DOUBLE_EQ(listed.nic.ll128->efficiency, 0.5);
  const auto intra = [](const std::string& more) {
    return refusal_of(with("intra_node: {kind: nvswitch, bandwidth: 450 GB/s, " + more + "}"));
  };
  EXPECT_NE(intra("ll: usual").find("typical"), std::string::npos);
  EXPECT_NE(intra("ll: {latency: 1 us, efficiency: 2}").find("error"), std::string::npos);
  EXPECT_NE(intra("ll: {latency: 1 us, efficiency: 0.2, base: 1 us}").find("unknown key 'base'"), std::string::npos);
  EXPECT_NE(refusal_of(with("nics: {per_node: 8, bandwidth: 400 Gbps, exchange: 0}")).find("error"), std::string::npos);
}

TEST(AreGoodClusterFilesAccepted, SwitchesThatGiveAllToAllsLess) {
  EXPECT_DOUBLE_EQ(cluster_of(std::string(good)).intra.exchange_share, 1);
  const auto node = [](const std::string& more) {
    return with("intra_node: {kind: nvswitch, bandwidth: 450 GB/s, latency: 3 us, " + more + "}");
  };
  EXPECT_DOUBLE_EQ(cluster_of(node("exchange: 0.9")).intra.exchange_share, 0.9);
  EXPECT_DOUBLE_EQ(cluster_of(with("supernode: {gpus: 16, bandwidth: 450 GB/s, exchange: 0.8}")).supernode.exchange_share, 0.8);
  EXPECT_NE(refusal_of(node("exchange: 1.1")).find("error"), std::string::npos);
  EXPECT_EQ(cluster_of(std::string(good)).intra.exchange_wait_s(), 0);
  EXPECT_DOUBLE_EQ(cluster_of(node("exchange_latency: 16 us")).intra.exchange_wait_s(), 13e-6);
  const std::string rack = with("supernode: {gpus: 16, bandwidth: 450 GB/s, latency: 5 us, exchange_latency: 9 us}");
  EXPECT_DOUBLE_EQ(cluster_of(rack).supernode.exchange_wait_s(), 4e-6);
  EXPECT_NE(refusal_of(node("exchange_latency: 16 GB")).find("error"), std::string::npos);
  for (const char* key : {"exchange: 0.9", "exchange_latency: 16 us"}) {
    const std::string pcie = "gpu: a10-24g\ngpus_per_node: 4\nnodes: 1\nintra_node: {kind: pcie, bandwidth: 31.5 GB/s, ";
    EXPECT_NE(refusal_of(pcie + key + "}\n").find("the ports of a pcie node carry all of its traffic alike"), std::string::npos) << key;
  }
}

// One port carries what goes over the network and what does not.
TEST(AreBadClusterFilesRefused, ProtocolsAndExchangesOfNicsOfPcieNodes) {
  for (const std::string more :
       {"", ", ll: {latency: 1 us, efficiency: 0.2}", ", ll128: {latency: 1 us, efficiency: 0.2}", ", exchange: 0.6"}) {
    const std::string refusal = refusal_of(
        "gpu: a10-24g\ngpus_per_node: 4\nnodes: 2\nintra_node: {kind: pcie, bandwidth: 31.5 GB/s, latency: 6 us}\n"
        "nics: {per_node: 1, bandwidth: 100 Gbps" +
        more + "}\nnetwork: {kind: single_switch}\n");
    if (more.empty()) {
      EXPECT_EQ(refusal, "accepted");
    } else {
      EXPECT_NE(refusal.find("the ports of a pcie node carry all of its traffic alike"), std::string::npos) << more;
    }
  }
}

struct Case {
  std::string name, yaml, message;
};

// clang-format off
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
    {"UnknownKey", with("gpus_pr_node: 8"),
     R"(cluster.yaml:8:1: error: unknown key 'gpus_pr_node'
    8 | gpus_pr_node: 8
      | ^
  did you mean 'gpus_per_node'? known: gpu, gpus_per_node, nodes, intra_node, supernode, nics, pcie, network, host, host_memory, storage, source, sources, notes)"},
    {"NoGpu", without("gpu"),
     R"(cluster.yaml:1:1: error: missing key 'gpu'
    1 | gpus_per_node: 8
      | ^)"},
    {"NoHost", without("host"),
     R"(cluster.yaml:1:1: error: missing key 'host'
    1 | gpu: h100-sxm5-80g
      | ^)"},
    {"NoUnit", with("host: {bandwidth: 63, latency: 10 us}"),
     R"(cluster.yaml:7:19: error: host.bandwidth: a unit is missing (write 400 Gbps or 50 GB/s)
    7 | host: {bandwidth: 63, latency: 10 us}
      |                   ^)"},
    {"WrongUnit", with("host: {bandwidth: 63 us, latency: 10 us}"),
     R"(cluster.yaml:7:19: error: host.bandwidth: unknown unit 'us' (known: B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, bps, kbps, Mbps, Gbps, Tbps)
    7 | host: {bandwidth: 63 us, latency: 10 us}
      |                   ^)"},
    {"ZeroBandwidth", with("host: {bandwidth: 0 GB/s, latency: 10 us}"),
     R"(cluster.yaml:7:19: error: a bandwidth must be above 0
    7 | host: {bandwidth: 0 GB/s, latency: 10 us}
      |                   ^)"},
    {"TooMuchBandwidth", with("host: {bandwidth: 2000 PB/s, latency: 10 us}"),
     R"(cluster.yaml:7:19: error: a bandwidth above 1e9 GB/s
    7 | host: {bandwidth: 2000 PB/s, latency: 10 us}
      |                   ^
  write 400 Gbps or 50 GB/s)"},
    {"NoBandwidth", with("nics: {per_node: 8, latency: 7 us}"),
     R"(cluster.yaml:5:7: error: missing key 'bandwidth' in nics
    5 | nics: {per_node: 8, latency: 7 us}
      |       ^)"},
    {"LatencyOfSeconds", with("host: {bandwidth: 63 GB/s, latency: 10 s}"),
     R"(cluster.yaml:7:37: error: a latency above 1 s
    7 | host: {bandwidth: 63 GB/s, latency: 10 s}
      |                                     ^
  latencies of links are microseconds: write 5 us)"},
    {"EfficiencyAboveOne", with("intra_node: {kind: nvswitch, bandwidth: 450 GB/s, efficiency: 80, latency: 3 us}"),
     R"(cluster.yaml:4:63: error: intra_node.efficiency must be between 0 and 1, not 80
    4 | intra_node: {kind: nvswitch, bandwidth: 450 GB/s, efficiency: 80, latency: 3 us}
      |                                                               ^)"},
    {"EfficiencyOfZero", with("intra_node: {kind: nvswitch, bandwidth: 450 GB/s, efficiency: 0, latency: 3 us}"),
     R"(cluster.yaml:4:63: error: efficiency must be above 0 and at most 1
    4 | intra_node: {kind: nvswitch, bandwidth: 450 GB/s, efficiency: 0, latency: 3 us}
      |                                                               ^)"},
    {"UnknownKindOfNode", with("intra_node: {kind: nvlink-switch, bandwidth: 450 GB/s, latency: 3 us}"),
     R"(cluster.yaml:4:20: error: intra_node.kind cannot be 'nvlink-switch'
    4 | intra_node: {kind: nvlink-switch, bandwidth: 450 GB/s, latency: 3 us}
      |                    ^
  did you mean 'nvswitch'? known: nvswitch, full_mesh, pcie, none)"},
    {"NoGpusInANode", with("gpus_per_node: 0"),
     R"(cluster.yaml:2:16: error: gpus_per_node must be between 1 and 1024, not 0
    2 | gpus_per_node: 0
      |                ^)"},
    {"NicsThatDoNotDivide", with("nics: {per_node: 3, bandwidth: 400 Gbps, latency: 7 us}"),
     R"(cluster.yaml:5:18: error: 3 NICs cannot be shared out evenly among 8 GPUs
    5 | nics: {per_node: 3, bandwidth: 400 Gbps, latency: 7 us}
      |                  ^
  one number must divide the other)"},
    {"NicsWithoutNetwork", without("network"),
     R"(cluster.yaml:5:1: error: nics without a network: say what they are plugged into
    5 | nics: {per_node: 8, bandwidth: 400 Gbps, latency: 7 us}
      | ^
  network: {kind: single_switch})"},
    {"NetworkWithoutNics", without("nics"),
     R"(cluster.yaml:5:1: error: a network but no nics to reach it
    5 | network: {kind: leaf_spine, nodes_per_leaf: 4}
      | ^)"},
    {"PcieWithoutNics", R"(gpu: g
gpus_per_node: 8
intra_node: {kind: none}
pcie: 63 GB/s
host: {bandwidth: 63 GB/s, latency: 10 us}
)",
     R"(cluster.yaml:4:1: error: pcie is the way from GPU to NIC, but there are no nics
    4 | pcie: 63 GB/s
      | ^)"},
    {"NodesWithoutNetwork", R"(gpu: g
gpus_per_node: 8
nodes: 2
intra_node: {kind: full_mesh, bandwidth: 25 GB/s, latency: 2 us}
host: {bandwidth: 63 GB/s, latency: 10 us}
)",
     R"(cluster.yaml:3:8: error: 2 nodes but no network between them
    3 | nodes: 2
      |        ^
  add nics and network)"},
    {"UnlinkedGpus", R"(gpu: g
gpus_per_node: 8
intra_node: {kind: none}
host: {bandwidth: 63 GB/s, latency: 10 us}
)",
     R"(cluster.yaml:3:13: error: the GPUs of a node are not linked: neither inside the node nor by a network
    3 | intra_node: {kind: none}
      |             ^)"},
    {"HostOfAPcieNode", with("intra_node: {kind: pcie, bandwidth: 31.5 GB/s, latency: 6 us}"),
     R"(cluster.yaml:7:1: error: in a pcie node copies to the host use the GPU's own port
    7 | host: {bandwidth: 63 GB/s, latency: 10 us}
      | ^
  intra_node describes it; leave host out)"},
    {"BrokenSupernode", with("supernode: {gpus: 20, bandwidth: 900 GB/s, latency: 4 us}"),
     R"(cluster.yaml:8:19: error: a supernode of 20 GPUs is not made of whole nodes of 8
    8 | supernode: {gpus: 20, bandwidth: 900 GB/s, latency: 4 us}
      |                   ^)"},
    {"SpareThatLeavesNothing", with("supernode: {gpus: 16, spare: 16, bandwidth: 900 GB/s, latency: 4 us}"),
     R"(cluster.yaml:8:30: error: supernode.spare must be between 0 and 8, not 16
    8 | supernode: {gpus: 16, spare: 16, bandwidth: 900 GB/s, latency: 4 us}
      |                              ^)"},
    {"StorageReadOnly", with("storage: {disk_read: 2 GB/s}"),
     R"(cluster.yaml:8:11: error: disk_read without disk_write
    8 | storage: {disk_read: 2 GB/s}
      |           ^)"},
    {"UnknownNetwork", with("network: {kind: leafspine, nodes_per_leaf: 4}"),
     R"(cluster.yaml:6:17: error: network.kind cannot be 'leafspine'
    6 | network: {kind: leafspine, nodes_per_leaf: 4}
      |                 ^
  did you mean 'leaf_spine'? known: single_switch, leaf_spine, rail_optimised, fat_tree, torus, dragonfly, graph)"},
    {"KeyOfAnotherNetwork", with("network: {kind: single_switch, nodes_per_leaf: 4}"),
     R"(cluster.yaml:6:32: error: unknown key 'nodes_per_leaf' in network
    6 | network: {kind: single_switch, nodes_per_leaf: 4}
      |                                ^
  known: kind, in_network)"},
    {"NoLeafSize", with("network: {kind: rail_optimised}"),
     R"(cluster.yaml:6:10: error: missing key 'nodes_per_leaf' in network
    6 | network: {kind: rail_optimised}
      |          ^)"},
    {"Undersubscription", with("network: {kind: leaf_spine, nodes_per_leaf: 4, oversubscription: 0.5}"),
     R"(cluster.yaml:6:66: error: network.oversubscription must be between 1 and 1000, not 0.5
    6 | network: {kind: leaf_spine, nodes_per_leaf: 4, oversubscription: 0.5}
      |                                                                  ^)"},
    {"FatTreeWithoutPods", with("network: {kind: fat_tree, nodes_per_leaf: 4}"),
     R"(cluster.yaml:6:10: error: a fat_tree needs nodes_per_pod (or pods)
    6 | network: {kind: fat_tree, nodes_per_leaf: 4}
      |          ^)"},
    {"PodsTwice", with("network: {kind: fat_tree, nodes_per_leaf: 4, nodes_per_pod: 8, pods: 2}"),
     R"(cluster.yaml:6:64: error: pods and nodes_per_pod say the same thing twice
    6 | network: {kind: fat_tree, nodes_per_leaf: 4, nodes_per_pod: 8, pods: 2}
      |                                                                ^
  keep one of them)"},
    {"PodsThatDoNotDivide", with("network: {kind: fat_tree, nodes_per_leaf: 4, pods: 3}"),
     R"(cluster.yaml:6:52: error: 16 nodes do not divide into 3 pods
    6 | network: {kind: fat_tree, nodes_per_leaf: 4, pods: 3}
      |                                                    ^)"},
    {"PodsOfBrokenLeaves", with("network: {kind: fat_tree, nodes_per_leaf: 4, nodes_per_pod: 6}"),
     R"(cluster.yaml:6:61: error: a pod of 6 nodes does not divide into leaves of 4
    6 | network: {kind: fat_tree, nodes_per_leaf: 4, nodes_per_pod: 6}
      |                                                             ^)"},
    {"TorusOfAnotherSize", with("network: {kind: torus, dims: [4, 3]}"),
     R"(cluster.yaml:6:30: error: the torus has 12 routers but the cluster 16 nodes
    6 | network: {kind: torus, dims: [4, 3]}
      |                              ^
  one router per node)"},
    {"TorusWithAxesMissing", with("network: {kind: torus, dims: [4, 4], wrap: [true]}"),
     R"(cluster.yaml:6:44: error: 1 entries for 2 dimensions: give one for all, or one each
    6 | network: {kind: torus, dims: [4, 4], wrap: [true]}
      |                                            ^)"},
    {"TorusOfNoSize", with("network: {kind: torus, dims: []}"),
     R"(cluster.yaml:6:30: error: a torus has 1 to 8 dimensions, not 0
    6 | network: {kind: torus, dims: []}
      |                              ^)"},
    {"DragonflyOfAnotherSize", with("network: {kind: dragonfly, groups: 3, routers_per_group: 2, nodes_per_router: 2}"),
     R"(cluster.yaml:6:10: error: the dragonfly has room for 12 nodes (3 groups x 2 routers x 2) but the cluster has 16
    6 | network: {kind: dragonfly, groups: 3, routers_per_group: 2, nodes_per_router: 2}
      |          ^)"},
    {"DragonflyOfOneGroup", with("network: {kind: dragonfly, groups: 1, routers_per_group: 8, nodes_per_router: 2}"),
     R"(cluster.yaml:6:36: error: network.groups must be between 2 and 16384, not 1
    6 | network: {kind: dragonfly, groups: 1, routers_per_group: 8, nodes_per_router: 2}
      |                                    ^)"},
    {"UnknownSwitch", with("network: {kind: graph, switches: [east, west], trunks: [{between: [east, wst]}], attach: [[east]]}"),
     R"(cluster.yaml:6:74: error: unknown switch 'wst'
    6 | network: {kind: graph, switches: [east, west], trunks: [{between: [east, wst]}], attach: [[east]]}
      |                                                                          ^
  did you mean 'west'? known: east, west)"},
    {"SwitchTwice", with("network: {kind: graph, switches: [east, east], attach: [[east]]}"),
     R"(cluster.yaml:6:41: error: switch 'east' is listed twice
    6 | network: {kind: graph, switches: [east, east], attach: [[east]]}
      |                                         ^)"},
    {"TrunkToItself", with("network: {kind: graph, switches: [east, west], trunks: [{between: [west, west]}], attach: [[east]]}"),
     R"(cluster.yaml:6:74: error: a trunk from 'west' to itself
    6 | network: {kind: graph, switches: [east, west], trunks: [{between: [west, west]}], attach: [[east]]}
      |                                                                          ^)"},
    {"TrunkOfThree", with("network: {kind: graph, switches: [a, b, c], trunks: [{between: [a, b, c]}], attach: [[a]]}"),
     R"(cluster.yaml:6:64: error: a trunk lies between 2 switches, not 3
    6 | network: {kind: graph, switches: [a, b, c], trunks: [{between: [a, b, c]}], attach: [[a]]}
      |                                                                ^)"},
    {"UnattachedNics", with("network: {kind: graph, switches: [east], attach: [[east, east]]}"),
     R"(cluster.yaml:6:51: error: 2 switches for 8 NICs: name one per NIC of the node
    6 | network: {kind: graph, switches: [east], attach: [[east, east]]}
      |                                                   ^)"},
    {"UnattachedNodes", with("network: {kind: graph, switches: [a], attach: [[a, a, a, a, a, a, a, a], [a, a, a, a, a, a, a, a]]}"),
     R"(cluster.yaml:6:47: error: 2 rows for 16 nodes: give one row per node, or a single row for all
    6 | network: {kind: graph, switches: [a], attach: [[a, a, a, a, a, a, a, a], [a, a, a, a, a, a, a, a]]}
      |                                               ^)"},
    {"DisconnectedGraph", R"(gpu: g
gpus_per_node: 1
nodes: 2
intra_node: {kind: none}
nics: {per_node: 1, bandwidth: 1 GB/s, latency: 1 us}
network: {kind: graph, switches: [a, b, c], trunks: [{between: [a, c]}], attach: [[a], [b]]}
host: {bandwidth: 63 GB/s, latency: 10 us}
)",
     R"(cluster.yaml:6:89: error: no way from switch 'b' to 'a', where NIC 0 of node 0 hangs
    6 | network: {kind: graph, switches: [a, b, c], trunks: [{between: [a, c]}], attach: [[a], [b]]}
      |                                                                                         ^)"},
    {"SplitBundle", R"(gpu: g
gpus_per_node: 1
intra_node: {kind: none}
nics: {per_node: 2, bandwidth: 1 GB/s, latency: 1 us}
network: {kind: graph, switches: [a, b], trunks: [{between: [a, b]}], attach: [[a, b]]}
host: {bandwidth: 63 GB/s, latency: 10 us}
)",
     R"(cluster.yaml:5:84: error: NICs 0 and 1 serve the same GPU and must hang on the same switch
    5 | network: {kind: graph, switches: [a, b], trunks: [{between: [a, b]}], attach: [[a, b]]}
      |                                                                                    ^)"},
    {"TorusWithoutNodes", R"(gpu: g
gpus_per_node: 1
intra_node: {kind: none}
nics: {per_node: 1, bandwidth: 1 GB/s, latency: 1 us}
network: {kind: torus, dims: [4]}
host: {bandwidth: 63 GB/s, latency: 10 us}
)",
     R"(cluster.yaml:5:10: error: a torus has a fixed size: the cluster must say how many nodes it has
    5 | network: {kind: torus, dims: [4]}
      |          ^
  add nodes: N)"},
  };
  return all;
}
// clang-format on

class AreBadClusterFilesRefused : public testing::TestWithParam<Case> {};

TEST_P(AreBadClusterFilesRefused, WithTheWholeMessage) { EXPECT_EQ(refusal_of(GetParam().yaml), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(Each, AreBadClusterFilesRefused, testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

std::string build_refusal_of(const std::string& yaml, int gpus) {
  try {
    (void)fabric_of(yaml, gpus);
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AreBadFabricsRefused, WithMoreGpusThanTheClusterHas) {
  EXPECT_EQ(build_refusal_of(std::string(good), 136), "error: cluster 'test' has 128 GPUs (16 nodes of 8), not 136");
  EXPECT_EQ(build_refusal_of(std::string(good), 128), "accepted");
}

TEST(AreBadFabricsRefused, WithoutAnyGpu) {
  EXPECT_EQ(build_refusal_of(std::string(good), 0), "error: a fabric needs at least 1 GPU, not 0");
}

TEST(AreBadFabricsRefused, BeyondAnyMachine) {
  EXPECT_EQ(build_refusal_of(without("nodes"), 2000000), "error: 2000000 GPUs are more than the 1048576 that can be simulated");
}

// 4 nodes x 8 NICs x 400 Gbit/s = 1.6 TB/s above a leaf, in cables of 125 kB/s: 12.8 million of them.
TEST(AreBadFabricsRefused, WithTrunksTooThin) {
  EXPECT_EQ(build_refusal_of(with("network: {kind: leaf_spine, nodes_per_leaf: 4, trunk: 1 Mbps}"), 128),
            "error: network: a trunk of 125 kB/s is too thin: one switch would need 12800000 of them upwards");
}

}  // namespace

// Do links that a cluster file describes by their data sheet alone reach what the shipped clusters' links of their kind have in common?
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "config/data_dir.hpp"
#include "tests/topology/clusters.hpp"
#include "topology/nic_scale.hpp"
#include "topology/typical_link.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The different links of a kind, once each however many clusters have them.
class Links {
 public:
  void add(const LinkSpec& link) {
    if (link.bandwidth_bytes_per_s > 0) seen_.emplace(link.bandwidth_bytes_per_s, link.efficiency, link.latency_s);
  }
  void expect(const TypicalLink& typical, const char* kind) const {
    std::vector<double> efficiencies, latencies;
    for (const auto& [bandwidth, efficiency, latency_s] : seen_) {
      efficiencies.push_back(efficiency);
      latencies.push_back(latency_s);
    }
    // Most hosts reach 0.83 or 0.88: a median between the two is 0.025 from either.
    EXPECT_NEAR(typical.efficiency, median(efficiencies), 0.026) << kind;
    EXPECT_NEAR(typical.latency_s, median(latencies), 0.5e-6) << kind;
  }

 private:
  std::set<std::tuple<double, double, double>> seen_;
};

// What a cluster says of none of its GPUs' links is what answers are told to be by.
TEST(LinksByTheirDataSheet, AreTold) {
  const config::Node node = config::Node::load_file(config::data_file("platforms/clusters", "dgx-h100-ndr400"));
  EXPECT_FALSE(read_cluster(node, "described").by_line_rates());
  for (const char* part : {"intra_node", "nics"}) {
    config::Node changed = node;
    changed.set_child(part, node.at(part).without("efficiency"));
    EXPECT_TRUE(read_cluster(changed, part).by_line_rates()) << part;
  }
  config::Node listed = node;
  listed.set_child("nics", node.at("nics").without("efficiency"));
  listed.set("nics.by_nodes", "{4: 0.8, 64: 0.3}");
  EXPECT_FALSE(read_cluster(listed, "listed").by_line_rates());
}

TEST(LinksByTheirDataSheet, ReachWhatShippedOnesHaveInCommon) {
  Links scale_up, pcie, nics, host;
  for (const std::string& name : config::data_names("platforms/clusters")) {
    const ClusterSpec cluster = read_cluster(config::Node::load_file(config::data_file("platforms/clusters", name)), name);
    if (cluster.intra_kind == IntraNode::pcie) {
      pcie.add(cluster.intra);
    } else {
      scale_up.add(cluster.intra);
      scale_up.add(cluster.supernode);
      host.add(cluster.host);
    }
    nics.add(cluster.nic);
  }
  scale_up.expect(typical_scale_up, "scale-up");
  pcie.expect(typical_pcie, "pcie");
  nics.expect(typical_nic, "nics");
  host.expect(typical_host, "host");
}

void expect_typical(const LinkSpec& link, const TypicalLink& typical) {
  EXPECT_DOUBLE_EQ(link.efficiency, typical.efficiency);
  EXPECT_DOUBLE_EQ(link.latency_s, typical.latency_s);
}

TEST(LinksByTheirDataSheet, AreRead) {
  const ClusterSpec cluster = test::cluster_of(
      "{gpu: h100-sxm5-80g, gpus_per_node: 8, intra_node: {kind: nvswitch, bandwidth: 450 GB/s}, nics: {per_node: 8, bandwidth: 400 "
      "Gbps},\n"
      " supernode: {gpus: 16, bandwidth: 450 GB/s}, network: {kind: single_switch}, host: {bandwidth: 63 GB/s}}");
  expect_typical(cluster.intra, typical_scale_up);
  expect_typical(cluster.supernode, typical_scale_up);
  expect_typical(cluster.nic, typical_nic);
  expect_typical(cluster.host, typical_host);
  expect_typical(test::cluster_of("{gpu: l40s, gpus_per_node: 8, intra_node: {kind: pcie, bandwidth: 31.5 GB/s}}").intra, typical_pcie);
}

void expect_same(const std::optional<ProtocolSpec>& one, const ProtocolSpec& other) {
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(std::tie(one->call_s, one->latency_s, one->efficiency), std::tie(other.call_s, other.latency_s, other.efficiency));
}

ClusterSpec with_links(const std::string& intra, const std::string& nics) {
  return test::cluster_of("{gpu: h100-sxm5-80g, gpus_per_node: 8, intra_node: {bandwidth: 450 GB/s, " + intra +
                          "},\n nics: {per_node: 8, bandwidth: 400 Gbps" + nics +
                          "}, network: {kind: single_switch}, host: {bandwidth: 63 GB/s}}");
}

// NVLink that nobody measured, and the NICs of its nodes, run NCCL's protocols as measured ones do; what was measured has what it says.
TEST(LinksByTheirDataSheet, RunNcclsProtocols) {
  const ClusterSpec plain = with_links("kind: nvswitch", "");
  expect_same(plain.intra.ll, typical_nvlink_protocols.ll);
  expect_same(plain.intra.ll128, typical_nvlink_protocols.ll128);
  expect_same(plain.nic.ll, typical_nic_protocols.ll);
  expect_same(plain.nic.ll128, typical_nic_protocols.ll128);
  const ClusterSpec partly = with_links("kind: nvswitch, efficiency: 0.8, ll: {efficiency: 0.3}", ", ll128: none, ll: typical");
  expect_same(partly.intra.ll, {typical_nvlink_protocols.ll.call_s, typical_nvlink_protocols.ll.latency_s, 0.3});
  EXPECT_FALSE(partly.intra.ll128 || partly.nic.ll128);
  expect_same(partly.nic.ll, typical_nic_protocols.ll);
  const ClusterSpec measured = with_links("kind: nvswitch", ", by_nodes: {2: 0.8, 8: 0.7}");
  EXPECT_FALSE(measured.nic.ll || measured.nic.ll128);
  const ClusterSpec mesh = with_links("kind: full_mesh", "");
  EXPECT_FALSE(mesh.intra.ll || mesh.intra.ll128 || mesh.nic.ll || mesh.nic.ll128);
}

// Medians over the GPUs whose NVLink was measured, in the files that differ from the typical one.
TEST(LinksByTheirDataSheet, RunProtocolsAtTheMedianOfMeasuredGpus) {
  std::set<double> ll, ll128;
  for (const std::string& name : config::data_names("platforms/clusters")) {
    const ClusterSpec cluster = read_cluster(config::Node::load_file(config::data_file("platforms/clusters", name)), name);
    if (cluster.intra.ll) ll.insert(cluster.intra.ll->efficiency);
    if (cluster.intra.ll128) ll128.insert(cluster.intra.ll128->efficiency);
  }
  EXPECT_DOUBLE_EQ(typical_nvlink_protocols.ll.efficiency, median({ll.begin(), ll.end()}));
  EXPECT_DOUBLE_EQ(typical_nvlink_protocols.ll128.efficiency, median({ll128.begin(), ll128.end()}));
}

// What is said of jobs of any size is the start of what is left in large ones.
TEST(LinksByTheirDataSheet, LoseRateWithTheNodesAsOthersDo) {
  const config::Node document = config::Node::load_text(
      "{gpu: h100-sxm5-80g, gpus_per_node: 8, intra_node: {kind: nvswitch, bandwidth: 450 GB/s}, nics: {per_node: 8, bandwidth: 400 "
      "Gbps},\n"
      " network: {kind: leaf_spine, nodes_per_leaf: 16}, host: {bandwidth: 63 GB/s}}",
      "c.yaml");
  ClusterSpec cluster = read_cluster(document, "c");
  settle_nics(cluster, document, 4);
  EXPECT_DOUBLE_EQ(cluster.nic.efficiency, typical_nic.efficiency);
  settle_nics(cluster, document, 64);
  EXPECT_DOUBLE_EQ(cluster.nic.efficiency, typical_nic.efficiency * unmeasured_at_scale);
}

}  // namespace

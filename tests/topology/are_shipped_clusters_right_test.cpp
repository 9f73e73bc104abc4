// Do the ready-made clusters load, and do they have the GPUs, ports and domains that their sources publish?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "config/data_dir.hpp"
#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;

struct Facts {
  std::string gpu;
  int gpus_per_node;
  double intra_gb_s;   // per GPU, one direction
  double node_gbit_s;  // all NICs of a node; 0: no network
  int domain_gpus;     // installed in one scale-up domain
  int nodes;           // 0: not limited
};

// As published: the datasheets and papers that the files name.
const std::map<std::string, Facts>& published() {
  static const std::map<std::string, Facts> facts{{"dgx2-v100-32g", {"v100-sxm3-32g", 16, 150, 800, 16, 0}},
                                                  {"dgx1-v100-32g", {"v100-sxm2-32g", 8, 25, 400, 8, 0}},  // per direct link
                                                  {"dgx-a100-40g-hdr200", {"a100-sxm4-40g", 8, 300, 1600, 8, 0}},
                                                  {"dgx-a100-80g-hdr200", {"a100-sxm4-80g", 8, 300, 1600, 8, 0}},
                                                  {"jean-zay-a100-80g", {"a100-sxm4-80g", 8, 300, 400, 8, 52}},
                                                  {"jean-zay-v100-32g", {"v100-sxm2-32g", 4, 50, 400, 4, 261}},
                                                  {"aws-p4d-a100-40g", {"a100-sxm4-40g", 8, 300, 400, 8, 0}},
                                                  {"vtrain-a100-80g", {"a100-sxm4-80g", 8, 300, 800, 8, 0}},
                                                  {"megascale-a100", {"a100-sxm4-80g", 8, 300, 1600, 8, 0}},
                                                  {"mosaic-a100-80g", {"a100-sxm4-80g", 8, 300, 1600, 8, 0}},
                                                  {"mosaic-a100-40g", {"a100-sxm4-40g", 8, 300, 1600, 8, 0}},
                                                  {"mosaic-h100", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"internevo-a100-4x100g", {"a100-sxm4-80g", 8, 300, 400, 8, 0}},
                                                  {"ibm-a100-roce400", {"a100-sxm4-80g", 8, 300, 400, 8, 0}},
                                                  {"ibm-h100-roce800", {"h100-sxm5-80g", 8, 450, 800, 8, 0}},
                                                  {"zerobubble-a100", {"a100-sxm4-80g", 8, 300, 1600, 8, 4}},
                                                  {"dgx-h100-ndr400", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"meta-h100", {"h100-sxm5-80g", 8, 450, 3200, 8, 3072}},
                                                  {"meta-h100-500w-hbm2e", {"h100-sxm5-96g-hbm2e", 8, 450, 3200, 8, 0}},
                                                  {"coreweave-h100", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"azure-nd-h100-v5", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"oci-h100", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"aws-p5-h100", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"aws-p5-h100-full", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"aws-p5-h100-slow", {"h100-sxm5-80g", 8, 450, 3200, 8, 0}},
                                                  {"aws-p6-b300", {"b300-sxm", 8, 900, 6400, 8, 0}},
                                                  {"whitefiber-h200", {"h200-sxm", 8, 450, 3200, 8, 0}},
                                                  {"nebius-h200", {"h200-sxm", 8, 450, 3200, 8, 0}},
                                                  {"h800-deepseek", {"h800-sxm", 8, 200, 3200, 8, 256}},
                                                  {"h800-deepseek-mrft", {"h800-sxm", 8, 200, 3200, 8, 256}},
                                                  {"h800-bytedance", {"h800-sxm", 8, 200, 3200, 8, 0}},
                                                  {"hgx-b200", {"b200-sxm", 8, 900, 0, 8, 1}},
                                                  {"dgx-b200-ndr400", {"b200-sxm", 8, 900, 3200, 8, 0}},
                                                  {"hipergator-b200", {"b200-sxm", 8, 900, 3200, 8, 0}},
                                                  {"dgx-b300-xdr800", {"b300-sxm", 8, 900, 6400, 8, 0}},
                                                  {"gb200-nvl72", {"gb200", 4, 900, 1600, 72, 0}},
                                                  {"coreweave-gb200-nvl72", {"gb200", 4, 900, 1600, 72, 0}},
                                                  {"gb300-nvl72", {"gb300", 4, 900, 3200, 72, 0}},
                                                  {"tpu-v5e-256", {"tpu-v5e", 1, 0, 1600, 1, 256}},
                                                  {"tpu-v6e-256", {"tpu-v6e", 1, 0, 3200, 1, 256}},
                                                  {"tpu-v5p-512", {"tpu-v5p", 1, 0, 4800, 1, 256}},
                                                  {"tpu-v7x-64", {"tpu-v7x", 1, 0, 4800, 1, 64}},
                                                  {"atlas-900-a2", {"ascend-910b2", 8, 28, 1600, 8, 0}},  // per direct link
                                                  {"atlas-900-a3", {"ascend-910c", 16, 196, 3200, 384, 0}},
                                                  {"ascend-910b-supernode", {"ascend-910b-64g", 8, 196, 1600, 384, 0}},
                                                  {"pcie-box-4", {"a100-pcie-40g", 4, 31.5, 0, 4, 1}},
                                                  {"a100-pcie-8", {"a100-pcie-80g", 8, 32, 0, 8, 1}},
                                                  {"h100-pcie-8", {"h100-pcie-80g", 8, 64, 0, 8, 1}},
                                                  {"h200-nvl-8", {"h200-nvl", 4, 150, 2048, 4, 2}},  // per direct link
                                                  {"l40s-pcie-8", {"l40s", 8, 32, 0, 8, 1}},
                                                  {"mi300x-8", {"mi300x", 8, 64, 0, 8, 1}},
                                                  {"gaudi3-8", {"gaudi3", 8, 75, 0, 8, 1}},
                                                  {"rtx-pro-6000-pcie-8", {"rtx-pro-6000-server", 8, 63, 0, 8, 1}},
                                                  {"rtx-4090-pcie-1", {"rtx-4090", 1, 31.5, 0, 1, 1}},
                                                  {"h800-roce-8x200", {"h800-sxm", 8, 200, 1600, 8, 0}},
                                                  {"h20-roce-4x400", {"h20-141g", 8, 450, 1600, 8, 0}},
                                                  {"a10-pcie", {"a10", 4, 31.5, 100, 4, 0}},
                                                  {"leonardo-booster", {"a100-custom-64g", 4, 100, 400, 4, 3456}},
                                                  {"kempner-h200", {"h200-sxm", 4, 150, 1600, 4, 0}},
                                                  {"alps-gh200", {"gh200-96g-660w", 4, 150, 800, 4, 2688}},
                                                  {"marenostrum5-acc", {"h100-sxm5-64g", 4, 150, 800, 4, 1120}},
                                                  {"gaudi2-8", {"gaudi2", 8, 37.5, 2400, 8, 0}},
                                                  {"mi355x-8", {"mi355x", 8, 76.8, 0, 8, 1}},
                                                  {"aws-trn1-32xl", {"trainium1-core", 32, 192, 800, 32, 0}}};
  return facts;
}

ClusterSpec load(const std::string& name) {
  return read_cluster(config::Node::load_file(config::data_file("platforms/clusters", name)), name);
}

TEST(AreShippedClustersRight, AllOfThemAreCheckedHere) {
  std::vector<std::string> names;
  for (const auto& [name, facts] : published()) names.push_back(name);
  EXPECT_EQ(config::data_names("platforms/clusters"), names);
}

TEST(AreShippedClustersRight, AboutWhatTheirSourcesState) {
  for (const auto& [name, facts] : published()) {
    const auto cluster = load(name);
    EXPECT_EQ(cluster.gpu, facts.gpu) << name;
    EXPECT_EQ(cluster.gpus_per_node, facts.gpus_per_node) << name;
    EXPECT_DOUBLE_EQ(cluster.intra.bandwidth_bytes_per_s, facts.intra_gb_s * 1e9) << name;
    EXPECT_DOUBLE_EQ(cluster.nics_per_node * cluster.nic.bandwidth_bytes_per_s * 8, facts.node_gbit_s * 1e9) << name;
    EXPECT_EQ(cluster.domain_gpus() + cluster.supernode_spare_gpus, facts.domain_gpus) << name;
    EXPECT_EQ(cluster.nodes, facts.nodes) << name;
  }
}

TEST(AreShippedClustersRight, AboutTheGpusTheyName) {
  const auto known = config::data_names("platforms/gpus");
  for (const auto& [name, facts] : published())
    EXPECT_EQ(std::count(known.begin(), known.end(), facts.gpu), 1) << facts.gpu << " of " << name;
}

// Non-blocking trees carry across the middle what the NICs inject. Others are built otherwise: Meta's, with 1:7 between its pods, the
// supernode, whose own fabric straddles the middle, and tori.
TEST(AreShippedClustersRight, AboutTheirBisection) {
  for (const auto& [name, facts] : published()) {
    if (facts.node_gbit_s == 0 || facts.domain_gpus > 72 || name.starts_with("tpu")) continue;
    const auto cluster = load(name);
    const int gpus = facts.nodes > 0 ? facts.nodes * facts.gpus_per_node : 2048;
    const auto cuts = Fabric::build(cluster, gpus).cuts();
    const double share = name == "meta-h100" ? 1.0 / 7 : 1.0;
    EXPECT_NEAR(cuts.bisection_bytes_per_s / cuts.injection_bytes_per_s, share, 1e-6) << name;
  }
}

// The same silicon behaves the same wherever it stands; over PCIe the host's bridges are between the ports, and machines differ
// (L40S and A100 of the same tables: docs/serving.md). MoFa's device is what its paper and CloudMatrix's print, of which no run is known;
// Alps' four GPUs are as nccl-tests have such nodes, where other nodes of four keep what their runs ask for (their files say so).
TEST(AreShippedClustersRight, WithOneEfficiencyPerKindOfPort) {
  std::map<std::pair<IntraNode, double>, std::pair<double, double>> by_rate;  // a link of a mesh is not a port on a switch
  for (const auto& [name, facts] : published()) {
    const auto cluster = load(name);
    if (cluster.intra_kind == IntraNode::pcie || name == "ascend-910b-supernode" || name == "alps-gh200") continue;
    const LinkSpec& intra = cluster.intra;
    const std::pair behaviour{intra.efficiency, intra.latency_s};
    const auto [it, first] = by_rate.emplace(std::pair{cluster.intra_kind, intra.bandwidth_bytes_per_s}, behaviour);
    EXPECT_EQ(it->second, behaviour) << name;
  }
}

}  // namespace

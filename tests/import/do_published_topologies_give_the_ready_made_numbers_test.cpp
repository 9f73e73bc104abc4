// Topologies as machines print them (published/SOURCES.md), and what of them a cluster must say.
#include <gtest/gtest.h>

#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

const Settings dgx_a100{
    {"gpu", "a100-sxm4-80g"},          {"gpus_per_node", "8"}, {"intra_node.kind", "nvswitch"}, {"intra_node.bandwidth", "300 GB/s"},
    {"intra_node.efficiency", "0.73"}, {"nics.per_node", "8"}, {"nics.bandwidth", "200 Gbps"},  {"network.kind", "rail_optimised"}};
const Settings hgx_h100{
    {"gpu", "h100-sxm5-80g"},         {"gpus_per_node", "8"}, {"intra_node.kind", "nvswitch"}, {"intra_node.bandwidth", "450 GB/s"},
    {"intra_node.latency", "3.3 us"}, {"nics.per_node", "8"}, {"nics.bandwidth", "400 Gbps"}};

TEST(NcclTopology, OfDgxA100AndHgxH100AreTheReadyMadeNumbers) {
  expect(import_published("nccl-topology", "dgx-a100.xml", {}), dgx_a100);
  const ImportedFile h100 = import_published("nccl-topology", "hgx-h100.xml", {});
  expect(h100, hgx_h100);
  expect(h100, {{"host.bandwidth", "63.02 GB/s"}});  // 32 GT/s x 16 x 128/130
  EXPECT_TRUE(says(h100.draft.inferred, "nearest network ports of the GPUs: 0 1 2 3 4 5 6 7"));
}

const Settings gb200_tray{
    {"gpu", "gb200"},       {"gpus_per_node", "4"},         {"intra_node.kind", "nvswitch"},   {"intra_node.bandwidth", "900 GB/s"},
    {"nics.per_node", "4"}, {"nics.bandwidth", "400 Gbps"}, {"network.kind", "rail_optimised"}};

TEST(NcclTopology, OfAGb200TrayAreTheReadyMadeNumbers) {
  const ImportedFile tray = import_published("nccl-topology", "gb200-tray.xml", {});
  expect(tray, gb200_tray);
  expect(tray, {{"intra_node.efficiency", "0.723"}, {"supernode.gpus", "72"}, {"host.bandwidth", "223.6 GB/s"}});  // 5 C2C links
  EXPECT_TRUE(says(tray.draft.inferred, "nearest network ports of the GPUs: 0 1 2 3"));
}

TEST(NcclTopology, WithoutNvlinkTheGpusMeetOverPcie) {
  const ImportedFile file = import_published("nccl-topology", "pcie-a100.xml", {});
  expect(file,
         {{"intra_node.kind", "pcie"}, {"intra_node.bandwidth", "31.51 GB/s"}, {"gpu", "a100-pcie-40g"}, {"nodes", "1"}, {"host", ""}});
}

TEST(NvidiaSmi, OfDgxA100AndHgxH100AreTheReadyMadeNumbers) {
  expect(import_published("nvidia-smi", "dgx-a100-topo.txt", {{"nics.bandwidth", "200 Gbps"}, {"host.bandwidth", "31.5 GB/s"}}), dgx_a100);
  const ImportedFile h100 = import_published(
      "nvidia-smi", "hgx-h100-topo.txt",
      {{"gpu", "h100-sxm5-80g"}, {"intra_node.bandwidth", "450 GB/s"}, {"nics.bandwidth", "400 Gbps"}, {"host.bandwidth", "63 GB/s"}});
  expect(h100, hgx_h100);  // the two ports that no GPU is nearest to serve storage
}

TEST(NvidiaSmi, OfAGb200TrayAreTheReadyMadeNumbers) {
  const ImportedFile tray = import_published(
      "nvidia-smi", "gb200-tray-topo.txt",
      {{"gpu", "gb200"}, {"intra_node.bandwidth", "900 GB/s"}, {"nics.bandwidth", "400 Gbps"}, {"host.bandwidth", "450 GB/s"}});
  expect(tray, gb200_tray);
  EXPECT_TRUE(says(tray.draft.inferred, "nearest network ports of the GPUs: 0 1 2 3"));
}

TEST(NvidiaSmi, WithoutNvlinkTheGpusMeetOverPcie) {
  const ImportedFile box =
      import_published("nvidia-smi", "pcie-a100-topo.txt", {{"gpu", "a100-pcie-40g"}, {"intra_node.bandwidth", "31.5 GB/s"}});
  expect(box, {{"intra_node.kind", "pcie"}, {"gpus_per_node", "8"}, {"nodes", "1"}, {"host", ""}});
}

}  // namespace
}  // namespace rehearse::sim::testing

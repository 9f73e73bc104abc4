// Device memory of NCCL's communicators against what was published of it, and by its own rules.
#include <gtest/gtest.h>

#include "places.hpp"
#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"
#include "sim/memory/nccl_buffers.hpp"
#include "sim/memory/ranks_at_rest.hpp"

namespace rehearse::sim {
namespace {

constexpr double one_mib = 1024.0 * 1024;

topology::ClusterSpec cluster(const char* name) { return topology::read_cluster(ready_made(cluster_part, name).node, name); }

double mebibytes(Nccl release, const char* of, const NcclGroup& group, const NcclUse& use = {}) {
  return nccl_communicator_bytes(release, cluster(of), group, use) / one_mib;
}

// NVIDIA/nccl issue 964, four A100 with NVLink: 544 MB for each group of two; 688 for each larger one on rank 0, where the chains of the
// trees end, which have 12 MiB more on each of 24 channels in their middle, half of it at their ends.
TEST(WhatNcclHolds, TwoAndFourA100) {
  EXPECT_EQ(mebibytes(Nccl::v2_18, "dgx-a100-80g-hdr200", {2, 2}), 544);
  EXPECT_EQ(mebibytes(Nccl::v2_18, "dgx-a100-80g-hdr200", {4, 4}), 688 + 24 * 6);
  EXPECT_EQ(mebibytes(Nccl::v2_18, "dgx-a100-80g-hdr200", {3, 3}), 688 + 24 * 6);
}

// NVIDIA/nccl issue 1685, the first all-to-all of eight H100: 1.06 GB before, 4.34 after. 12 MiB for each of 7 peers on 32 channels, 256
// shared.
TEST(WhatNcclHolds, AnAllToAllOfEightH100) {
  const double held = mebibytes(Nccl::v2_23, "dgx-h100-ndr400", {8, 8}, {NcclReduces::none, 7});
  EXPECT_EQ(held, 7 * 32 * 12 + 256);
  EXPECT_NEAR(held * one_mib / 1e9, 4.34 - 1.06, 0.2);
}

// 16 channels, two directions, eight heads: of 4 MiB and two for flags (2.18), of 1 and 2 (2.19), of 1 (2.23, where a large all-reduce
// runs).
TEST(WhatNcclHolds, Multicast) {
  const char* h100 = "dgx-h100-ndr400";
  const NcclUse may{NcclReduces::large, 0, true}, may_not{NcclReduces::large, 0, false};
  const auto adds = [&](Nccl release, const char* of) {
    return mebibytes(release, of, {8, 8}, may) - mebibytes(release, of, {8, 8}, may_not);
  };
  EXPECT_EQ(adds(Nccl::v2_14, h100), 0);
  EXPECT_EQ(adds(Nccl::v2_18, h100), 16 * 2 * 6 * 8);
  EXPECT_EQ(adds(Nccl::v2_19, h100), 16 * 2 * 3 * 8);
  EXPECT_EQ(adds(Nccl::v2_23, h100), 16 * 2 * 1 * 8);
  EXPECT_EQ(adds(Nccl::v2_19, "dgx-a100-80g-hdr200"), 0);
  EXPECT_EQ(mebibytes(Nccl::v2_23, h100, {8, 8}, {NcclReduces::small, 0, true}),
            mebibytes(Nccl::v2_23, h100, {8, 8}, {NcclReduces::small}));
}

// What 2.23 does not connect: trees where nothing is all-reduced, rings where ranks send to their neighbours alone.
TEST(WhatNcclHolds, WhatIsUsed) {
  const char* a100 = "dgx-a100-80g-hdr200";
  EXPECT_EQ(mebibytes(Nccl::v2_23, a100, {8, 8}), 256 + 24 * 12);
  EXPECT_EQ(mebibytes(Nccl::v2_23, a100, {8, 8}, {NcclReduces::small}), 256 + 24 * 12);
  EXPECT_EQ(mebibytes(Nccl::v2_23, a100, {64, 8}, {NcclReduces::small}), mebibytes(Nccl::v2_18, a100, {64, 8}));
  EXPECT_LT(mebibytes(Nccl::v2_23, a100, {64, 8}), mebibytes(Nccl::v2_18, a100, {64, 8}));
  EXPECT_EQ(mebibytes(Nccl::v2_23, a100, {8, 8}, {NcclReduces::none, 2}), 256 + 2 * 32 * 12);
  EXPECT_EQ(mebibytes(Nccl::v2_18, a100, {8, 8}, {NcclReduces::none, 2}), 256 + 24 * 24 + 2 * 32 * 12);
}

// One GPU of each of eight nodes, two channels for its NIC: rings of 20 MiB, trees with 14 edges of 20 for eight nodes, 2 x 16 x 128 KiB
// shared.
TEST(WhatNcclHolds, OverNodes) {
  EXPECT_EQ(mebibytes(Nccl::v2_18, "dgx-a100-80g-hdr200", {8, 1}), 2 * 20 + 2 * 20 * 14 / 8 + 4);
  EXPECT_EQ(mebibytes(Nccl::v2_10, "dgx-a100-80g-hdr200", {8, 1}), 2 * 20 + 2 * 20 * 14 / 8);
}

// A group of one rank has the shared buffers of 32 channels from 2.14 on (NVIDIA/nccl issue 2363 has them of 64, in 2.28).
TEST(WhatNcclHolds, OneRank) {
  EXPECT_EQ(mebibytes(Nccl::v2_10, "dgx-h100-ndr400", {1, 1}), 0);
  EXPECT_EQ(mebibytes(Nccl::v2_14, "dgx-h100-ndr400", {1, 1}), 256);
}

Job job(const std::string& parallel, const std::string& gpus, const std::string& rest) {
  return read_job(
      config::Node::load_text("{model: llama2-7b, gpus: " + gpus + ", parallel: " + parallel +
                                  ", batch: {global: 64, micro: 1, sequence: 4096}, precision: bf16, attention: flash, recompute: none, " +
                                  rest + "}",
                              "job.yaml"),
      "job");
}

double framework(const Job& job) { return framework_bytes(job.system, job.workload) / one_mib; }

// Megatron-LM on one node of A100, tp 8 with sequence parallelism: tp, the replica and all ranks, eight of 24 channels each; dp is one
// rank.
TEST(WhatNcclHolds, TheGroupsOfAStack) {
  const Job megatron =
      job("{tp: 8, sp: true}", "8", "cluster: dgx-a100-80g-hdr200, software: megatron-lm, optimizer: {kind: adam, sharding: zero1}");
  EXPECT_EQ(framework(megatron), 512 + 3 * (256 + 24 * 24) + 256);
  const Job fsdp = job("{dp: 8}", "8", "cluster: dgx-a100-80g-hdr200, software: torch-fsdp, optimizer: {kind: adam, sharding: zero3}");
  EXPECT_EQ(framework(fsdp), 512 + 256 + 24 * 24);
}

// HCCL of a direction, the replica and all ranks: 200 MiB for what is sent, 200 for what is received.
TEST(WhatNcclHolds, OtherLibraries) {
  const Job ascend = job("{tp: 8, sp: true}", "8", "cluster: atlas-900-a2, software: mindspeed, optimizer: {kind: adam, sharding: zero1}");
  EXPECT_NEAR(framework(ascend), 0.54 * 1024 + 3 * 400, 1e-6);
}

}  // namespace
}  // namespace rehearse::sim

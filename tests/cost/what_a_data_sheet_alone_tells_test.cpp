// A GPU file without `efficiency`: what calibrated GPUs have in common.
#include <gtest/gtest.h>

#include <cmath>

#include "config/node.hpp"
#include "gpu_files.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim::testing {
namespace {

Gpu sheet_of(const std::string& name) {
  return read_gpu(ready_made(gpu_part, name).node.without("efficiency"), name + " by its data sheet");
}

workloads::Operator square(std::int64_t n, workloads::DType type) {
  workloads::Operator op;
  op.dtype = type;
  op.m = op.n = op.k = n;
  op.flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  op.bytes = 3.0 * static_cast<double>(n) * static_cast<double>(n) * bytes_of(type);
  return op;
}

// Large products of the three whose lines it was drawn through, and of what shares their silicon: 15 % is what the worst of the three is
// off when it is left out.
TEST(WhatADataSheetAloneTells, IsNearWhatWasCalibrated) {
  for (const char* name : {"a100-sxm4-80g", "h100-sxm5-80g", "b200-sxm", "gb200", "h200-sxm"}) {
    const Gpu known = shipped_gpu(name), sheet = sheet_of(name);
    const workloads::Operator op = square(8192, workloads::DType::bf16);
    EXPECT_NEAR(sheet.cost->seconds(op) / known.cost->seconds(op), 1, 0.15) << name;
  }
}

// More of the same power: faster, but by less than the peak says.
TEST(WhatADataSheetAloneTells, FallsShortWhereThePowerLimitDoes) {
  config::Node node = ready_made(gpu_part, "h100-sxm5-80g").node.without("efficiency");
  const Gpu before = read_gpu(node, "before");
  node.set("power_limit", "500 W");
  const Gpu after = read_gpu(node, "after");
  const workloads::Operator op = square(16384, workloads::DType::bf16);
  EXPECT_GT(after.cost->seconds(op), before.cost->seconds(op));
}

// A TPU's peak is what its clock gives: power says nothing.
TEST(WhatADataSheetAloneTells, OfATpuIsWhatItsClockGives) {
  config::Node node = ready_made(gpu_part, "tpu-v5p").node;
  const workloads::Operator op = square(16384, workloads::DType::bf16);
  const double before = read_gpu(node, "before").cost->seconds(op);
  node.set("power_limit", "100 W");
  EXPECT_EQ(read_gpu(node, "weak").cost->seconds(op), before);
  EXPECT_NEAR(op.flops / 459e12 / before, 0.89, 0.005);
}

// A matrix unit of 256, half as full with heads of 128, against one of 128, which they fill: half the share of the peak.
TEST(WhatADataSheetAloneTells, IsHalfForHeadsThatFillHalfOfAMatrixUnit) {
  const Gpu narrow = shipped_gpu("tpu-v5p"), wide = shipped_gpu("tpu-v6e");
  workloads::Operator op;
  op.cls = workloads::OperatorClass::attention;
  op.flops = 1e12;
  EXPECT_NEAR(narrow.cost->seconds(op) * 459e12 / (wide.cost->seconds(op) * 918e12), 0.5, 1e-9);
  EXPECT_EQ(wide.flash_share.at(3).at(256), 2);  // heads of 256 fill it
  const Gpu sheet = read_gpu(ready_made(gpu_part, "tpu-v6e").node.without("efficiency").without("flash"), "sheet");
  EXPECT_NEAR(sheet.cost->seconds(op) / wide.cost->seconds(op), 1, 1e-9);  // told by what its memory must feed
  EXPECT_EQ(sheet.flash_share, read_gpu(ready_made(gpu_part, "tpu-v7x").node.without("flash").without("efficiency"), "v7x").flash_share);
}

// Communication holds SMs of NVIDIA's and AMD's: what a file does not say of it is what calibrated GPUs have in common, unless it has lines
// of its own.
TEST(WhatADataSheetAloneTells, HoldsOfContentionAndOlderAttentionToo) {
  const config::Node file = ready_made(gpu_part, "h100-sxm5-80g").node;
  const Gpu bare = read_gpu(file.without("efficiency").without("contention").without("flash"), "bare");
  EXPECT_TRUE(bare.by_data_sheet);
  EXPECT_FALSE(shipped_gpu("h100-sxm5-80g").by_data_sheet);
  EXPECT_NEAR(bare.contention_with(workloads::Phase::tp).alpha, std::cbrt(1.29 * 1.22 * 1.19), 0.005);
  EXPECT_NEAR(bare.contention_with(workloads::Phase::dp).alpha, std::cbrt(1.17 * 1.4 * 1.4), 0.005);
  EXPECT_NEAR(bare.flash_share.at(1).at(128), std::sqrt(0.44 * 0.3), 0.005);
  EXPECT_NEAR(bare.flash_share.at(triton).at(128), std::sqrt(0.48 * 0.32), 0.005);
  EXPECT_EQ(sheet_of("h100-sxm5-80g").contention_with(workloads::Phase::dp).alpha, 1.4);  // the file says it
  config::Node one = file.without("efficiency").without("contention");
  one.set("contention.ep.alpha", "1.05");  // of the others it says nothing
  const Gpu partly = read_gpu(one, "partly");
  EXPECT_EQ(partly.contention_with(workloads::Phase::ep).alpha, 1.05);
  EXPECT_EQ(partly.contention_with(workloads::Phase::dp).alpha, bare.contention_with(workloads::Phase::dp).alpha);
  EXPECT_EQ(read_gpu(file.without("contention"), "own lines").contention_with(workloads::Phase::dp).alpha, 1);
  const auto& attention = shipped_gpu("tpu-v5p").flash_share;
  EXPECT_EQ(attention.at(3).at(64), 0.5);   // half of a matrix unit
  EXPECT_EQ(attention.at(2).at(64), 0.27);  // likewise, in blocks of 512
  EXPECT_EQ(attention.at(1).at(64), 0.14);  // its file's own, beside them
  EXPECT_EQ(read_gpu(ready_made(gpu_part, "tpu-v6e").node.without("contention"), "tpu").contention_with(workloads::Phase::dp).alpha, 1);
}

// Gaudi 2 has a number of its own for products in 8 bits; in 16 it says what its sheet tells, to three places.
TEST(WhatADataSheetAloneTells, HoldsOfGaudi2InSixteenBits) {
  const workloads::Operator op = square(8192, workloads::DType::bf16);
  EXPECT_NEAR(shipped_gpu("gaudi2").cost->seconds(op) / sheet_of("gaudi2").cost->seconds(op), 1, 0.001);
}

TEST(WhatADataSheetAloneTells, HasALineForEachPrecisionOfTheSheet) {
  const Gpu sheet = sheet_of("b200-sxm");
  for (const auto& [type, peak] : sheet.peak_flops_per_s) EXPECT_GT(sheet.cost->seconds(square(4096, type)), 0) << name_of(type);
}

}  // namespace
}  // namespace rehearse::sim::testing

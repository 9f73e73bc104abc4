#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "config/input_error.hpp"
#include "gpu_files.hpp"
#include "sim/cost/queue.hpp"
#include "sim/system.hpp"

namespace rehearse::sim::testing {
namespace {

TEST(Roofline, IsTheSlowerOfComputingAndMoving) {
  // 50 TFLOP/s and 0.8 TB/s: the ridge is at 62.5 FLOP/byte.
  const Gpu gpu = gpu_with_gemm("{model: roofline, compute: 0.5, memory: 0.8}");
  workloads::Operator op = gemm(4096, 4096, 4096);
  expect_same(gpu.cost->seconds(op), op.flops / 50e12);
  op.bytes = op.flops / 50;  // 50 FLOP/byte: left of the ridge
  expect_same(gpu.cost->seconds(op), op.bytes / 0.8e12);
  op.bytes = op.flops / 62.5;
  expect_same(op.flops / 50e12, op.bytes / 0.8e12);
}

TEST(Roofline, DefaultsToTheDataSheet) {
  const workloads::Operator op = gemm(4096, 4096, 4096);
  expect_same(gpu_with_gemm("{model: roofline}").cost->seconds(op), op.flops / 100e12);
}

TEST(Roofline, PricesMovementByBytesAlone) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  expect_same(gpu.cost->seconds(moving(1e9)), 1e9 / 0.5e12);
  EXPECT_EQ(gpu.cost->seconds(moving(0)), 0);
}

TEST(ModifiedRoofline, AddsBothLinesWithKneeOne) {
  const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 0.7, memory: 0.6, knee: 1}");
  const workloads::Operator op = gemm(1024, 1024, 512);
  expect_same(gpu.cost->seconds(op), op.flops / 70e12 + op.bytes / 0.6e12);
}

TEST(ModifiedRoofline, IsTheRootOfTheSumOfPowersBetween) {
  const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 0.7, memory: 0.6, knee: 2, fixed: 3 us}");
  const workloads::Operator op = gemm(1024, 1024, 512);
  expect_same(gpu.cost->seconds(op), std::hypot(op.flops / 70e12, op.bytes / 0.6e12) + 3e-6);
}

TEST(ModifiedRoofline, ApproachesTheRooflineWithASharpKnee) {
  const workloads::Operator op = gemm(4096, 4096, 4096);
  const double sharp = gpu_with_gemm("{model: modified-roofline, compute: 0.7, memory: 0.6, knee: 64}").cost->seconds(op);
  const double corner = gpu_with_gemm("{model: roofline, compute: 0.7, memory: 0.6}").cost->seconds(op);
  EXPECT_GE(sharp, corner);
  EXPECT_LE(sharp, corner * std::pow(2, 1.0 / 64));  // both lines equal: the largest gap
}

TEST(ModifiedRoofline, StretchesCausalBlocksAndNarrowHeads) {
  // 1 + 128/1024 of the blocks, 1 + 32/64 of the work per score.
  const Gpu gpu = gpu_with_attention("{model: modified-roofline, compute: 0.5, memory: 1, knee: 1, causal_block: 128, head_dim_half: 32}");
  const workloads::Operator causal = attention(1, 16, 1024, 64, true), full = attention(1, 16, 1024, 64, false);
  expect_same(gpu.cost->seconds(causal), causal.flops * 1.125 * 1.5 / 50e12 + causal.bytes / 1e12);
  expect_same(gpu.cost->seconds(full), full.flops * 1.5 / 50e12 + full.bytes / 1e12);
}

// A window of 128 in 1,024 positions: 350 keys more a query, whatever the diagonal of a whole sequence takes.
TEST(ModifiedRoofline, TakesWholeBlocksOfAWindow) {
  const auto work = [](const char* more) {
    const Gpu gpu = gpu_with_attention(fmt::format("{{model: modified-roofline, compute: 0.5, memory: 1, causal_block: 64{}}}", more));
    workloads::Operator op = attention(1, 16, 1024, 64, true);
    op.key = 128;
    op.bytes = 0;
    return gpu.cost->seconds(op) * 50e12 / op.flops;
  };
  expect_same(work(", window_block: 350"), 1 + 350.0 / 128);
  expect_same(work(""), 1 + 64.0 / 128);  // left out: as on the diagonal
}

TEST(ModifiedRoofline, RunsBackwardAtItsOwnRate) {
  const Gpu gpu = gpu_with_attention("{model: modified-roofline, compute: 0.5, memory: 1, knee: 1, backward: 0.8}");
  workloads::Operator op = attention(1, 16, 1024, 64, false);
  op.bytes = 0;
  const double forward = gpu.cost->seconds(op);
  op.pass = workloads::Pass::backward_input;
  expect_same(gpu.cost->seconds(op), forward / 0.8);
  op.pass = workloads::Pass::recompute;
  expect_same(gpu.cost->seconds(op), forward);
}

const char* const profile =
    "{model: profile, points: [{m: 1024, n: 1024, k: 1024, rate: 40 TFLOP/s}, {m: 4096, n: 1024, k: 1024, rate: 60 TFLOP/s},"
    " {m: 4096, n: 4096, k: 4096, rate: 80 TFLOP/s}]}";

double rate(const Gpu& gpu, const workloads::Operator& op) { return op.flops / gpu.cost->seconds(op); }

TEST(Profile, PassesExactlyThroughItsPoints) {
  const Gpu gpu = gpu_with_gemm(profile);
  expect_same(rate(gpu, gemm(1024, 1024, 1024)), 40e12);
  expect_same(rate(gpu, gemm(4096, 1024, 1024)), 60e12);
  expect_same(rate(gpu, gemm(4096, 4096, 4096)), 80e12);
}

TEST(Profile, NeverLeavesTheRangeOfItsPoints) {
  const Gpu gpu = gpu_with_gemm(profile);
  for (const std::int64_t m : {1, 100, 2000, 100'000}) {
    for (const std::int64_t k : {1, 100, 2000, 100'000}) {
      EXPECT_GE(rate(gpu, gemm(m, 1024, k)), 40e12 * (1 - 1e-12));
      EXPECT_LE(rate(gpu, gemm(m, 1024, k)), 80e12 * (1 + 1e-12));
    }
  }
}

TEST(Profile, TakesTheGeometricMeanHalfwayInLogarithms) {
  // Two points: the weights are equal at the geometric mean of the shapes.
  const Gpu gpu =
      gpu_with_gemm("{model: profile, points: [{m: 1024, n: 64, k: 64, rate: 20 TFLOP/s}, {m: 4096, n: 64, k: 64, rate: 80 TFLOP/s}]}");
  expect_same(rate(gpu, gemm(2048, 64, 64)), 40e12);
}

TEST(Profile, KnowsAttentionByItsOwnShape) {
  const Gpu gpu = gpu_with_attention(
      "{model: profile, points: [{query: 1024, key: 1024, head_dim: 64, heads: 32, rate: 20 TFLOP/s},"
      " {query: 8192, key: 8192, head_dim: 64, heads: 32, rate: 60 TFLOP/s}]}");
  expect_same(rate(gpu, attention(2, 16, 8192, 64, true)), 60e12);
}

TEST(OperatorSeconds, AddTheGapOfEveryKernel) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.launch_s = 2e-6;
  workloads::Operator op = moving(1e9);  // 2 ms
  op.kernels = 3;
  expect_same(operator_seconds(gpu, software, op), 2e-3 + 6e-6);
}

// Of the kernels alone, not of the gaps between them.
TEST(OperatorSeconds, TakeAStacksKernelsLonger) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.launch_s = 2e-6;
  software.kernel_time = 1.05;
  expect_same(operator_seconds(gpu, software, moving(1e9)), 1.05 * 2e-3 + 2e-6);
}

// The bytes and the adds of one kernel go on at the same time.
TEST(OperatorSeconds, AddElementByElementAtTheRateOfAtomics) {
  Gpu gpu = gpu_with_gemm("{model: roofline}");
  gpu.adds_per_s = 100e9;
  workloads::Operator op = moving(1e9);  // 2 ms
  op.adds = 1e9;
  expect_same(operator_seconds(gpu, {}, op), 10e-3);
  op.adds = 1e8;
  expect_same(operator_seconds(gpu, {}, op), 2e-3);
}

// A sum over what blocks left takes its time whatever the bytes, and is no part of what a stack takes longer.
TEST(OperatorSeconds, AddUpWhatBlocksLeft) {
  Gpu gpu = gpu_with_gemm("{model: roofline}");
  gpu.block_sum_s = 115e-6;
  Software software;
  software.kernel_time = 1.05;
  workloads::Operator op = moving(1e9);  // 2 ms
  op.block_sums = 2;
  expect_same(operator_seconds(gpu, software, op), 1.05 * 2e-3 + 230e-6);
}

// PyTorch's own operators reach a part of the memory-bound rate; kernels of the stack's libraries all of it.
TEST(OperatorSeconds, TakePyTorchsOperatorsLonger) {
  Gpu gpu = gpu_with_gemm("{model: roofline}");
  gpu.eager_share = 0.4;
  workloads::Operator op = moving(1e9);  // 2 ms
  expect_same(operator_seconds(gpu, {}, op), 2e-3);
  op.eager = true;
  expect_same(operator_seconds(gpu, {}, op), 5e-3);
}

// A stack's casts and transposes may take longer than their bytes; what else it moves does not.
TEST(OperatorSeconds, TakeAStacksCastsLonger) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software slow;
  slow.cast_time = 5;
  workloads::Operator op = moving(1e9);  // 2 ms
  expect_same(operator_seconds(gpu, slow, op), 2e-3);
  op.casts = true;
  expect_same(operator_seconds(gpu, slow, op), 10e-3);
  expect_same(operator_seconds(gpu, {}, op), 2e-3);
}

// A kernel for rows sorted by expert has the GPU's share of the products' rate; one that the GPU does not list has all of it.
TEST(OperatorSeconds, HaveTheShareOfTheirGroupedKernel) {
  Gpu gpu = gpu_with_gemm("{model: roofline}");
  gpu.grouped_share = {{workloads::GroupedKernel::torch, 0.5}};
  workloads::Operator op = gemm(4096, 4096, 4096);
  const double dense_s = gpu.cost->seconds(op);
  for (const auto& [kernel, times] : {std::pair{workloads::GroupedKernel::library, 1.0}, std::pair{workloads::GroupedKernel::torch, 2.0},
                                      std::pair{workloads::GroupedKernel::megablox, 1.0}}) {
    op.grouped = kernel;
    expect_same(operator_seconds(gpu, {}, op), times * dense_s);
  }
}

TEST(OperatorSeconds, HaveTheNarrowShareOfTheirGroupedKernel) {
  Gpu gpu = shipped_gpu("tpu-v7x");
  workloads::Operator op = gemm(4096, 4096, 4096, workloads::DType::fp8);
  op.grouped = workloads::GroupedKernel::megablox;
  gpu.narrow_grouped_share[op.grouped] = 0.25;  // where the GPU lists one
  gpu.grouped_tile_rows.clear();
  expect_same(operator_seconds(gpu, {}, op), 4 * gpu.cost->seconds(op));
}

// Rows of two experts in one tile are computed once for each: a tile more for every expert, of 1,024 rows here a quarter more and in the
// product of a weight's gradient, whose rows are summed over, likewise.
TEST(OperatorSeconds, ComputeATileMoreForEachExpert) {
  Gpu gpu = gpu_with_gemm("{model: roofline}");
  gpu.grouped_tile_rows = {{workloads::GroupedKernel::megablox, 256}};
  workloads::Operator op = gemm(1024, 4096, 8192);
  op.bytes = 0;
  const double alone_s = gpu.cost->seconds(op);
  expect_same(operator_seconds(gpu, {}, op), alone_s);
  op.grouped = workloads::GroupedKernel::megablox;
  expect_same(operator_seconds(gpu, {}, op), 1.25 * alone_s);
  op.pass = workloads::Pass::backward_weight;
  expect_same(operator_seconds(gpu, {}, op), (1 + 256.0 / 8192) * alone_s);
}

// Blocks of 2,048 on the diagonal: all of a square of 2,048, 5/4 of the half of one of 8,192.
TEST(OperatorSeconds, OfTpusAttendToWholeBlocksOnTheDiagonal) {
  const Gpu gpu = shipped_gpu("tpu-v5p");
  for (const auto& [positions, times] : {std::pair{2048, 2.0}, std::pair{8192, 1.25}}) {
    workloads::Operator op = attention(1, 8, positions, 128, true);
    op.bytes = 0;
    expect_same(gpu.cost->seconds(op), op.flops * times / (0.8 * 459e12));
  }
}

TEST(OperatorSeconds, AreNotLessThanTheHostNeedsToLaunch) {
  // 4 us of the driver and 6 us of the stack for each of two kernels that take nothing.
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.launch_s = 1e-6;
  software.issue_s = 6e-6;
  workloads::Operator op = moving(1);
  op.kernels = 2;
  expect_same(operator_seconds(gpu, software, op), 20e-6);
  // A slower processor on the GPU's board.
  Gpu slower = gpu;
  slower.host_time = 1.5;
  expect_same(operator_seconds(slower, software, op), 30e-6);
}

TEST(Efficiency, SixteenBitFormatsStandInForEachOther) {
  const std::string text =
      "source: test\nmemory: 80 GiB\nmemory_bandwidth: 1 TB/s\npower_limit: 400 W\nlaunch: 4 us\n"
      "peak: {bf16: 100 TFLOP/s, fp16: 200 TFLOP/s, fp8: 400 TFLOP/s}\nefficiency:\n  gemm: {bf16: {model: roofline}}\n"
      "  attention: {bf16: {model: roofline}}\n  memory_bound: {model: roofline}\n";
  const Gpu gpu = read_gpu(config::Node::load_text(text, "gpu.yaml"), "g1");
  const workloads::Operator op = gemm(4096, 4096, 4096, workloads::DType::fp16);
  expect_same(gpu.cost->seconds(op), op.flops / 200e12);
  try {
    static_cast<void>(gpu.cost->seconds(gemm(64, 64, 64, workloads::DType::fp8)));
    FAIL() << "fp8 has a peak but no efficiency";
  } catch (const config::InputError& error) {
    EXPECT_STREQ(error.what(), "error: GPU 'g1' has no efficiency for gemm in fp8");
  }
}

// 150 bf16 numbers are 300 bytes, a multiple of 4 alone; 108 are 27 times 8, 151 are 151 times 2, 104 are 13 times 16. m does not matter;
// of a weight's gradient k, its tokens, does not.
TEST(ModifiedRoofline, SlowsBatchedProductsOfUnalignedRows) {
  const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 0.5, memory: 1, knee: 64, unaligned_batched: 0.1}");
  const auto rate = [&](std::int64_t m, std::int64_t n, std::int64_t k, workloads::Pass pass = workloads::Pass::forward) {
    workloads::Operator op = gemm(m, n, k);
    op.bytes = 0;
    op.pass = pass;
    op.batched = true;
    return op.flops / gpu.cost->seconds(op);
  };
  const auto gradient = workloads::Pass::backward_weight;
  expect_same(rate(4096, 4096, 4001, gradient), 50e12);
  expect_same(rate(150, 4096, 4096, gradient), 5e12);
  expect_same(rate(4096, 108, 4096, gradient), 10e12);
  expect_same(rate(4096, 104, 4096), 50e12);
  expect_same(rate(4001, 4096, 4096), 50e12);
  expect_same(rate(4096, 150, 4096), 5e12);
  expect_same(rate(4096, 4096, 150), 5e12);
  expect_same(rate(4096, 4096, 108), 10e12);
  expect_same(rate(4096, 108, 150), 5e12);
  expect_same(rate(4096, 151, 4096), 2.5e12);
}

// 50257 bf16 numbers are a multiple of 2 bytes alone, 50260 of 8, 50264 of 16; all of them have the GPU's share of the rate.
TEST(ModifiedRoofline, SlowsLinearLayersOfUnalignedRows) {
  const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 0.5, memory: 1, knee: 64, unaligned_batched: 0.1}", "unaligned: 0.25");
  const auto rate = [&](std::int64_t m, std::int64_t n, std::int64_t k, workloads::Pass pass = workloads::Pass::forward) {
    workloads::Operator op = gemm(m, n, k);
    op.bytes = 0;
    op.pass = pass;
    return op.flops / gpu.cost->seconds(op);
  };
  const auto gradient = workloads::Pass::backward_weight;
  expect_same(rate(4096, 50264, 768), 50e12);
  expect_same(rate(4096, 50260, 768), 12.5e12);
  expect_same(rate(4096, 50257, 768), 12.5e12);
  expect_same(rate(4096, 768, 50257), 12.5e12);
  expect_same(rate(4095, 768, 768), 50e12);
  expect_same(rate(50257, 768, 4096, gradient), 12.5e12);
  expect_same(rate(768, 768, 4095, gradient), 50e12);
}

// A file that does not say: NVIDIA's are what Ampere and Hopper are in the mean; others' units fill up what is missing.
TEST(ModifiedRoofline, KnowsWhoseRowsMustBeAligned) {
  const auto slower = [](const char* vendor) {
    const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 0.5, memory: 1, knee: 64}", vendor);
    workloads::Operator aligned = gemm(4096, 50264, 768), op = gemm(4096, 50257, 768);
    aligned.bytes = op.bytes = 0;
    return gpu.cost->seconds(op) / op.flops / (gpu.cost->seconds(aligned) / aligned.flops);
  };
  expect_same(slower("vendor: nvidia"), 1 / 0.36);
  expect_same(slower(""), 1 / 0.36);
  expect_same(slower("vendor: google"), 1);
}

TEST(ModifiedRoofline, SlowsWeightGradients) {
  const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 0.5, memory: 1, knee: 64, backward: 0.8, weight_gradient: 0.5}");
  workloads::Operator op = gemm(4096, 4096, 4096);
  op.bytes = 0;
  for (const auto& [pass, rate] : {std::pair(workloads::Pass::forward, 50e12), std::pair(workloads::Pass::backward_input, 40e12),
                                   std::pair(workloads::Pass::backward_weight, 20e12)}) {
    op.pass = pass;
    expect_same(op.flops / gpu.cost->seconds(op), rate);
  }
}

// Products that read nearly all that they move, and those that write it, as an adapter's two; bytes alone count here.
TEST(ModifiedRoofline, MovesNarrowOutputsAndSumsAtRatesOfTheirOwn) {
  const Gpu gpu = gpu_with_gemm("{model: modified-roofline, compute: 2, memory: 0.4, knee: 64, narrow_output: 0.8, narrow_sum: 0.6}");
  const auto rate = [&](workloads::Operator op) {
    op.flops = 0;
    return op.bytes / gpu.cost->seconds(op);
  };
  expect_same(rate(gemm(8192, 257, 8192)), 0.4e12);
  expect_same(rate(gemm(8192, 256, 8192)), 0.8e12);
  expect_same(rate(gemm(16, 8192, 8192)), 0.8e12);
  expect_same(rate(gemm(8192, 8192, 64)), 0.6e12);
  expect_same(rate(gemm(8192, 8192, 65)), 0.4e12);
  workloads::Operator by_heads = gemm(8192, 128, 8192);
  by_heads.batched = true;
  expect_same(rate(by_heads), 0.4e12);
  workloads::Operator scan = gemm(8192, 8192, 64);
  scan.times = 2;
  expect_same(rate(scan), 0.4e12);
}

// Products in 8 bits with scales of blocks, by the share that the GPU leaves them.
TEST(BlockScales, SlowProducts) {
  Gpu gpu = gpu_with_gemm("{model: roofline}");
  gpu.block_scaled_share = 0.8;
  const Software software;
  workloads::Operator op = gemm(4096, 4096, 4096);
  const double whole_s = device_seconds(gpu, software, op);
  op.by_blocks = true;
  expect_same(device_seconds(gpu, software, op), whole_s / 0.8);
}

}  // namespace
}  // namespace rehearse::sim::testing

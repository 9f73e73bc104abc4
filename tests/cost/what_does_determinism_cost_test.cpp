#include <gtest/gtest.h>

#include "gpu_files.hpp"
#include "sim/cost/deterministic.hpp"
#include "sim/cost/queue.hpp"

namespace rehearse::sim::testing {
namespace {

// Five products where forward has two.
workloads::Operator backward(std::int64_t batch, std::int64_t heads, std::int64_t sequence, std::int64_t head_dim) {
  workloads::Operator op = attention(batch, heads, sequence, head_dim, true);
  op.pass = workloads::Pass::backward_input;
  op.flops *= 2.5;
  return op;
}

Software deterministic(int flash) {
  Software software;
  software.deterministic = true;
  software.flash = flash;
  return software;
}

Gpu of_multiprocessors(double count) {
  Gpu gpu = gpu_with_attention("{model: roofline}");
  gpu.multiprocessors = count;
  return gpu;
}

// Dao-AILab/flash-attention, pull request 1893: "Fav2 bwd: 8.279ms", causal and deterministic, 16 heads of 128 over 8,192 positions on
// H100; its 1.796 ms at 306.2 TFLOP/s forward are those of two sequences. Nothing of the GPU's file is fitted to it.
TEST(DeterministicAttention, TakesTheSecondGenerationWhatWasMeasured) {
  const double seconds = operator_seconds(shipped_gpu("h100-sxm5-80g"), deterministic(2), backward(2, 16, 8192, 128));
  EXPECT_NEAR(seconds, 8.279e-3, 0.1 * 8.279e-3);
}

// 4 heads over 10 multiprocessors: three walkers each, of which two multiprocessors have two. Ten blocks of 128 keys are four each, twice
// over; with a walker for each block 40 on 10 multiprocessors are four turns.
TEST(DeterministicAttention, WalksUnevenlyWhereHeadsDoNotDivideTheMultiprocessors) {
  expect_same(deterministic_share(of_multiprocessors(10), 2, backward(1, 4, 1280, 64)), 4.0 / 8);
}

TEST(DeterministicAttention, CostsNothingWhereEveryMultiprocessorWalksAlike) {
  expect_same(deterministic_share(of_multiprocessors(10), 2, backward(1, 5, 1280, 64)), 1);
}

// Fewer blocks than walkers: those that have one are as many as without determinism.
TEST(DeterministicAttention, CostsNothingWhereSequencesAreShort) {
  expect_same(deterministic_share(of_multiprocessors(100), 2, backward(1, 4, 256, 64)), 1);
}

// As above with 1,280 keys, of which a rank has 320 queries (context parallelism that gathers keys), or a window leaves 256 to each query.
TEST(DeterministicAttention, WalksOverAllKeys) {
  workloads::Operator gathered = backward(1, 4, 320, 64), windowed = backward(1, 4, 1280, 64);
  gathered.key = 1280;
  windowed.key = 256;
  expect_same(deterministic_share(of_multiprocessors(10), 2, gathered), 4.0 / 8);
  expect_same(deterministic_share(of_multiprocessors(10), 2, windowed), 4.0 / 8);
}

// 4 heads over 10 multiprocessors are three walkers each, of which two multiprocessors have two. 1,280 keys are 10 blocks of 128, 20 of 64
// or 40 of 32: each walks over 4, 7 or 14 of them, twice over; with a walker for each block they are 4, 8 or 16 turns.
TEST(DeterministicAttention, HasSmallerBlocksWhereSharedMemoryIsShort) {
  Gpu short_of_it = of_multiprocessors(10);
  short_of_it.shared_memory_bytes = 99 * 1024;
  const auto share = [](const Gpu& gpu, std::int64_t head_dim) { return deterministic_share(gpu, 2, backward(1, 4, 1280, head_dim)); };
  for (const std::int64_t head_dim : {64, 96, 192}) expect_same(share(short_of_it, head_dim), share(of_multiprocessors(10), head_dim));
  expect_same(share(short_of_it, 128), 8.0 / (2 * 7));
  expect_same(share(short_of_it, 256), 16.0 / (2 * 14));
  expect_same(share(of_multiprocessors(10), 128), 4.0 / (2 * 4));
  expect_same(share(of_multiprocessors(10), 256), 8.0 / (2 * 7));
}

// Two gradients of queries in fp32 more, each written and read.
TEST(DeterministicAttention, AddsUpAGradientOfEachWalker) {
  expect_same(deterministic_bytes(of_multiprocessors(10), 2, backward(1, 4, 1280, 64)), 2 * 2 * 4.0 * 4 * 1280 * 64);
  expect_same(deterministic_bytes(of_multiprocessors(10), 2, backward(1, 5, 1280, 64)), 2 * 4.0 * 5 * 1280 * 64);
}

TEST(DeterministicAttention, TakesOtherGenerationsWhatTheGpusFileSays) {
  Gpu gpu = of_multiprocessors(10);
  gpu.deterministic_attention = {{64, 0.77}, {128, 0.87}};
  const auto of_head = [&](std::int64_t head_dim) { return deterministic_share(gpu, 3, backward(1, 4, 1280, head_dim)); };
  expect_same(of_head(64), 0.77);
  expect_same(of_head(96), 0.87);
  expect_same(of_head(256), 0.87);
  EXPECT_EQ(deterministic_bytes(gpu, 3, backward(1, 4, 1280, 64)), 0);
}

TEST(DeterministicAttention, LeavesForwardAndOtherStacksAlone) {
  const Gpu gpu = of_multiprocessors(10);
  expect_same(operator_seconds(gpu, deterministic(2), attention(1, 4, 1280, 64, true)),
              operator_seconds(gpu, {}, attention(1, 4, 1280, 64, true)));
  Software other;
  other.flash = 2;
  expect_same(operator_seconds(gpu, other, backward(1, 4, 1280, 64)), gpu.cost->seconds(backward(1, 4, 1280, 64)));
}

// 1 GB at 0.5 TB/s.
TEST(DeterministicStacks, FillWhatIsAllocated) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  workloads::Operator op = gemm(4096, 4096, 4096);
  op.allocated_bytes = 1e9;
  expect_same(operator_seconds(gpu, deterministic(3), op), gpu.cost->seconds(op) + 2e-3);
  expect_same(operator_seconds(gpu, {}, op), gpu.cost->seconds(op));
}

}  // namespace
}  // namespace rehearse::sim::testing

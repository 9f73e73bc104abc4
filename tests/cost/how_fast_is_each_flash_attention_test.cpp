// What a stack's generation of flash attention makes of the GPU's line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "gpu_files.hpp"
#include "sim/cost/queue.hpp"
#include "sim/system.hpp"

namespace rehearse::sim::testing {
namespace {

// Under a mask a third of the second generation's rate, or of the line where the GPU tells the two apart no more, over the whole square:
// twice what a causal kernel computes, and of a window of a quarter 1 / (1/4 - 1/32) times what lies in it.
TEST(FlashGeneration, TakesTheWholeSquareUnderAMask) {
  Gpu gpu = gpu_with_attention("{model: roofline, compute: 0.5}");
  Software software;
  software.flash = masked;
  for (const double second : {1.0, 0.8}) {
    if (second < 1) gpu.flash_share = {{2, {{64, second}}}};
    for (const bool causal : {false, true}) {
      const workloads::Operator op = attention(1, 8, 4096, 64, causal);
      expect_same(operator_seconds(gpu, software, op), gpu.cost->seconds(op) * 3 * (causal ? 2 : 1) / second);
    }
    workloads::Operator window = attention(1, 8, 4096, 64, true);
    window.key = 1024;
    expect_same(operator_seconds(gpu, software, window), gpu.cost->seconds(window) * 3 * 32 / 7 / second);
  }
  // What whole blocks of a window take more is not in it.
  const auto seconds = [&](const char* block) {
    workloads::Operator window = attention(1, 8, 4096, 64, true);
    window.key = 1024;
    return operator_seconds(
        gpu_with_attention(fmt::format("{{model: modified-roofline, compute: 0.5, memory: 1, window_block: {}}}", block)), software,
        window);
  };
  expect_same(seconds("350"), seconds("0"));
}

// Where the GPU's file says what takes a mask, that, of the line's rate over the whole square: twice what is causal.
TEST(FlashGeneration, UnderAMaskIsWhatTheGpuSays) {
  Gpu gpu = gpu_with_attention("{model: roofline, compute: 0.5}");
  gpu.flash_share = {{2, {{64, 0.8}}}, {masked, {{128, 0.9}}}};
  Software software;
  software.flash = masked;
  const workloads::Operator op = attention(1, 8, 4096, 64, true);
  expect_same(operator_seconds(gpu, software, op), gpu.cost->seconds(op) * 2 / 0.9);
}

// A head of 96 takes the kernel of 128, one of 256 the largest there is; other operators and newer stacks have the line itself.
TEST(FlashGeneration, DividesTheRateOfTheAttentionLine) {
  Gpu gpu = gpu_with_attention("{model: roofline, compute: 0.5}");
  gpu.flash_share = {{1, {{64, 0.6}, {128, 0.4}}}, {2, {{64, 0.8}}}, {4, {{128, 1.3}}}, {triton, {{64, 0.5}}}};
  Software software;
  for (const auto& [generation, head_dim, share] : std::vector<std::tuple<int, int, double>>{
           {1, 64, 0.6}, {1, 32, 0.6}, {1, 96, 0.4}, {1, 256, 0.4}, {2, 128, 0.8}, {3, 64, 1.0}, {4, 128, 1.3}, {triton, 128, 0.5}}) {
    software.flash = generation;
    const workloads::Operator op = attention(1, 8, 4096, head_dim, false);
    expect_same(operator_seconds(gpu, software, op), gpu.cost->seconds(op) / share);
  }
  // PyTorch's own is the second generation, unless the GPU says what it is.
  const workloads::Operator op = attention(1, 8, 4096, 128, false);
  software.flash = sdpa;
  expect_same(operator_seconds(gpu, software, op), gpu.cost->seconds(op) / 0.8);
  gpu.flash_share[sdpa] = {{128, 0.25}};
  expect_same(operator_seconds(gpu, software, op), gpu.cost->seconds(op) / 0.25);
  software.flash = 1;
  expect_same(operator_seconds(gpu, software, gemm(4096, 4096, 4096)), gpu.cost->seconds(gemm(4096, 4096, 4096)));
}

}  // namespace
}  // namespace rehearse::sim::testing

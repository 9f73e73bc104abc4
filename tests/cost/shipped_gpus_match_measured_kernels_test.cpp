// How far the shipped GPU files are from published kernel times. The bounds are the fits' own residuals, rounded up; a change of a file or
// a formula that fits worse than the published fit fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "gpu_files.hpp"
#include "places.hpp"

namespace rehearse::sim::testing {
namespace {

using config::Node;
using workloads::Operator;
using workloads::Pass;

std::vector<Node> points(const char* file) {
  return Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/cost/measured/" + file).at("points").items();
}

std::int64_t size(const Node& row, const char* key, std::int64_t otherwise = 0) {
  const auto value = row.find(key);
  return value ? value->as_int(1, 1LL << 40) : otherwise;
}

bool is(const Node& row, const char* key, const std::string& value) {
  const auto found = row.find(key);
  return found && found->as_string() == value;
}

struct Deviation {
  double sum = 0;
  int count = 0;
  void add(double predicted, double measured) {
    sum += std::abs(predicted / measured - 1);
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
};

// All groups as one product of groups * m rows; every group has weights of its own.
Operator measured_gemm(const Node& row) {
  const auto type = is(row, "dtype", "fp8") ? workloads::DType::fp8 : workloads::DType::bf16;
  const std::int64_t groups = size(row, "groups", 1), m = size(row, "m"), n = size(row, "n"), k = size(row, "k");
  Operator op = gemm(m, n, k, type);
  const double output = is(row, "out", "fp32") ? 4 : 2;
  const bool accumulates = is(row, "accumulate", "true");
  op.bytes += static_cast<double>(m * n) * (output * (accumulates ? 2 : 1) - 2);
  op.flops *= static_cast<double>(groups);
  op.bytes *= static_cast<double>(groups);
  op.m *= groups;
  return op;
}

// `single`: how much faster a product alone is than in a training step.
Deviation gemm_deviation(const std::string& file, const char* gpu, std::int64_t least_rows, double single = 1) {
  // The file's own bandwidth differs between 40 and 80 GB boards; the points' board is named by the test.
  const Gpu priced = shipped_gpu(file);
  Deviation deviation;
  for (const Node& row : points("gemm.yaml")) {
    if (!is(row, "gpu", gpu) || is(row, "kind", "dense-best")) continue;
    const Operator op = measured_gemm(row);
    if (op.m < least_rows) continue;
    deviation.add(priced.cost->seconds(op) / single, op.flops / (row.at("tflops").as_number(0, 1e5) * 1e12));
  }
  std::cout << file << " gemm: mean absolute error " << 100 * deviation.mean() << " % of " << deviation.count << " points\n";
  return deviation;
}

TEST(MeasuredGemm, OnA100) {
  // Fitted on the 80 GB PCIe board (1935 GB/s), shipped for the 40 GB one (1555 GB/s): 4.0 % becomes 4.9 %.
  const Deviation deviation = gemm_deviation("a100-pcie-40g", "a100-pcie-80g", 0);
  EXPECT_EQ(deviation.count, 195);
  EXPECT_LT(deviation.mean(), 0.055);
}

TEST(MeasuredGemm, OnHopperInEightBits) {
  const Deviation deviation = gemm_deviation("h800-sxm", "h800", 1024);
  EXPECT_EQ(deviation.count, 16);
  EXPECT_LT(deviation.mean(), 0.09);
}

// Alone and in short bursts products are a sixth faster than in training steps, which the file is fitted to.
TEST(MeasuredGemm, AloneOnH100) {
  const Deviation deviation = gemm_deviation("h100-sxm5-80g", "h100-80g-pytorch", 1024, 1.17);
  EXPECT_EQ(deviation.count, 330);
  EXPECT_LT(deviation.mean(), 0.095);
}

TEST(MeasuredGemm, OnB200) {
  // The rate is fitted to that board's training steps, which keep it at its power limit; its share of 0.439 is 0.492 for products alone.
  const Deviation deviation = gemm_deviation("b200-sxm-1090", "b200-sxm", 0, 0.492 / 0.439);
  EXPECT_EQ(deviation.count, 622);
  EXPECT_LT(deviation.mean(), 0.12);
}

// The files are of steps, which keep a chip at its power limit: 0.8 of squares alone (the rates of MI325X that AMD measured for half a
// minute).
TEST(MeasuredGemm, OnAmd) {
  for (const char* gpu : {"mi325x", "mi355x"}) {
    const Deviation deviation = gemm_deviation(gpu, gpu, 4096, 1 / 0.8);
    EXPECT_EQ(deviation.count, std::string(gpu) == "mi355x" ? 23 : 3) << gpu;
    EXPECT_LT(deviation.mean(), 0.13) << gpu;
  }
}

// Ten products of DeepSeek-V3 together: AMD's "Typical Attained FLOPs" of MI325X.
TEST(MeasuredGemm, OfTenShapesOnMi325x) {
  const Gpu gpu = shipped_gpu("mi325x");
  constexpr std::array<std::pair<int, int>, 5> weights{{{2112, 7168}, {3072, 1536}, {7168, 2048}, {4608, 7168}, {7168, 256}}};
  const auto attained = [&](workloads::DType type) {
    double flops = 0, seconds = 0;
    for (const int m : {32, 32768}) {
      for (const auto& [n, k] : weights) {
        const Operator op = gemm(m, n, k, type);
        flops += op.flops;
        seconds += gpu.cost->seconds(op);
      }
    }
    return flops / seconds;
  };
  EXPECT_NEAR(attained(workloads::DType::bf16), 616e12, 10e12);
  EXPECT_NEAR(attained(workloads::DType::fp8), 1143e12, 25e12);
}

// Forward and backward as the shipped operators count them: FLOPs executed (half for causal), bytes of Q, K, V, O and their gradients.
struct Passes {
  Operator forward, backward;
};

Passes measured_attention(const Node& row) {
  const std::int64_t heads = size(row, "heads"), kv_heads = size(row, "kv_heads", heads), head_dim = size(row, "head_dim");
  const double widths = static_cast<double>(head_dim + size(row, "v_head_dim", head_dim)) / 2;
  Passes passes;
  passes.forward = attention(size(row, "batch"), heads, size(row, "seq"), head_dim, is(row, "causal", "true"));
  passes.forward.flops *= widths / static_cast<double>(head_dim);
  const double positions = static_cast<double>(size(row, "batch") * size(row, "seq"));
  passes.forward.bytes = positions * 4 * widths * static_cast<double>(heads + kv_heads);
  passes.forward.head_dim = static_cast<std::int64_t>(widths);
  passes.backward = passes.forward;
  passes.backward.pass = Pass::backward_input;
  passes.backward.flops *= 2.5;
  passes.backward.bytes *= 2;
  return passes;
}

double predicted(const Gpu& gpu, const Passes& passes, const std::string& pass) {
  double seconds = 0;
  if (pass.find("fwd") != std::string::npos) seconds += gpu.cost->seconds(passes.forward);
  if (pass.find("bwd") != std::string::npos) seconds += gpu.cost->seconds(passes.backward);
  return seconds;
}

double measured(const Node& row, const Passes& passes, const std::string& pass) {
  double flops = 0;
  if (pass.find("fwd") != std::string::npos) flops += passes.forward.flops;
  if (pass.find("bwd") != std::string::npos) flops += passes.backward.flops;
  const double credited = is(row, "flops", "full") && is(row, "causal", "true") ? 2 * flops : flops;
  return credited / (row.at("tflops").as_number(0, 1e5) * 1e12);
}

Deviation attention_deviation(const std::string& file, const std::function<bool(const Node&)>& chosen,
                              const std::function<bool(const std::string& pass, double seconds)>& host_bound) {
  const Gpu gpu = shipped_gpu(file);
  Deviation deviation;
  for (const Node& row : points("attention.yaml")) {
    if (!chosen(row)) continue;
    const Passes passes = measured_attention(row);
    const std::string pass = row.at("pass").as_string();
    const double seconds = measured(row, passes, pass);
    if (!host_bound(pass, seconds)) deviation.add(predicted(gpu, passes, pass), seconds);
  }
  std::cout << file << " attention: mean absolute error " << 100 * deviation.mean() << " % of " << deviation.count << " points\n";
  return deviation;
}

bool never(const std::string& /*pass*/, double /*seconds*/) { return false; }

TEST(MeasuredAttention, FlashAttention2OnA100) {
  const auto chosen = [](const Node& row) { return is(row, "gpu", "a100-sxm-80g") && is(row, "kernel", "fa2"); };
  const Deviation deviation = attention_deviation("a100-sxm4-80g", chosen, never);
  EXPECT_EQ(deviation.count, 23);
  EXPECT_LT(deviation.mean(), 0.02);
}

TEST(MeasuredAttention, CudnnOnH100) {
  const auto chosen = [](const Node& row) {
    return is(row, "gpu", "h100-sxm") && is(row, "kernel", "cudnn") && size(row, "head_dim") < 256;
  };
  const Deviation deviation = attention_deviation("h100-sxm5-80g", chosen, never);
  EXPECT_EQ(deviation.count, 23);
  EXPECT_LT(deviation.mean(), 0.10);
}

// As PyTorch calls it, also with grouped queries.
TEST(MeasuredAttention, CudnnAloneOnH100) {
  const auto chosen = [](const Node& row) { return is(row, "gpu", "h100-80g-pytorch") && is(row, "kernel", "cudnn"); };
  const Deviation deviation = attention_deviation("h100-sxm5-80g", chosen, never);
  EXPECT_EQ(deviation.count, 68);
  EXPECT_LT(deviation.mean(), 0.156);
}

TEST(MeasuredAttention, TransformerEngineOnB200) {
  // Forward points below 150 us and backward ones below 112 us take the same time whatever their work: the host launches them.
  const auto chosen = [](const Node& row) { return is(row, "gpu", "b200-sxm"); };
  const auto host_bound = [](const std::string& pass, double seconds) { return seconds < (pass == "fwd" ? 150e-6 : 112e-6); };
  const Deviation deviation = attention_deviation("b200-sxm", chosen, host_bound);
  EXPECT_EQ(deviation.count, 50);
  EXPECT_LT(deviation.mean(), 0.11);
}

// The rate by length: each pass at a level of its own, since the files have the rates of steps, and of the kernels that those ran.
struct OwnLevel {
  double level = 0;      // kernels over the line
  double deviation = 0;  // mean of the points around it
};

OwnLevel own_level(const std::string& file, const std::string& pass) {
  const Gpu gpu = shipped_gpu(file);
  std::vector<double> ratios;
  for (const Node& row : points("attention.yaml")) {
    if (!is(row, "gpu", file) || !is(row, "kernel", "cudnn") || !is(row, "pass", pass)) continue;
    const Passes passes = measured_attention(row);
    ratios.push_back(predicted(gpu, passes, pass) / measured(row, passes, pass));
  }
  OwnLevel own;
  const auto count = static_cast<double>(ratios.size());
  for (const double ratio : ratios) own.level += std::log(ratio) / count;
  own.level = std::exp(own.level);
  for (const double ratio : ratios) own.deviation += std::abs(ratio / own.level - 1) / count;
  std::cout << file << " " << pass << ": " << own.level << " of the line, " << 100 * own.deviation << " % around it\n";
  return own;
}

TEST(MeasuredAttention, RisesWithLengthAsCudnnDoes) {
  EXPECT_LT(own_level("gb200", "fwd").deviation, 0.04);
  EXPECT_LT(own_level("gb200", "bwd").deviation, 0.065);
  EXPECT_LT(own_level("gb300", "fwd").deviation, 0.05);
  EXPECT_LT(own_level("gb300", "bwd").deviation, 0.05);
  EXPECT_LT(own_level("h200-sxm", "fwd").deviation, 0.055);
  EXPECT_LT(own_level("h200-sxm", "bwd").deviation, 0.09);
}

// The kernels of 2026, alone, over what steps of those that are public show.
TEST(MeasuredAttention, IsFasterAloneThanInSteps) {
  EXPECT_NEAR(own_level("gb200", "fwd").level, 1.36, 0.02);
  EXPECT_NEAR(own_level("gb200", "bwd").level, 1.31, 0.02);
  EXPECT_NEAR(own_level("h200-sxm", "fwd").level, 1.14, 0.02);
  EXPECT_NEAR(own_level("h200-sxm", "bwd").level, 1.12, 0.02);
}

TEST(MeasuredAttention, AiterOnAmd) {
  for (const char* gpu : {"mi300x", "mi355x"}) {
    const auto chosen = [&](const Node& row) { return is(row, "gpu", gpu) && is(row, "kernel", "aiter") && size(row, "seq") >= 2048; };
    const Deviation deviation = attention_deviation(gpu, chosen, never);
    EXPECT_EQ(deviation.count, 152) << gpu;
    EXPECT_LT(deviation.mean(), 0.05) << gpu;
  }
}

// Forward and backward of one size together: a share is of both.
TEST(MeasuredAttention, PyTorchsOwnOnAmd) {
  const Gpu gpu = shipped_gpu("mi355x");
  double logs = 0;
  int count = 0;
  const std::vector<Node> rows = points("attention.yaml");
  for (const Node& forward : rows) {
    if (!is(forward, "kernel", "sdpa") || !is(forward, "pass", "fwd") || size(forward, "heads") != 16 || size(forward, "seq") < 2048)
      continue;
    for (const Node& backward : rows) {
      if (!is(backward, "kernel", "sdpa") || !is(backward, "pass", "bwd") || size(backward, "seq") != size(forward, "seq") ||
          is(backward, "causal", "true") != is(forward, "causal", "true"))
        continue;
      const Passes passes = measured_attention(forward);
      logs += std::log(predicted(gpu, passes, "fwd+bwd") / (measured(forward, passes, "fwd") + measured(backward, passes, "bwd")));
      ++count;
    }
  }
  EXPECT_EQ(count, 8);
  EXPECT_NEAR(std::exp(logs / count), gpu.flash_share.at(sdpa).at(128), 0.01);
}

}  // namespace
}  // namespace rehearse::sim::testing

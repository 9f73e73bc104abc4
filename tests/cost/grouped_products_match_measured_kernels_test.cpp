// What kernels for rows sorted by expert reach of the line for dense products: the shipped shares against published tables.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "gpu_files.hpp"
#include "places.hpp"

namespace rehearse::sim::testing {
namespace {

using config::Node;

// The geometric mean of what a kernel reaches of the line, each model counting once. Alone products are 1/0.8 times as fast as in steps,
// which the file has (the comment above its line).
double share_of_line(const Gpu& gpu, const char* kernel) {
  constexpr double alone = 1 / 0.8;
  std::map<std::string, std::pair<double, int>> models;
  const Node file = Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/cost/measured/grouped.yaml");
  for (const Node& row : file.at("points").items()) {
    const auto size = [&](const char* key) { return row.at(key).as_int(1, 1LL << 40); };
    const workloads::Operator op = gemm(size("m"), size("n"), size("k"));
    const double line = op.flops / gpu.cost->seconds(op) * alone, reached = row.at(kernel).as_number(1, 1e5) * 1e12;
    auto& [sum, count] = models[row.at("model").as_string()];
    sum += std::log(reached / line);
    ++count;
  }
  double mean = 0;
  for (const auto& [model, rows] : models) mean += rows.first / rows.second / static_cast<double>(models.size());
  return std::exp(mean);
}

TEST(MeasuredGroupedProducts, OnMi355x) {
  const Gpu gpu = shipped_gpu("mi355x");
  EXPECT_NEAR(share_of_line(gpu, "streams"), gpu.grouped_share.at(workloads::GroupedKernel::streams), 0.005);
  EXPECT_NEAR(share_of_line(gpu, "turbo"), gpu.grouped_share.at(workloads::GroupedKernel::turbo), 0.005);
}

// A profile of gpt-oss 20B in tensorwise FP8 (May 2026): 308 ms for 144 products of 131,072 rows for 32 experts, forward and both of
// backward of 24 layers, 470 TFLOP; in a step, so that nothing is taken off.
TEST(MeasuredGroupedProducts, InEightBitsInAStepOnMi355x) {
  const Gpu gpu = shipped_gpu("mi355x");
  double line_s = 0;
  for (const std::int64_t n : {5760, 2880}) line_s += 24 * 3 * 32 * gpu.cost->seconds(gemm(4096, n, 2880, workloads::DType::fp8));
  EXPECT_NEAR(line_s / 0.30828, gpu.narrow_grouped_share.at(workloads::GroupedKernel::turbo), 0.005);
}

}  // namespace
}  // namespace rehearse::sim::testing

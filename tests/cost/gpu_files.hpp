// Descriptions of GPUs and stacks for the cost tests: shipped files and short texts.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/gpu.hpp"

namespace rehearse::sim::testing {

// A GPU of 100 TFLOP/s (bf16) and 1 TB/s whose gemm model is the given flow mapping; everything else is a plain roofline. more: a key of
// its own.
Gpu gpu_with_gemm(const std::string& model, const std::string& more = "");
Gpu gpu_with_attention(const std::string& model);

Gpu shipped_gpu(const std::string& name);
config::Node shipped_gpu_node(const std::string& name);
std::vector<std::string> shipped_gpus();

// The text with its first `what` replaced, which it has.
std::string replaced(std::string text, const std::string& what, const std::string& by);

// To 12 digits.
void expect_same(double actual, double expected);

workloads::Operator gemm(std::int64_t m, std::int64_t n, std::int64_t k, workloads::DType type = workloads::DType::bf16);
workloads::Operator attention(std::int64_t batch, std::int64_t heads, std::int64_t sequence, std::int64_t head_dim, bool causal);
workloads::Operator moving(double bytes);

}  // namespace rehearse::sim::testing

#include "gpu_files.hpp"

#include <gtest/gtest.h>

#include "config/data_dir.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim::testing {
namespace {

using workloads::Operator;
using workloads::OperatorClass;

Gpu gpu_with(const std::string& gemm_model, const std::string& attention_model, const std::string& more = "") {
  const std::string text =
      "source: test\nmemory: 80 GiB\nmemory_bandwidth: 1 TB/s\npower_limit: 400 W\nlaunch: 4 us\npeak: {bf16: 100 TFLOP/s}\n"
      "efficiency:\n  gemm: {bf16: " +
      gemm_model + "}\n  attention: {bf16: " + attention_model + "}\n  memory_bound: {model: roofline, memory: 0.5}\n" + more;
  return read_gpu(config::Node::load_text(text, "gpu.yaml"), "test");
}

}  // namespace

Gpu gpu_with_gemm(const std::string& model, const std::string& more) { return gpu_with(model, "{model: roofline}", more); }
Gpu gpu_with_attention(const std::string& model) { return gpu_with("{model: roofline}", model); }

config::Node shipped_gpu_node(const std::string& name) { return ready_made(gpu_part, name).node; }
Gpu shipped_gpu(const std::string& name) { return read_gpu(shipped_gpu_node(name), name); }
std::vector<std::string> shipped_gpus() { return config::data_names("platforms/gpus"); }

Operator gemm(std::int64_t m, std::int64_t n, std::int64_t k, workloads::DType type) {
  Operator op;
  op.dtype = type;
  op.m = m;
  op.n = n;
  op.k = k;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n), depth = static_cast<double>(k);
  op.flops = 2 * rows * columns * depth;
  op.bytes = bytes_of(type) * (rows * depth + columns * depth) + 2 * rows * columns;
  return op;
}

Operator attention(std::int64_t batch, std::int64_t heads, std::int64_t sequence, std::int64_t head_dim, bool causal) {
  Operator op;
  op.cls = OperatorClass::attention;
  op.batch = batch;
  op.heads = op.kv_heads = heads;
  op.query = op.key = sequence;
  op.head_dim = head_dim;
  op.causal = causal;
  const double width = static_cast<double>(batch * sequence * heads * head_dim);
  op.flops = 4 * width * static_cast<double>(sequence) * (causal ? 0.5 : 1);
  op.bytes = 4 * width * 2;
  return op;
}

Operator moving(double bytes) {
  Operator op;
  op.cls = OperatorClass::memory_bound;
  op.bytes = bytes;
  return op;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

void expect_same(double actual, double expected) { EXPECT_NEAR(actual / expected, 1, 1e-12); }

}  // namespace rehearse::sim::testing

// The roofline with both lines fitted to measured kernels and a knee instead of a corner:
//   T = (T_compute^q + T_memory^q)^(1/q) + fixed,   q = knee: 1 adds the two, large q is the plain roofline.
//   T_compute = F * (1 + block/key [causal]) * (1 + head_dim_half/head_dim) / (compute * backward [in backward] * P_peak)
//   T_memory  = bytes / (memory * B_mem)
// block: causal_block, since a causal flash kernel computes whole blocks on the diagonal; in a window (fewer keys than queries)
// window_block, with both ends of the window and what a block of queries costs however few keys it has. head_dim_half: exponentials, which
// do not shrink with the head dimension, as extra work per score. They concern the attention class alone. unaligned_batched: the share of
// the compute rate that is left to a batched product (unfused attention) one of whose rows in memory is a multiple of 4 bytes alone, where
// tensor-core kernels load 16 at once (cp.async takes 16, 8 or 4; from measured steps): twice as much of 8 bytes, half as much of 2.
// weight_gradient: the share of the compute rate that is left to the products of weight gradients, whose operands in 8 bits are both scaled
// by blocks along the sum. narrow_output and narrow_sum: shares of the bandwidth, in the place of memory, of products with no more than 256
// rows or columns, which read, and of those that sum over no more than 64, which write (adapters of a low rank are both).
#include <algorithm>
#include <cmath>

#include "sim/cost/cost_model.hpp"

namespace rehearse::sim {
namespace {

struct Fit {
  double flops_per_s = 0, bytes_per_s = 0;
  double knee = 1;
  double backward = 1;
  double fixed_s = 0;
  double causal_block = 0;
  double window_block = 0;
  double head_dim_half = 0;
  double unaligned_batched = 1;
  double unaligned_linear = 1;  // the GPU's `unaligned`, of other products
  double weight_gradient = 1;
  double narrow_output_bytes_per_s = 0, narrow_sum_bytes_per_s = 0;
};

constexpr std::int64_t most_of_narrow_output = 256, most_of_narrow_sum = 64;
constexpr double aligned_bytes = 16, least_loaded_bytes = 4;

// How many bytes of a row a kernel can load at once. A weight's gradient is summed over tokens (k), along which neither operand is
// contiguous: their number is as it comes.
double loaded_at_once(const workloads::Operator& op) {
  const std::int64_t other = op.pass == workloads::Pass::backward_weight ? op.m : op.k;
  double bytes = aligned_bytes;
  const auto fits = [&](std::int64_t size) { return std::fmod(static_cast<double>(size) * bytes_of(op.dtype), bytes) == 0; };
  while (bytes > 1 && !(fits(op.n) && fits(other))) bytes /= 2;
  return bytes;
}

bool is_backward(const workloads::Operator& op) {
  return op.pass == workloads::Pass::backward_input || op.pass == workloads::Pass::backward_weight;
}

// (a^q + b^q)^(1/q), scaled by the larger so that small times do not underflow.
double knee_sum(double a, double b, double q) {
  const double larger = std::max(a, b);
  if (larger <= 0) return 0;
  return larger * std::pow(1 + std::pow(std::min(a, b) / larger, q), 1 / q);
}

class ModifiedRoofline : public CostModel {
 public:
  explicit ModifiedRoofline(const Fit& fit) : fit_(fit) {}
  [[nodiscard]] double seconds(const workloads::Operator& op) const override {
    const double rate = fit_.flops_per_s * (is_backward(op) ? fit_.backward : 1) * aligned_share(op) *
                        (op.pass == workloads::Pass::backward_weight ? fit_.weight_gradient : 1);
    return knee_sum(op.flops * attention_work(op) / rate, op.bytes / bytes_per_s(op), fit_.knee) + fit_.fixed_s;
  }

 private:
  [[nodiscard]] double bytes_per_s(const workloads::Operator& op) const {
    const bool by_line = op.batched || op.times != 1;  // unfused attention, and scans, which were measured against it
    if (op.cls != workloads::OperatorClass::gemm || by_line) return fit_.bytes_per_s;
    if (op.k <= most_of_narrow_sum) return fit_.narrow_sum_bytes_per_s;
    return std::min(op.m, op.n) <= most_of_narrow_output ? fit_.narrow_output_bytes_per_s : fit_.bytes_per_s;
  }
  [[nodiscard]] double aligned_share(const workloads::Operator& op) const {
    if (op.cls != workloads::OperatorClass::gemm) return 1;
    const double loaded = loaded_at_once(op);
    if (loaded == aligned_bytes) return 1;
    if (op.batched) return fit_.unaligned_batched == 1 ? 1 : std::min(1.0, fit_.unaligned_batched * loaded / least_loaded_bytes);
    return bytes_of(op.dtype) <= 2 ? fit_.unaligned_linear : 1;  // in fp32 beside the tensor cores
  }
  [[nodiscard]] double attention_work(const workloads::Operator& op) const {
    double work = 1;
    const double block = op.key < op.query ? fit_.window_block : fit_.causal_block;
    if (op.causal && op.key > 0) work *= 1 + block / static_cast<double>(op.key);
    if (op.head_dim > 0) work *= 1 + fit_.head_dim_half / static_cast<double>(op.head_dim);
    return work;
  }
  Fit fit_;
};

double number_or(const config::Node& node, const char* key, double low, double high, double otherwise) {
  const auto value = node.find(key);
  return value ? value->as_number(low, high) : otherwise;
}

class ModifiedRooflineFactory : public CostModelFactory {
 public:
  [[nodiscard]] std::unique_ptr<const CostModel> make(const config::Node& node, const Ceiling& ceiling) const override {
    node.allow_keys({"model", "compute", "memory", "knee", "backward", "fixed", "causal_block", "window_block", "head_dim_half",
                     "unaligned_batched", "weight_gradient", "narrow_output", "narrow_sum"});
    Fit fit;
    // A fitted line may lie above the data sheet's when bytes are counted that a cache keeps.
    fit.flops_per_s = ceiling.flops_per_s * node.at("compute").as_number(1e-3, 2);
    fit.unaligned_linear = ceiling.unaligned;
    fit.bytes_per_s = ceiling.memory_bytes_per_s * node.at("memory").as_number(1e-3, 2);
    fit.knee = number_or(node, "knee", 1, 64, 1);
    fit.backward = number_or(node, "backward", 0.1, 2, 1);
    fit.causal_block = number_or(node, "causal_block", 0, 4096, 0);
    fit.window_block = number_or(node, "window_block", 0, 4096, fit.causal_block);
    fit.head_dim_half = number_or(node, "head_dim_half", 0, 4096, 0);
    fit.unaligned_batched = number_or(node, "unaligned_batched", 1e-3, 1, 1);
    fit.weight_gradient = number_or(node, "weight_gradient", 1e-3, 1, 1);
    const double memory = node.at("memory").as_number(1e-3, 2);
    fit.narrow_output_bytes_per_s = ceiling.memory_bytes_per_s * number_or(node, "narrow_output", 1e-3, 2, memory);
    fit.narrow_sum_bytes_per_s = ceiling.memory_bytes_per_s * number_or(node, "narrow_sum", 1e-3, 2, memory);
    if (const auto fixed = node.find("fixed")) fit.fixed_s = fixed->as_quantity(config::Dimension::time);
    return std::make_unique<ModifiedRoofline>(fit);
  }
};

const CostModelRegistry::Registration<ModifiedRooflineFactory> modified_roofline_factory_registration{"modified-roofline"};

}  // namespace
}  // namespace rehearse::sim

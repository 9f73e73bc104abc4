// Efficiency of a GPU whose data sheet alone is known.
#include <fmt/format.h>

#include <algorithm>

#include "config/node.hpp"
#include "sim/cost/cost_model.hpp"
#include "sim/cost/precision_names.hpp"

namespace rehearse::sim {
namespace {

using workloads::DType;

// Straight lines through what A100 SXM, H100 and B200 reach of their peaks in 16 bits against what the peak asks of each watt
// (0.78, 1.41 and 2.25 TFLOP/s per W): products 0.81, 0.679 and 0.439, attention at head dimension 128 0.69, 0.595 and 0.504. A chip that
// promises more than its power limit feeds falls short by as much. Products in 8 bits, whose operations cost half the energy, reach 0.54 on
// Hopper and Blackwell. Left out one at a time, the products of the three are 6, 4 and 15 % off.
struct Line {
  double at_rest, per_flops_per_joule;
  [[nodiscard]] double at(double tera_flops_per_joule) const {
    return std::clamp(at_rest + per_flops_per_joule * tera_flops_per_joule, 0.35, 0.85);
  }
};
constexpr Line products{1.019, -0.254}, attention{0.782, -0.126};
constexpr double narrow_products = 0.54;
// Geometric means of A100, H100 and B200: share of the bandwidth in products and their knee; in attention, and in kernels bound by memory.
constexpr double product_memory = 0.47, product_knee = 2.05, attention_memory = 0.8, memory_bound = 0.8, backward = 0.86;

bool is_narrow(DType type) { return type == DType::fp8 || type == DType::fp4; }

double per_watt(const Gpu& gpu) {
  for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto peak = gpu.peak_flops_per_s.find(type);
    if (peak != gpu.peak_flops_per_s.end()) return peak->second / gpu.power_limit_w / 1e12;
  }
  return 2;
}

}  // namespace

config::Node common_efficiency_mapping(const Gpu& gpu) {
  const double flops_per_joule = per_watt(gpu);
  std::string text = "gemm: {";
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    text += fmt::format("{}: {{model: modified-roofline, compute: {:.3f}, memory: {}, knee: {}}}, ", name_of(type),
                        is_narrow(type) ? narrow_products : products.at(flops_per_joule), product_memory, product_knee);
  }
  text += "}\nattention: {";
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    if (is_narrow(type)) continue;
    text += fmt::format("{}: {{model: modified-roofline, compute: {:.3f}, memory: {}, knee: 1, backward: {}}}, ", name_of(type),
                        attention.at(flops_per_joule), attention_memory, backward);
  }
  text += fmt::format("}}\nmemory_bound: {{model: roofline, memory: {}}}\n", memory_bound);
  return config::Node::load_text(text, "the common efficiency of " + gpu.name);
}

std::shared_ptr<const CostModel> common_efficiency(const Gpu& gpu) { return read_efficiency(common_efficiency_mapping(gpu), gpu); }

}  // namespace rehearse::sim

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
// (0.78, 1.41 and 2.25 TFLOP/s per W): products 0.81, 0.679 and 0.586, attention at head dimension 128 0.69, 0.595 and 0.504. A chip that
// promises more than its power limit feeds falls short by as much. Products in 8 bits, whose operations cost half the energy, reach 0.53 on
// Hopper and Blackwell, and as much as the line says of a chip whose 8-bit peak asks no more of a watt than theirs in 16 bits (Gaudi 3).
// Left out one at a time, the products of the three are 8, 5 and 14 % off.
struct Line {
  double at_rest, per_flops_per_joule;
  [[nodiscard]] double at(double tera_flops_per_joule) const {
    return std::clamp(at_rest + per_flops_per_joule * tera_flops_per_joule, 0.35, 0.85);
  }
};
constexpr Line products{0.914, -0.15}, attention{0.782, -0.126};
constexpr double narrow_products = 0.53;
// Google's TPUs are promised at a clock that they keep. Products: 8,192 on v5e by JAX's own page (docs/pallas/tpu/matmul.ipynb) reach 0.915
// of the peak, with Python's call in it; 0.97 of what products alone reach is left in steps, fitted to half of MaxText's on v5e, v5p, v6e
// and TPU7x (docs/accuracy.md). Attention at heads that fill a matrix unit (128 wide up to the fifth generation), fitted to the same half.
// Splash attention computes whole blocks on the diagonal, of 2,048 positions as MaxText's recipes have them (sa_block_q, sa_block_kv): 0.8
// is 0.64 of the peak at 8,192. Units of v6e and TPU7x are 256 wide: products of both files' lines, and half the attention at heads of 128.
// A data sheet without their width tells them by what a byte of memory must feed: 313 and 560 FLOPs, 166 to 240 before.
constexpr double tpu_products = 0.89, tpu_attention = 0.8, tpu_causal_block = 2048;
constexpr double wide_tpu_products = 0.755, wide_tpu_attention = 0.4, wide_tpu_flops_per_byte = 300;
// AMD's reach less of what the lines say: geometric means of what the files of MI300X to MI355X have.
constexpr double amd_products = 0.68, amd_fp8 = 0.45, amd_fp4 = 0.3, amd_attention = 0.85;
// Geometric means of A100, H100 and B200: share of the bandwidth in products and their knee; in attention, and in kernels bound by memory.
// Few-token products and attention against a cache: aiconfigurator's kernel tables (A100, H100, H200, B200, GB200, L40S, RTX PRO 6000;
// bf16, fp8, nvfp4): shares of memory and compute, geometric means; 7 us for the kernels that split a short cache and join it again.
constexpr double few_memory = 0.8, few_compute = 0.74, few_knee = 2.3, few_narrow = 0.53, few_fp4 = 0.43, few_fp4_memory = 0.54;
constexpr double cache_memory = 0.86, cache_compute = 0.6, cache_fixed_us = 7;
constexpr double product_memory = 0.47, product_knee = 2.05, attention_memory = 0.8, memory_bound = 0.8, backward = 0.86;

// Geometric means of A100, H100 and B200: what kernels of communication that hold SMs cost computation (dp: fitted on the last two). Of
// A100 and H100: what the first generation of FlashAttention, and its kernel in Triton, reach of the newest kernel.
constexpr const char* contention = "{tp: {alpha: 1.23}, cp: {alpha: 1.03}, ep: {alpha: 1.19}, pp: {alpha: 1.03}, dp: {alpha: 1.32}}";
constexpr const char* flash = "{1: {64: 0.52, 128: 0.36}, triton: {64: 0.49, 128: 0.39}}";
// Of MI355X: what Composable Kernel, and of both MI300X and MI355X: what PyTorch's own attention (AOTriton) reaches of AITER's.
constexpr const char* amd_flash = "{2: {64: 0.48, 128: 0.48}, sdpa: {64: 0.27, 128: 0.27}}";

// A matrix unit of a TPU, 128 or 256 wide, is half as full with heads of 64 as with heads of 128 (docs.cloud.google.com/tpu). 2, splash
// attention in blocks of 512, where the line goes through MaxText's steps, of blocks of 1,024 and 2,048: forward 0.385 of v5p's peak
// (marin-community/marin pull request 6330: 0.778 ms a layer of 8,192 tokens, 8 heads of 128), backward two kernels at that rate whose
// seven products stand for five; forward twice, as where layers are computed again. Blocks of 1,024 are a third faster on v6e as well
// (apple/axlearn pull request 958).
constexpr const char* tpu_flash = "{2: {64: 0.27, 128: 0.54}, 3: {64: 0.5, 128: 1}}";
constexpr const char* wide_tpu_flash = "{2: {64: 0.34, 128: 0.69}, 3: {64: 0.5, 128: 1, 192: 1.25, 256: 2}}";

bool is_tpu(const Gpu& gpu) { return gpu.vendor == "google"; }

bool is_amd(const Gpu& gpu) { return gpu.vendor == "amd"; }

double per_watt(const Gpu& gpu) {
  for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
    const auto peak = gpu.peak_flops_per_s.find(type);
    if (peak != gpu.peak_flops_per_s.end()) return peak->second / gpu.power_limit_w / 1e12;
  }
  return 2;
}

bool is_wide_tpu(const Gpu& gpu) {
  const auto peak = gpu.peak_flops_per_s.find(DType::bf16);
  return is_tpu(gpu) && peak != gpu.peak_flops_per_s.end() && peak->second >= wide_tpu_flops_per_byte * gpu.memory_bytes_per_s;
}

double product_share(const Gpu& gpu, DType type, double peak_flops_per_s) {
  if (is_tpu(gpu)) return is_wide_tpu(gpu) ? wide_tpu_products : tpu_products;
  if (is_amd(gpu)) return is_narrow(type) ? (type == DType::fp4 ? amd_fp4 : amd_fp8) : amd_products * products.at(per_watt(gpu));
  if (is_narrow(type)) return std::max(narrow_products, products.at(peak_flops_per_s / gpu.power_limit_w / 1e12));
  return products.at(per_watt(gpu));
}
double attention_share(const Gpu& gpu) {
  return is_wide_tpu(gpu) ? wide_tpu_attention
         : is_tpu(gpu)    ? tpu_attention
                          : (is_amd(gpu) ? amd_attention : 1) * attention.at(per_watt(gpu));
}

}  // namespace

config::Node common_efficiency_mapping(const Gpu& gpu) {
  std::string text = "gemm: {";
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    text += fmt::format("{}: {{model: modified-roofline, compute: {:.3f}, memory: {}, knee: {}}}, ", name_of(type),
                        product_share(gpu, type, peak), product_memory, product_knee);
  }
  text += "}\nattention: {";
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    if (is_narrow(type)) continue;
    text += fmt::format("{}: {{model: modified-roofline, compute: {:.3f}, memory: {}, knee: 1, backward: {}, causal_block: {}}}, ",
                        name_of(type), attention_share(gpu), attention_memory, backward, is_tpu(gpu) ? tpu_causal_block : 0);
  }
  text += "}\ngemm_few: {";
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    const bool fp4 = type == DType::fp4;
    text += fmt::format("{}: {{model: modified-roofline, compute: {}, memory: {}, knee: {}}}, ", name_of(type),
                        fp4               ? few_fp4
                        : is_narrow(type) ? few_narrow
                                          : few_compute,
                        fp4 ? few_fp4_memory : few_memory, few_knee);
  }
  text += "}\nattention_cache: {";
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    if (is_narrow(type)) continue;
    text += fmt::format("{}: {{model: modified-roofline, compute: {}, memory: {}, knee: 4, fixed: {} us}}, ", name_of(type), cache_compute,
                        cache_memory, cache_fixed_us);
  }
  text += fmt::format("}}\nmemory_bound: {{model: roofline, memory: {}}}\n", memory_bound);
  return config::Node::load_text(text, "the common efficiency of " + gpu.name);
}

std::shared_ptr<const CostModel> common_efficiency(const Gpu& gpu) { return read_efficiency(common_efficiency_mapping(gpu), gpu); }

config::Node common_contention_mapping(const Gpu& gpu) {
  const bool holds_sms = gpu.vendor == "nvidia" || is_amd(gpu);
  return config::Node::load_text(holds_sms ? contention : "{}", "the common contention of " + gpu.name);
}

config::Node common_flash_mapping(const Gpu& gpu) {
  return config::Node::load_text(gpu.vendor == "nvidia" ? flash
                                 : is_amd(gpu)          ? amd_flash
                                 : is_wide_tpu(gpu)     ? wide_tpu_flash
                                 : is_tpu(gpu)          ? tpu_flash
                                                        : "{}",
                                 "the common shares of other attention of " + gpu.name);
}

}  // namespace rehearse::sim

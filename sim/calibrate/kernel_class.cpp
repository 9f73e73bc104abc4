#include "sim/calibrate/kernel_class.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace rehearse::sim {
namespace {

struct Sign {
  const char* part;  // of the name in small letters
  KernelClass cls;
};

// The first that occurs decides: communication before all, casts and transposes before the products whose namespaces they live in,
// attention before the library that it is built with; names of `simulate` before the words in them, or last.
constexpr std::array signs{Sign{"nccl", KernelClass::communication},
                           Sign{"rccl", KernelClass::communication},
                           Sign{"hccl", KernelClass::communication},
                           Sign{"nvshmem", KernelClass::communication},
                           Sign{"deep_ep", KernelClass::communication},
                           Sign{"ep::internode", KernelClass::communication},
                           Sign{"ep::intranode", KernelClass::communication},
                           Sign{"hybrid_ep", KernelClass::communication},
                           Sign{"multimem_", KernelClass::communication},
                           Sign{"cross_device_reduce", KernelClass::communication},
                           Sign{"memcpy", KernelClass::copy},
                           Sign{"memset", KernelClass::copy},
                           Sign{"transpose", KernelClass::memory_bound},
                           Sign{"cast", KernelClass::memory_bound},
                           Sign{"quantize", KernelClass::memory_bound},
                           Sign{"bias gradient", KernelClass::memory_bound},
                           Sign{"attention_projection", KernelClass::product},
                           Sign{"attention_scores", KernelClass::product},
                           Sign{"attention_values", KernelClass::product},
                           Sign{"attention_residual", KernelClass::memory_bound},
                           Sign{"attention_dropout", KernelClass::memory_bound},
                           Sign{"flash", KernelClass::attention},
                           Sign{"fmha", KernelClass::attention},
                           Sign{"attn", KernelClass::attention},
                           Sign{"attention", KernelClass::attention},
                           Sign{"softmax", KernelClass::attention},
                           Sign{"m_grouped", KernelClass::grouped_product},
                           Sign{"groupproblem", KernelClass::grouped_product},
                           Sign{"groupedgemm", KernelClass::grouped_product},
                           Sign{"grouped_mm", KernelClass::grouped_product},
                           Sign{"gemm", KernelClass::product},
                           Sign{"cutlass", KernelClass::product},
                           Sign{"nvjet", KernelClass::product},
                           Sign{"cublas", KernelClass::product},
                           Sign{"splitk", KernelClass::product},
                           Sign{"wgmma", KernelClass::product},
                           Sign{"xmma", KernelClass::product},
                           Sign{"cijk_", KernelClass::product},
                           Sign{"bmm_", KernelClass::product},
                           Sign{"gemv", KernelClass::product},
                           Sign{"at::native", KernelClass::memory_bound},
                           Sign{"elementwise", KernelClass::memory_bound},
                           Sign{"triton_", KernelClass::memory_bound},
                           Sign{"norm", KernelClass::memory_bound},
                           Sign{"ln_fwd", KernelClass::memory_bound},
                           Sign{"ln_bwd", KernelClass::memory_bound},
                           Sign{"rotary", KernelClass::memory_bound},
                           Sign{"rope", KernelClass::memory_bound},
                           Sign{"swiglu", KernelClass::memory_bound},
                           Sign{"silu", KernelClass::memory_bound},
                           Sign{"gelu", KernelClass::memory_bound},
                           Sign{"activation", KernelClass::memory_bound},
                           Sign{"residual", KernelClass::memory_bound},
                           Sign{"dropout", KernelClass::memory_bound},
                           Sign{"reduce", KernelClass::memory_bound},
                           Sign{"copy", KernelClass::memory_bound},
                           Sign{"fill", KernelClass::memory_bound},
                           Sign{"scatter", KernelClass::memory_bound},
                           Sign{"gather", KernelClass::memory_bound},
                           Sign{"expand", KernelClass::memory_bound},
                           Sign{"permute", KernelClass::memory_bound},
                           Sign{"index", KernelClass::memory_bound},
                           Sign{"mapping", KernelClass::memory_bound},
                           Sign{"layout", KernelClass::memory_bound},
                           Sign{"topk", KernelClass::memory_bound},
                           Sign{"sort", KernelClass::memory_bound},
                           Sign{"scan", KernelClass::memory_bound},
                           Sign{"count", KernelClass::memory_bound},
                           Sign{"embedding", KernelClass::memory_bound},
                           Sign{"cross_entropy", KernelClass::memory_bound},
                           Sign{"adam", KernelClass::memory_bound},
                           Sign{"optimizer", KernelClass::memory_bound},
                           Sign{"multi_tensor", KernelClass::memory_bound},
                           Sign{"qkv", KernelClass::product},
                           Sign{"_fc1", KernelClass::product},
                           Sign{"_fc2", KernelClass::product},
                           Sign{"logits", KernelClass::product}};

}  // namespace

std::string_view name_of(KernelClass cls) {
  constexpr std::array<std::string_view, kernel_classes> names{"products",      "grouped products", "attention", "memory-bound",
                                                               "communication", "copies",           "unknown"};
  return names[static_cast<std::size_t>(cls)];
}

KernelClass class_of(std::string_view kernel_name) {
  std::string small(kernel_name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto sign = std::ranges::find_if(signs, [&](const Sign& each) { return small.find(each.part) != std::string::npos; });
  return sign == signs.end() ? KernelClass::unknown : sign->cls;
}

}  // namespace rehearse::sim

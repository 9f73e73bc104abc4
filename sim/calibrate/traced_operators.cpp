#include "sim/calibrate/traced_operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "sim/calibrate/alone.hpp"
#include "sim/calibrate/median.hpp"
#include "workloads/operators/flash.hpp"

namespace rehearse::sim {
namespace {

using workloads::DType;
using workloads::Operator;
using workloads::OperatorClass;
using workloads::Pass;

constexpr std::int64_t least_side = 64, aligned = 16;  // others run on kernels of their own
constexpr double least_bytes = 4e6, least_us = 10;

// a [.., m, k] and b [.., k, n] among the arguments.
struct Product {
  std::string_view name;
  std::size_t a, b;
};
constexpr std::array products{Product{"aten::mm", 0, 1}, Product{"aten::bmm", 0, 1}, Product{"aten::addmm", 1, 2},
                              Product{"aten::baddbmm", 1, 2}, Product{"aten::_scaled_mm", 0, 1}};

// Queries, keys and values are three arguments one after another. Sizes are [batch, heads, tokens, width] in PyTorch's own interface,
// [batch, tokens, heads, width] in flash-attn's.
struct Attention {
  std::string_view name;
  std::size_t query, causal;  // which arguments
  bool heads_first, backward;
};
constexpr std::array attentions{
    Attention{"aten::_flash_attention_forward", 0, 8, false, false},
    Attention{"aten::_flash_attention_backward", 1, 11, false, true},
    Attention{"aten::_scaled_dot_product_flash_attention", 0, 4, true, false},
    Attention{"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true, true},
    Attention{"aten::_scaled_dot_product_efficient_attention", 0, 6, true, false},
    Attention{"aten::_scaled_dot_product_efficient_attention_backward", 1, 11, true, true},
    Attention{"aten::_scaled_dot_product_cudnn_attention", 0, 6, true, false},
    Attention{"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true, true},
    Attention{"flash_attn::_flash_attn_forward", 0, 5, false, false},
    Attention{"flash_attn::_flash_attn_backward", 1, 11, false, true},
};

// Read every tensor once and write one like the largest. Norms of PyTorch's own are far slower than those that stacks bring.
constexpr std::array<std::string_view, 8> passes{"aten::mul",  "aten::add",  "aten::div",  "aten::silu",
                                                 "aten::gelu", "aten::add_", "aten::mul_", "aten::copy_"};

std::optional<DType> dtype_of(std::string_view type) {
  if (type == "c10::BFloat16") return DType::bf16;
  if (type == "c10::Half") return DType::fp16;
  if (type.starts_with("c10::Float8")) return DType::fp8;
  return {};
}

double bytes_of_type(std::string_view type) {
  if (const auto dtype = dtype_of(type)) return workloads::bytes_of(*dtype);
  if (type == "double" || type == "long int" || type == "long") return 8;
  return type == "bool" || type == "unsigned char" || type == "signed char" ? 1 : 4;
}

double elements_of(const std::vector<std::int64_t>& dims) {
  double product = 1;
  for (const std::int64_t size : dims) product *= static_cast<double>(size);
  return product;
}

bool has(const CalledOperator& called, std::size_t argument, std::size_t least_rank) {
  return argument < called.dims.size() && argument < called.types.size() && called.dims[argument].size() >= least_rank;
}

std::optional<Operator> product_of(const CalledOperator& called, const Product& what) {
  if (!has(called, what.a, 2) || !has(called, what.b, 2)) return {};
  const auto &a = called.dims[what.a], &b = called.dims[what.b];
  const auto dtype = dtype_of(called.types[what.a]);
  Operator op;
  op.m = a[a.size() - 2];
  op.k = a.back();
  op.n = b.back();
  if (!dtype || b[b.size() - 2] != op.k || std::min({op.m, op.k, op.n}) < least_side || op.n % aligned != 0 || op.k % aligned != 0)
    return {};
  op.dtype = *dtype;
  const double batch = a.size() > 2 ? static_cast<double>(a.front()) : 1;
  const auto m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const double in = workloads::bytes_of(*dtype), out = std::max(in, workloads::bytes_of(DType::bf16));
  op.flops = 2 * batch * m * n * k;
  op.bytes = batch * ((m * k + k * n) * in + m * n * out);
  return op;
}

std::optional<Operator> attention_of(const CalledOperator& called, const Attention& what) {
  if (!has(called, what.query, 4) || !has(called, what.query + 1, 4) || what.causal >= called.values.size()) return {};
  const std::string& causal = called.values[what.causal];
  const auto dtype = dtype_of(called.types[what.query]);
  if (!dtype || (causal != "True" && causal != "False")) return {};
  const auto &q = called.dims[what.query], &k = called.dims[what.query + 1];
  const std::size_t heads_at = what.heads_first ? 1 : 2, tokens_at = what.heads_first ? 2 : 1;
  Operator op;
  op.cls = OperatorClass::attention;
  op.dtype = *dtype;
  op.pass = what.backward ? Pass::backward_input : Pass::forward;
  op.batch = q[0];
  op.heads = q[heads_at];
  op.kv_heads = k[heads_at];
  op.query = q[tokens_at];
  op.key = k[tokens_at];
  op.head_dim = q[3];
  op.causal = causal == "True";
  if (op.causal && op.query != op.key) return {};  // a cache, or a corner that flash-attn counts in its own way
  const double scores = elements_of(q) * static_cast<double>(op.key) * (op.causal ? 0.5 : 1);
  op.flops = 4 * scores * (what.backward ? workloads::flash_backward_flops : 1);
  op.bytes = (what.backward ? 4 : 2) * (elements_of(q) + elements_of(k)) * workloads::bytes_of(*dtype);
  return op;
}

// Whether an argument lies in memory as it is read: what is permuted or cut takes longer, each in its own way.
bool in_order(const CalledOperator& called, std::size_t argument) {
  const auto &dims = called.dims[argument], &strides = called.strides[argument];
  if (strides.size() != dims.size()) return false;
  std::int64_t next = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != next) return false;
    next *= dims[i];
  }
  return true;
}

std::optional<Operator> pass_of(const CalledOperator& called) {
  Operator op;
  op.cls = OperatorClass::memory_bound;
  double largest = 0;
  const std::vector<std::int64_t>* shape = nullptr;
  for (std::size_t i = 0; i < std::min(called.dims.size(), called.types.size()); ++i) {
    if (called.dims[i].empty() || called.types[i].empty()) continue;
    if (i >= called.strides.size() || !in_order(called, i)) return {};
    const double bytes = elements_of(called.dims[i]) * bytes_of_type(called.types[i]);
    if (shape != nullptr && called.dims[i] != *shape) return {};  // one for many: kernels of their own
    op.bytes += bytes;
    largest = std::max(largest, bytes);
    shape = &called.dims[i];
  }
  if (called.name != "aten::copy_") op.bytes += largest;  // whose arguments are what it reads and what it writes
  if (op.bytes < least_bytes) return {};
  return op;
}

// Its tensors, without those of one element.
std::string shown(const CalledOperator& called) {
  std::string text = called.name;
  for (const std::vector<std::int64_t>& dims : called.dims) {
    if (elements_of(dims) > 1) text += fmt::format(" {}", fmt::join(dims, "x"));
  }
  return text;
}

std::optional<Operator> operator_of(const CalledOperator& called) {
  if (const auto it = std::ranges::find(products, called.name, &Product::name); it != products.end()) return product_of(called, *it);
  if (const auto it = std::ranges::find(attentions, called.name, &Attention::name); it != attentions.end())
    return attention_of(called, *it);
  return pass_of(called);
}

bool belongs(KernelClass kernel, OperatorClass cls) {
  if (cls == OperatorClass::gemm) return kernel == KernelClass::product || kernel == KernelClass::grouped_product;
  return kernel == (cls == OperatorClass::attention ? KernelClass::attention : KernelClass::memory_bound);
}

// Kernels of one call.
struct CallOnGpu {
  std::vector<const TraceKernel*> kernels;
  bool alone = true;
};

std::map<std::uint32_t, CallOnGpu> calls_of(const KinetoTrace& trace) {
  const std::vector<bool> alone = alone_on_gpu(trace);
  std::map<std::uint32_t, CallOnGpu> calls;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const TraceKernel& kernel = trace.kernels[i];
    if (kernel.called_by == no_operator || !computes(kernel)) continue;
    CallOnGpu& call = calls[kernel.called_by];
    call.kernels.push_back(&kernel);
    call.alone = call.alone && alone[i];
  }
  return calls;
}

// The older kernels are PyTorch's copy of flash-attention 2, and its own package's before Hopper's.
int flash_generation(const TraceKernel& kernel) {
  return kernel.name.find("pytorch_flash") != std::string::npos || kernel.name.find("Flash_fwd_kernel_traits") != std::string::npos ||
                 kernel.name.find("Flash_bwd_kernel_traits") != std::string::npos
             ? 2
             : 3;
}

struct SeenShape {
  TracedOperator traced;
  std::vector<double> seconds;
};

void add_shapes(const KinetoTrace& trace, std::map<std::string, SeenShape>& all) {
  for (const auto& [index, call] : calls_of(trace)) {
    const CalledOperator& called = trace.operators[index];
    const auto op = call.alone ? operator_of(called) : std::nullopt;
    if (!op) continue;
    double busy_us = 0;
    int flash = 3;
    for (const TraceKernel* kernel : call.kernels) {
      if (!belongs(kernel->cls, op->cls)) continue;
      busy_us += kernel->end_us - kernel->start_us;
      flash = std::min(flash, flash_generation(*kernel));
    }
    if (busy_us < least_us) continue;
    const std::string name = shown(called);
    SeenShape& seen = all[fmt::format("{} {} {} {}", name, called.types.empty() ? "" : called.types.front(), op->causal, flash)];
    seen.traced = {*op, name, flash, 0, 0};
    seen.seconds.push_back(busy_us * 1e-6);
  }
}

}  // namespace

bool counts_shapes(std::string_view name) {
  return std::ranges::find(products, name, &Product::name) != products.end() ||
         std::ranges::find(attentions, name, &Attention::name) != attentions.end() || std::ranges::find(passes, name) != passes.end();
}

double device_seconds(const TracedOperator& traced, const Gpu& gpu, Software software) {
  software.launch_s = software.issue_s = 0;
  software.replays_graphs = true;
  software.flash = software.flash == sdpa ? traced.flash : std::min(software.flash, traced.flash);
  return operator_seconds(gpu, software, traced.op);
}

std::vector<TracedOperator> traced_operators(std::span<const KinetoTrace> traces) {
  std::map<std::string, SeenShape> all;
  for (const KinetoTrace& trace : traces) add_shapes(trace, all);
  std::vector<TracedOperator> out;
  for (auto& [key, seen] : all) {
    seen.traced.calls = static_cast<int>(seen.seconds.size());
    seen.traced.median_s = median(std::move(seen.seconds));
    out.push_back(std::move(seen.traced));
  }
  std::ranges::stable_sort(out, std::greater{}, [](const TracedOperator& each) { return each.calls * each.median_s; });
  return out;
}

}  // namespace rehearse::sim

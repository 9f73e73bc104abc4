// Linear layers: forward, input-gradient and weight-gradient products, their casts, biases and tensor-parallel collectives.
#include "workloads/operators/linear.hpp"

#include <algorithm>

#include "workloads/operators/adapters.hpp"
#include "workloads/operators/casts.hpp"

namespace rehearse::workloads {
namespace {

Operator gemm(const std::string& name, Pass pass, DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op;
  op.name = name;
  op.cls = OperatorClass::gemm;
  op.pass = pass;
  op.dtype = type;
  op.m = m;
  op.n = n;
  op.k = k;
  op.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return op;
}

}  // namespace

Operator product(const std::string& name, Pass pass, DType type, double element, std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op = gemm(name, pass, type, m, n, k);
  const double inputs = static_cast<double>(m * k) + static_cast<double>(k * n);
  op.bytes = inputs * bytes_of(type) + static_cast<double>(m * n) * element;
  return op;
}

LinearKind kind_of(const Workload& workload, const Shard& shard, DType type) {
  const bool keeps_gathered = workload.fusions.keeps_gathered && !workload.recompute.drops(RecomputeModule::layernorm);
  const KernelFusions& fusions = workload.fusions;
  const bool wide_gradient = is_narrow(type) && workload.precision.recipe == Scaling::rowwise_with_gw_hp;
  return {.type = type,
          .gradient_type = wide_gradient ? shard.dense : type,
          .recipe = workload.precision.recipe,
          .element = shard.element,
          .input = shard.element,
          .gradient = bytes_of(workload.precision.gradients),
          .accumulates = fusions.gradient_accumulation,
          .added = added_share(workload),
          .frozen = workload.lora.on(),
          .nf4 = workload.lora.on() && workload.lora.nf4,
          .transposes = transposes_weights(workload, type),
          .any_order = lies_as_read(workload, workload.precision.recipe),
          .recast = recast_bytes(workload, type),
          .by_triton = casts_by_triton(workload, type),
          .keeps_gathered = keeps_gathered,
          .compiled = fusions.compiled,
          .by_product = shard.tp > 1 && (shard.sp ? fusions.gathers_by_product : fusions.reduces_by_product),
          .joins = shard.tp > 1 && shard.sp && fusions.joins_gathered && !workload.overlap.tp};
}

namespace {

Operator scaled(Operator op, const LinearKind& kind) {
  op.by_blocks = op.dtype == DType::fp8 && scales_blocks(kind.recipe);
  return op;
}

}  // namespace

// Two in and one out for each but the first, or all in and one out where a compiler fuses the sums.
int passes_of_sum(const LinearKind& kind, int terms) {
  if (terms == 1) return 0;
  return kind.compiled ? terms + 1 : 3 * (terms - 1);
}

void add_weight_gradient(std::vector<Item>& items, const LinearKind& kind, const Linear& linear) {
  const double weights = static_cast<double>(linear.n * linear.k);
  Operator op = scaled(product(linear.name, Pass::backward_weight, kind.gradient_type, kind.element, linear.n, linear.k, linear.m), kind);
  op.kernels *= linear.products;
  if (kind.accumulates) op.bytes += weights * (2 * kind.gradient - kind.element);
  if (!kind.accumulates) op.allocated_bytes = weights * kind.element;
  items.emplace_back(std::move(op));
  if (!kind.accumulates) {
    items.emplace_back(memory_bound(linear.name + " gradient accumulation", kind.added * weights * (kind.element + 2 * kind.gradient),
                                    Pass::backward_weight));
  }
  if (linear.bias) {
    items.emplace_back(
        memory_bound(linear.name + " bias gradient", static_cast<double>(linear.m * linear.n) * kind.element, Pass::backward_weight));
  }
}

std::vector<Item> hidden_collective(const Shard& shard, const std::string& where, CollectiveKind kind, Pass pass, double element,
                                    int times) {
  if (shard.tp == 1) return {};
  Communication communication;
  communication.name = where + " " + std::string(name_of(kind));
  communication.kind = kind;
  communication.bytes = static_cast<double>(shard.tokens * shard.hidden) * element * times;
  communication.pass = pass;
  return {communication};
}

namespace {

// What separate products of one input read again costs them nothing: they wait for arithmetic, not for memory.
Operator separated(Operator op, const LinearKind& kind, const Linear& linear) {
  op.kernels *= linear.products;
  op.allocated_bytes = static_cast<double>(op.m * op.n) * kind.element;
  return scaled(std::move(op), kind);
}

void add_gradient_sum(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, double elements) {
  if (linear.products == 1) return;
  items.emplace_back(by_operators(
      kind.compiled, memory_bound(linear.name + " input gradient sum", passes_of_sum(kind, linear.products) * elements * kind.input,
                                  Pass::backward_input, kind.compiled ? 1 : linear.products - 1)));
}

// Autocast: the input of each product, or in backward the gradient that it gives.
void add_autocast(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, Pass pass, double elements) {
  if (kind.input == kind.element) return;
  const double bytes = linear.products * elements * (kind.input + kind.element);
  items.emplace_back(by_operators(kind.compiled, memory_bound(linear.name + " autocast", bytes, pass, 0)));
}

// A kernel for each matrix writes it out in 16 bits before the product that reads it.
void add_dequantised(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, Pass pass) {
  if (!kind.nf4) return;
  const double weights = static_cast<double>(linear.n * linear.k);
  items.emplace_back(memory_bound(linear.name + " dequantise", weights * (nf4_bytes + kind.element), pass, linear.products));
}

void add_weight_transpose(std::vector<Item>& items, const LinearKind& kind, const Linear& linear) {
  const double weights = static_cast<double>(linear.n * linear.k);
  items.emplace_back(
      narrow_cast(linear.name + " weight transpose", weights * 2 * bytes_of(kind.type), Pass::backward_input, linear.products));
}

// What tensor parallelism adds around the products of one linear layer. The spread shares are those of the tokens that a GPU holds before
// a gather, 1 without one.
struct Around {
  std::vector<Item> gather_input, reduce_output;                                 // forward
  std::vector<Item> gather_gradient, gather_input_again, reduce_input_gradient;  // backward
  double spread = 1;                                                             // share of the tokens outside the tensor-parallel region
};

// Casts to 8 or 4 bits come before the gather, but by rows, and what autocast makes of fp32 before those.
void add_input(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, const Around& around, double elements) {
  const bool gathers = !around.gather_input.empty(), narrow = is_narrow(kind.type), before = gathers_narrow(kind);
  const double here = gathers && before ? elements * around.spread : elements;
  const auto cast = [&] {
    if (!narrow || linear.cast_input) return;
    add_autocast(items, kind, linear, Pass::forward, here);
    add_cast(items, kind, linear.name, Pass::forward, here, !gathers,
             linear.input_found || (kind.compiled && linear.input_beside && (before || !gathers)));
  };
  if (before) cast();
  items.insert(items.end(), around.gather_input.begin(), around.gather_input.end());
  if (!before) cast();
  if (!narrow) add_autocast(items, kind, linear, Pass::forward, elements);
}

// Likewise the output's gradient.
void add_gradient(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, const Around& around, double elements) {
  const bool gathers = !around.gather_gradient.empty(), before = gathers_narrow(kind);
  const auto cast = [&] {
    if (linear.cast_gradient) return;
    add_cast(items, kind, linear.name, Pass::backward_input, gathers && before ? elements * around.spread : elements, !gathers,
             linear.gradient_found || (kind.compiled && linear.gradient_beside && (before || !gathers)));
  };
  if (before) cast();
  items.insert(items.end(), around.gather_gradient.begin(), around.gather_gradient.end());
  if (!before) cast();
}

// The saved input is gathered again for the weight gradient, where there is one, beside the input gradient. Weight gradients come last: the
// reduction of the input gradient runs beside them (Megatron-LM, Transformer Engine).
Section linear_section(const LinearKind& kind, const Linear& linear, const Around& around) {
  const bool gathers_input = !around.gather_input.empty(), gathers_gradient = !around.gather_gradient.empty();
  const auto input = static_cast<double>(linear.m * linear.k), output = static_cast<double>(linear.m * linear.n);
  Section section;
  section.parameters = static_cast<double>(linear.n * linear.k) + (linear.bias ? static_cast<double>(linear.n) : 0.0);
  add_input(section.forward, kind, linear, around, input);
  add_dequantised(section.forward, kind, linear, Pass::forward);
  add_weight_cast(section.forward, kind, linear, Pass::forward);
  section.forward.emplace_back(
      separated(product(linear.name, Pass::forward, kind.type, kind.element, linear.m, linear.n, linear.k), kind, linear));
  append(section.forward, around.reduce_output);
  add_gradient(section.backward, kind, linear, around, output);
  append(section.backward, around.gather_input_again);
  add_dequantised(section.backward, kind, linear, Pass::backward_input);
  add_weight_cast(section.backward, kind, linear, Pass::backward_input);
  if (kind.transposes) add_weight_transpose(section.backward, kind, linear);
  section.backward.emplace_back(
      separated(product(linear.name, Pass::backward_input, kind.type, kind.element, linear.m, linear.k, linear.n), kind, linear));
  if (gathers_gradient) add_transpose(section.backward, kind, linear.name, output);
  if (gathers_input) add_transpose(section.backward, kind, linear.name, input);
  add_autocast(section.backward, kind, linear, Pass::backward_input, input);
  if (!kind.by_product) add_gradient_sum(section.backward, kind, linear, input);
  append(section.backward, around.reduce_input_gradient);
  if (!kind.frozen) add_weight_gradient(section.backward, kind, linear);
  if (kind.by_product) add_gradient_sum(section.backward, kind, linear, input * around.spread);
  return section;
}

// A hidden state read and written.
Item hidden_copy(const Shard& shard, const std::string& name, Pass pass, double element, int times) {
  return memory_bound(name, 2 * static_cast<double>(shard.tokens * shard.hidden) * element * times, pass, times);
}

// What lies behind a gather by pieces of the sequence, or has to before a scatter, is read and written once where batch comes first.
void add_join(std::vector<Item>& items, const LinearKind& kind, const Shard& shard, const std::string& where, Pass pass, double element,
              int times) {
  if (!kind.joins || items.empty()) return;
  items.emplace_back(hidden_copy(shard, where + " join", pass, element, times));
}

// Gathers move what the product reads: Transformer Engine casts before it gathers. Reductions add in 16 (or 32) bits.
std::vector<Item> hidden_gather(const LinearKind& kind, const Shard& shard, const std::string& where, Pass pass, int times = 1) {
  if (!shard.sp) return {};
  const double element = gathers_narrow(kind) ? bytes_of(kind.type) : kind.input;
  std::vector<Item> items = hidden_collective(shard, where, CollectiveKind::all_gather, pass, element, times);
  add_join(items, kind, shard, where, pass, element, times);
  return items;
}
std::vector<Item> hidden_reduction(const LinearKind& kind, const Shard& shard, const std::string& where, Pass pass, int times = 1) {
  const CollectiveKind how = shard.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  std::vector<Item> items = hidden_collective(shard, where, how, pass, kind.input, times);
  add_join(items, kind, shard, where, pass, kind.input, times);
  std::ranges::reverse(items);
  return items;
}

// A hidden state that all ranks of tp hold is copied for each product that reads it.
void copy_first(std::vector<Item>& items, const Workload& workload, const Shard& shard, const std::string& where, Pass pass, double element,
                int times) {
  if (!workload.fusions.copies_shared || shard.tp == 1 || shard.sp) return;
  items.insert(items.begin(), hidden_copy(shard, where + " copy", pass, element, times));
}

}  // namespace

double cast_bytes(const Workload& workload, const Shard& shard, bool transposed) {
  return written_by_cast(kind_of(workload, shard, shard.linear), transposed);
}

bool may_fuse_casts(const Precision& precision) {
  return precision.in_fp8() && (precision.recipe == Scaling::delayed || precision.recipe == Scaling::mxfp8);
}

bool may_find_scales(const Precision& precision) {
  return precision.recipe == Scaling::tensorwise || (precision.in_fp4() && precision.recipe == Scaling::blockwise);
}

bool finds_scales(const Workload& workload, const Shard& shard) {
  return workload.fusions.fused_casts && is_narrow(shard.linear) && may_find_scales(workload.precision);
}

bool fuses_casts(const Workload& workload, const Shard& shard) {
  return workload.fusions.fused_casts && shard.linear == DType::fp8 && may_fuse_casts(workload.precision);
}

namespace {

double spread_of(const Shard& shard) { return static_cast<double>(shard.spread_tokens) / static_cast<double>(shard.tokens); }

// Its input comes out of a norm.
Section column(LinearKind kind, const Shard& shard, const Linear& linear, const std::string& where) {
  kind.input = shard.normed;
  const int times = kind.by_product ? linear.products : 1;
  Around around;
  around.gather_input = hidden_gather(kind, shard, where, Pass::forward, times);
  if (!kind.keeps_gathered && !kind.frozen) around.gather_input_again = hidden_gather(kind, shard, where, Pass::backward_input, times);
  for (Item& item : around.gather_input_again) {
    if (auto* gather = std::get_if<Communication>(&item)) gather->for_later = true;
  }
  around.reduce_input_gradient = hidden_reduction(kind, shard, where, Pass::backward_input, times);
  around.spread = spread_of(shard);
  return linear_section(kind, linear, around);
}

}  // namespace

Section column_parallel(const Workload& workload, const Shard& shard, const Linear& linear, const std::string& where) {
  Section section = column(kind_of(workload, shard, shard.linear), shard, linear, where);
  copy_first(section.forward, workload, shard, where, Pass::forward, shard.normed, linear.products);
  add_adapters(section, workload, shard, linear, Side::column, where);
  return section;
}

namespace {

// Experts that are filled up to a capacity, or multiplied one after the other, are dense products; so are those in 8 bits under PyTorch,
// whose kernel is of 16. Products on several streams run beside one another whoever issues them.
GroupedKernel grouped_kernel(const Workload& workload, const Shard& shard) {
  const GroupedKernel kernel = workload.fusions.grouped_kernel;
  const bool together = workload.fusions.grouped_gemm || kernel == GroupedKernel::streams;
  const bool sorted = together && workload.experts.capacity_factor == 0;
  const bool fits = kernel != GroupedKernel::torch || bytes_of(shard.linear) == 2;
  return sorted && fits ? kernel : GroupedKernel::library;
}

// What the host issues to cast experts' rows (multi_tensor_quantize_impl in transformer_engine/pytorch/csrc/extensions/cast.cpp, 2.9): by
// delayed scales one kernel for all of them, else those of one expert after the other's in C++, from the largest value to the cast.
int casts_one_by_one(Scaling recipe, int groups) { return recipe == Scaling::delayed ? 1 : groups; }

}  // namespace

Section grouped_linear(const Workload& workload, const Shard& shard, const Linear& linear, int groups) {
  LinearKind kind = kind_of(workload, shard, shard.linear);
  kind.added = added_share_of_experts(workload);
  Section section = linear_section(kind, linear, {});
  // linear_section counts one matrix of weights; every expert has its own. The rows that a product works on are one expert's.
  const double weights = static_cast<double>(linear.n * linear.k), more = (groups - 1) * weights;
  const auto spread = [&](Item& item) {
    auto* op = std::get_if<Operator>(&item);
    if (op == nullptr) return;
    if (op->cls == OperatorClass::gemm) {
      const bool gradient = op->pass == Pass::backward_weight;
      op->bytes += more * (!gradient ? bytes_of(kind.type) : kind.accumulates ? 2 * kind.gradient : kind.element);
      (gradient ? op->k : op->m) = std::max<std::int64_t>(1, linear.m / groups);
      op->grouped = grouped_kernel(workload, shard);
      if (!workload.fusions.grouped_gemm) op->kernels *= groups;
    } else if (op->name == linear.name + " cast") {
      if (!workload.fusions.grouped_gemm) op->kernels = casts_one_by_one(kind.recipe, groups);
    } else if (op->name == linear.name + weight_cast || op->name == linear.name + " weight transpose") {
      op->bytes *= groups;
      if (!workload.fusions.grouped_gemm) op->kernels *= groups;
    } else if (op->name == linear.name + " gradient accumulation") {
      op->bytes *= groups;
    }
  };
  for (Item& item : section.forward) spread(item);
  for (Item& item : section.backward) spread(item);
  section.parameters *= groups;
  return section;
}

Section output_linear(const Workload& workload, const Shard& shard, const Linear& linear, const std::string& where) {
  LinearKind kind = kind_of(workload, shard, shard.dense);
  kind.nf4 = false;
  Section section = column(kind, shard, linear, where);
  for (Item& item : section.forward) {
    if (auto* op = std::get_if<Operator>(&item)) op->whole = op->cls == OperatorClass::gemm;
  }
  for (std::vector<Item>* items : {&section.forward, &section.backward}) {  // PyTorch's own products fill nothing
    for (Item& item : *items) {
      if (auto* op = std::get_if<Operator>(&item)) op->allocated_bytes = 0;
    }
  }
  return section;
}

Section row_parallel(const Workload& workload, const Shard& shard, const Linear& linear, const std::string& where) {
  const LinearKind kind = kind_of(workload, shard, shard.linear);
  Around around;
  if (!linear.summed_later) {
    around.reduce_output = hidden_reduction(kind, shard, where, Pass::forward);
    around.gather_gradient = hidden_gather(kind, shard, where, Pass::backward_input);
    around.spread = spread_of(shard);
  }
  Section section = linear_section(kind, linear, around);
  if (!linear.summed_later) copy_first(section.backward, workload, shard, where, Pass::backward_input, shard.element, 1);
  add_adapters(section, workload, shard, linear, Side::row, where);
  return section;
}

bool merges_branches(const Workload& workload, const Shard& shard) {
  return workload.fusions.merges_branches && workload.model.side_by_side() && shard.tp > 1;
}

// Of the type that hidden states are computed in. No product stands next to it that pieces of it could run beside.
Section merged_sum(const Workload& workload, const Shard& shard) {
  const LinearKind kind = kind_of(workload, shard, shard.dense);
  Section section;
  section.forward = hidden_reduction(kind, shard, "layer", Pass::forward);
  section.backward = hidden_gather(kind, shard, "layer", Pass::backward_input);
  for (std::vector<Item>* items : {&section.forward, &section.backward}) {
    for (Item& item : *items) {
      if (auto* call = std::get_if<Communication>(&item)) call->in_line = true;
    }
  }
  return section;
}

}  // namespace rehearse::workloads

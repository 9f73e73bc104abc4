#include "workloads/operators/casts.hpp"

namespace rehearse::workloads {

// Scales of blocks and of rows belong to a direction: both copies are cast from 16 bits, and none is a transpose of the other.
bool scales_blocks(Scaling recipe) { return recipe == Scaling::blockwise || recipe == Scaling::mxfp8 || recipe == Scaling::nvfp4; }

namespace {

// Scales that are found from the values, by a stack that does not cast weights once a step: torchao, whose module casts in forward and in
// backward (torchao/float8/float8_linear.py; the traffic as in its own testing/training/roofline_utils.py).
bool casts_each_pass(const Workload& workload, DType type) {
  return is_narrow(type) && !workload.fusions.casts_weights && workload.precision.recipe != Scaling::delayed;
}
bool gathered_narrow(const Workload& workload, DType type) { return workload.precision.param_gather == type; }

// Bytes of scales beside each value: fp32 for 128, E8M0 for 32, or of 4 bits E4M3 for 16.
double scale_bytes(Scaling recipe, DType type) {
  constexpr double fp32 = 4, values_of_block = 128, values_of_mx = 32, values_of_nv = 16;
  if (type == DType::fp4 && scales_blocks(recipe)) return 1 / values_of_nv;
  return recipe == Scaling::blockwise ? fp32 / values_of_block : recipe == Scaling::mxfp8 ? 1 / values_of_mx : 0;
}

// A tensor's own scale, or in 4 bits one above those of its blocks: its largest value is looked for first.
bool looks_first(Scaling recipe, DType type) { return recipe == Scaling::tensorwise || (type == DType::fp4 && scales_blocks(recipe)); }

// torchao's NVFP4 in Triton (torchao/prototype/moe_training/nvfp4_training, 0.18), in bytes that count: what a kernel takes for each value
// more on GB200, where other kernels move 5.33 TB/s (benchmarks/prototype/nvfp4_training/README.md, 2,048 rows of 14,336 and 28,672): the
// largest values of a tensor and of its transform 0.49 us a million, both orders at once 1.75, a gradient's with stochastic rounding 2.57,
// both of a weight 3.70. A weight's largest value is the compiler's.
constexpr double triton_largest = 2.6, triton_rounded = 9.3, triton_at_random = 13.7, triton_weight = 19.7;

// Scales by row (torchao/testing/training/roofline_utils.py): in the one direction a read and a write in 8 bits, in the other the transpose
// in 16 bits, which the same kernel writes, and a second that reads it. Nothing of the other where the weight gradient's product has 16
// bits. A compiler has the kernel before write the first.
void add_cast_by_rows(std::vector<Item>& items, const LinearKind& kind, const std::string& name, Pass pass, double elements, bool beside) {
  const double narrow = bytes_of(kind.type), first = (beside ? 0 : kind.element) + narrow;
  const bool both = !kind.frozen && kind.recipe == Scaling::rowwise;
  items.emplace_back(narrow_cast(name + " cast", elements * (first + (both ? 2 * kind.element + narrow : 0)), pass, both ? 2 : 1));
}

}  // namespace

// Its weights are cast in forward alone, in both orders, and what it keeps of its input is the cast (nvfp4_mm_triton).
bool casts_by_triton(const Workload& workload, DType type) {
  return type == DType::fp4 && workload.precision.recipe == Scaling::nvfp4 && casts_each_pass(workload, type);
}

bool lies_as_read(const Workload& workload, Scaling recipe) {
  return workload.fusions.any_order && !scales_blocks(recipe) && !by_rows(recipe);
}

// What comes in 8 bits has one order, and `_scaled_mm` reads its second matrix by columns (torchao's preprocess_addmm).
bool transposes_weights(const Workload& workload, DType type) {
  const bool gathered = casts_each_pass(workload, type) && gathered_narrow(workload, type);
  return (gathered && workload.precision.recipe == Scaling::tensorwise) ||
         (workload.fusions.transposes_frozen && keeps_frozen(workload, type) && !lies_as_read(workload, workload.precision.recipe));
}

// torchao saves what it is given (save_for_backward of input_hp in torchao/float8/float8_linear.py; mx_mm and the grouped products of
// experts likewise), Transformer Engine what it has cast. A compiler has one cast for both passes where both read the same, and saves that
// (convert_element_type_4 among the outputs of forward in pytorch issue 128730, clone_1 in 117901; torchao counts on it, ao issue 1850):
// scales of rows and of blocks belong to a direction, and backward reads the other.
bool keeps_casts(const Workload& workload, DType type) {
  if (!is_narrow(type)) return false;
  const Scaling recipe = workload.precision.recipe;
  if (casts_by_triton(workload, type) || (!casts_each_pass(workload, type) && !by_rows(recipe))) return true;
  return workload.fusions.compiled && recipe == Scaling::tensorwise;
}

double cast_copy_bytes(const Workload& workload, DType type) { return bytes_of(type) + scale_bytes(workload.precision.recipe, type); }

int weight_copies(const Workload& workload) { return lies_as_read(workload, workload.precision.recipe) ? 1 : 2; }

// Of a weight that is cast once a step: read as it is kept, in Transformer Engine's NVFP4 without a transform.
double weight_cast_bytes(const Workload& workload, DType type) {
  if (!is_narrow(type) || keeps_frozen(workload, type)) return 0;
  const Scaling recipe = workload.precision.recipe;
  const double written = weight_copies(workload) * cast_copy_bytes(workload, type);
  return (looks_first(recipe, type) ? 2 : 1) * bytes_of(workload.precision.weights) + written;
}

double recast_bytes(const Workload& workload, DType type) {
  const bool come_cast = gathered_narrow(workload, type) || keeps_frozen(workload, type);
  return casts_each_pass(workload, type) && !come_cast ? product_weight_bytes(workload) : 0;
}

// torchao gathers 16 bits, of which no rank has a whole row in the other direction (Float8ColwiseParallel is of scales by tensor alone).
bool gathers_narrow(const LinearKind& kind) { return is_narrow(kind.type) && !by_rows(kind.recipe); }

double written_by_cast(const LinearKind& kind, bool transposed) {
  const bool both = !kind.frozen && ((transposed && !kind.any_order) || scales_blocks(kind.recipe));
  return (both ? 2 : 1) * (bytes_of(kind.type) + scale_bytes(kind.recipe, kind.type));
}

// 8- and 4-bit layers: read in 16 bits (twice where the scale is the tensor's own), written as is for one product and transposed for the
// other, that of a weight gradient. What is gathered over tp afterwards is cast where it lies spread, and transposed behind the gather.
// A compiler has the kernel that makes a tensor find its largest value (Inductor's extract_input_node_reduction_ranges). NVFP4's with a
// Hadamard transform, of the tensor and of what the transform makes of it, come from one kernel; rows are cast by a second, and columns,
// behind the transform, by a third (NVFP4Quantizer in transformer_engine/pytorch/csrc/quantizer.cpp, 2.8 to 2.13; one for both since
// 2.14). Without it one kernel casts both.
void add_cast(std::vector<Item>& items, const LinearKind& kind, const std::string& name, Pass pass, double elements, bool transposed,
              bool beside) {
  if (!is_narrow(kind.type)) return;
  if (by_rows(kind.recipe)) return add_cast_by_rows(items, kind, name, pass, elements, beside);
  if (kind.by_triton) {
    const double both = pass == Pass::forward ? triton_rounded : triton_at_random;
    items.emplace_back(narrow_cast(name + " cast", elements * (triton_largest + both), pass, 2));
    return;
  }
  const bool own = looks_first(kind.recipe, kind.type), found = own && beside && kind.recipe != Scaling::nvfp4;
  const int casts = kind.recipe == Scaling::nvfp4 && !kind.frozen ? 2 : 1;
  items.emplace_back(narrow_cast(name + " cast",
                                 elements * ((own && !found ? casts + 1 : casts) * kind.element + written_by_cast(kind, transposed)), pass,
                                 own ? casts + 1 : casts));
}

void add_transpose(std::vector<Item>& items, const LinearKind& kind, const std::string& name, double elements) {
  if (!gathers_narrow(kind) || scales_blocks(kind.recipe) || kind.any_order || kind.frozen) return;
  items.emplace_back(narrow_cast(name + " transpose", elements * 2 * bytes_of(kind.type), Pass::backward_input));
}

// Forward finds the scale, which backward has kept, where it is the tensor's own; each pass writes the order that its product reads, by
// rows behind a transpose in 16 bits.
void add_weight_cast(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, Pass pass) {
  if (kind.recast == 0 || (kind.by_triton && pass != Pass::forward)) return;
  const double weights = static_cast<double>(linear.n * linear.k);
  if (kind.by_triton) {
    items.emplace_back(narrow_cast(linear.name + weight_cast, weights * (kind.recast + triton_weight), pass, 2 * linear.products));
    return;
  }
  const int reads = looks_first(kind.recipe, kind.type) && pass == Pass::forward ? 2 : 1;
  const bool transposed = kind.recipe == Scaling::rowwise && pass == Pass::backward_input;
  const double bytes = weights * ((reads + (transposed ? 2 : 0)) * kind.recast + bytes_of(kind.type) + scale_bytes(kind.recipe, kind.type));
  items.emplace_back(narrow_cast(linear.name + weight_cast, bytes, pass, (reads + (transposed ? 1 : 0)) * linear.products));
}

}  // namespace rehearse::workloads

// Casts of what linear layers in 8 and 4 bits read: activations, gradients and weights (internal to the operators).
#pragma once

#include <string>
#include <vector>

#include "workloads/operators/linear.hpp"

namespace rehearse::workloads {

// Scales of blocks: a tensor of 8 bits has many, and both copies of it are cast from 16 bits.
[[nodiscard]] bool scales_blocks(Scaling recipe);
// Weights that come in 8 bits are transposed for each product of backward.
[[nodiscard]] bool transposes_weights(const Workload& workload, DType type);
// Whether a layer whose products are in this type keeps its input as it multiplied it; else in 16 bits, which backward casts again.
[[nodiscard]] bool keeps_casts(const Workload& workload, DType type);
// Of a value, what a cast leaves for one product to read: the value and its part of the scales.
[[nodiscard]] double cast_copy_bytes(const Workload& workload, DType type);
// Of a weight, what its cast once a step reads and writes; 0: it is not cast. copies: those that it writes, one for each of the two
// products unless both read the same.
[[nodiscard]] double weight_cast_bytes(const Workload& workload, DType type);
[[nodiscard]] int weight_copies(const Workload& workload);
// NVFP4 by torchao, whose kernels are in Triton.
[[nodiscard]] bool casts_by_triton(const Workload& workload, DType type);
// Whether products with this one scale for a tensor read it as it lies.
[[nodiscard]] bool lies_as_read(const Workload& workload, Scaling recipe);
// Of a weight that each pass casts anew; 0: none does.
[[nodiscard]] double recast_bytes(const Workload& workload, DType type);

// Whether tensor parallelism gathers what is cast already.
[[nodiscard]] bool gathers_narrow(const LinearKind& kind);
// Of an element, with its scale; transposed: also for the product of a weight gradient.
[[nodiscard]] double written_by_cast(const LinearKind& kind, bool transposed);
// beside: the kernel that makes the tensor does a part of it.
void add_cast(std::vector<Item>& items, const LinearKind& kind, const std::string& name, Pass pass, double elements, bool transposed,
              bool beside);
// Behind a gather of what was cast.
void add_transpose(std::vector<Item>& items, const LinearKind& kind, const std::string& name, double elements);
void add_weight_cast(std::vector<Item>& items, const LinearKind& kind, const Linear& linear, Pass pass);

}  // namespace rehearse::workloads

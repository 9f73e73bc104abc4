// What linear layers and the adapters beside them share (internal to the operators).
#pragma once

#include <string>
#include <vector>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {

// What a linear layer needs to know of the workload.
struct LinearKind {
  DType type;
  DType gradient_type;  // of the product for the gradient of the weights
  Scaling recipe;
  double element;    // bytes of its 16- or 32-bit output, and of its input as the product reads it
  double input;      // of the input as it comes: fp32 where autocast casts it for every product
  double gradient;   // bytes of an accumulated gradient
  bool accumulates;  // the product itself adds into the gradient buffer
  double added;      // elsewhere: of the micro-batches, those whose gradients are added to others
  bool frozen;       // weights have no gradients
  bool nf4;          // and are kept in 4 bits
  bool transposes;   // they come as products of forward read them, and are transposed for each of backward
  bool any_order;    // products read what has one scale as it lies
  double recast;     // bytes of a weight that each pass casts anew to the product's type; 0: none does
  bool by_triton;    // casts to 4 bits by torchao's kernels
  bool keeps_gathered;
  bool compiled;
  bool by_product;  // separate products have collectives of their own
  bool joins;       // copies around what is gathered and scattered along the sequence
};
[[nodiscard]] LinearKind kind_of(const Workload& workload, const Shard& shard, DType type);

// Both inputs read in `type`, the output written in `element` bytes, 16 (or 32) bits.
[[nodiscard]] Operator product(const std::string& name, Pass pass, DType type, double element, std::int64_t m, std::int64_t n,
                               std::int64_t k);
// Passes over a layer's input that add up gradients of it.
[[nodiscard]] int passes_of_sum(const LinearKind& kind, int terms);
void add_weight_gradient(std::vector<Item>& items, const LinearKind& kind, const Linear& linear);
// A collective over tp of the whole hidden state of a micro-batch in `element` bytes, once for each of `times` products (one call of as
// many bytes); nothing when tp = 1.
[[nodiscard]] std::vector<Item> hidden_collective(const Shard& shard, const std::string& where, CollectiveKind kind, Pass pass,
                                                  double element, int times);

}  // namespace rehearse::workloads

// How many tensors the parameters of a model are: what updates, gathers and reductions by tensor are made of.
#pragma once

#include "workloads/operators.hpp"

namespace rehearse::workloads {

// Of a layer: the matrices of attention or mixer and MLP, biases, norms.
[[nodiscard]] int layer_tensors(const Workload& workload, const LayerShape& shape);
// Of the last norm, and a head of its own.
[[nodiscard]] int head_tensors(const Workload& workload);
// Of a stage on average those that are trained: of its layers, and of a table, a last norm and a head of its own; with LoRA its adapters'.
[[nodiscard]] int stage_tensors(const Workload& workload);

}  // namespace rehearse::workloads

// How one instance of a serving engine lays a model over its GPUs. Plain data.
#pragma once

#include <compare>
#include <memory>
#include <optional>

#include "workloads/plan.hpp"

namespace rehearse::workloads {

struct ServingPrecision {
  DType compute = DType::bf16, weights = DType::bf16, kv = DType::bf16;
  DType state = DType::bf16;            // of what layers keep of a sequence in the place of attention
  std::optional<DType> attention = {};  // of its weights, as stored; none: as the others, or as checkpoints have it (pass_operators.cpp)
  friend auto operator<=>(const ServingPrecision&,
                          const ServingPrecision&) = default;  // NOLINT(modernize-use-nullptr): the 0 it compares with
};

struct InstancePlan {
  Model model;
  int tp = 1, pp = 1;
  int dp = 1;  // attention replicas: each has sequences of its own, all of them run a pass in step
  int ep = 1;  // ranks among which the experts are spread; each expert is shared by tp*dp/ep of them
  ServingPrecision precision;
  Dispatcher dispatcher = Dispatcher::allgather;
  int redundant = 0;                          // copies of experts beside the model's own
  std::shared_ptr<const ExpertPlan> routing;  // where the router sends tokens; nullptr: to all experts alike
  bool overlaps = false;                      // two half-batches: exchanges of one run beside the other's computation

  [[nodiscard]] int stage_ranks() const { return tp * dp; }
  [[nodiscard]] int gpus() const { return tp * pp * dp; }
};

// Of the plan as training workloads know it, with so many tokens in a pass of one attention replica: what operators are made from.
[[nodiscard]] Workload workload_of(const InstancePlan& plan, int tokens, const KernelFusions& fusions);

}  // namespace rehearse::workloads

// What the operators of a unit have of how the optimizer shards and accumulates.
#pragma once

#include "workloads/plan.hpp"

namespace rehearse::workloads {

// Two plans whose units are the same otherwise have the same operators where all of these are equal. Not of it: FSDP's copies
// (Optimizer::copies and flat), which stand around a unit's operators and follow from its ReplicaSync.
struct ShardedOperators {
  bool casts = false;                   // by autocast
  double added = 1, added_experts = 1;  // of the micro-batches, those whose gradients a kernel adds up
  double adapter_element = 0;           // bytes, of what adapters' products read and write; without adapters 0

  bool operator==(const ShardedOperators&) const = default;
};
[[nodiscard]] ShardedOperators sharded_operators(const Workload& workload);

}  // namespace rehearse::workloads

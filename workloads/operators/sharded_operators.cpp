#include "workloads/operators/sharded_operators.hpp"

#include "workloads/operators/adapters.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::workloads {

ShardedOperators sharded_operators(const Workload& workload) {
  return {.casts = autocasts(workload),
          .added = added_share(workload),
          .added_experts = added_share_of_experts(workload),
          .adapter_element = workload.lora.on() ? adapter_element(workload, shard_of(workload)) : 0};
}

}  // namespace rehearse::workloads

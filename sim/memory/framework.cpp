#include "sim/memory/framework.hpp"

#include <algorithm>
#include <map>

#include "sim/memory/nccl_buffers.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
namespace {

// Assumption: when memory runs short the allocator gives back the segments that are free as a whole, about half of its cache. The published
// runs of up to 75 GiB on 80 GiB fit with it, and those that ran out of memory do not (tests/memory).
constexpr double stuck_share = 0.5;

}  // namespace

MemoryBytes held_all_the_time(const Job& job, const workloads::StaticMemory& tensors) {
  return held_all_the_time(framework_bytes(job.system, job.workload), tensors);
}

double framework_bytes(const System& system, const workloads::Workload& workload) {
  return system.software.memory.context_bytes + communicators_bytes(system, workload);
}

MemoryBytes held_all_the_time(double framework_bytes, const workloads::StaticMemory& tensors) {
  MemoryBytes held;
  held[MemoryUse::weights] = tensors.weights;
  held[MemoryUse::gradients] = tensors.gradients;
  held[MemoryUse::optimizer] = tensors.optimizer;
  held[MemoryUse::temporary] = tensors.temporary;
  held[MemoryUse::framework] = framework_bytes;
  return held;
}

double usable_bytes(const Gpu& gpu) { return gpu.memory_bytes - gpu.driver_bytes; }

void raise_to_update(const MemoryBytes& always, const workloads::StaticMemory& tensors, RankMemory& memory) {
  if (tensors.update == 0) return;
  MemoryBytes then = always;
  then[MemoryUse::gradients] = tensors.gradients + tensors.update;
  if (then.total() <= memory.peak_bytes()) return;
  memory.at_peak = then;
  memory.operation = "optimizer";
  memory.microbatch = -1;
}

void add_cache(const Job& job, double update_bytes, RankMemory& memory) { add_cache(job.system.software.memory, update_bytes, memory); }

void add_cache(const MemoryOverhead& stack, double update_bytes, RankMemory& memory) {
  memory.cached_bytes = stack.fragmentation * memory.tensor_bytes();
  memory.stuck_bytes = stuck_share * memory.cached_bytes;
  memory.cached_bytes += update_bytes;
}

HostMemory fullest_host(const Job& job, const std::vector<RankMemory>& ranks) {
  std::map<int, double> of_stage, of_node;
  for (const RankMemory& rank : ranks) of_stage[rank.stage] = std::max(of_stage[rank.stage], rank.host_bytes);
  if (std::ranges::all_of(of_stage, [](const auto& entry) { return entry.second == 0; })) return {};
  const workloads::RankGrid grid(job.workload.parallel);
  for (int rank = 0; rank < grid.size(); ++rank) of_node[rank / job.system.cluster.gpus_per_node] += of_stage[grid.coordinates(rank).pp];
  const auto fullest = std::ranges::max_element(of_node, {}, [](const auto& entry) { return entry.second; });
  return {fullest->first, fullest->second, job.system.cluster.host_memory.bytes};
}

}  // namespace rehearse::sim

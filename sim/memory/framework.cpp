#include "sim/memory/framework.hpp"

#include <algorithm>
#include <array>

namespace rehearse::sim {
namespace {

// PyTorch's out-of-memory messages on an 80 GiB A100: "79.35 GiB total capacity".
constexpr double driver_bytes = 0.65 * 1024 * 1024 * 1024;
// Assumption: when memory runs short the allocator gives back the segments that are free as a whole, about half of its cache. The published
// runs of up to 75 GiB on 80 GiB fit with it, and those that ran out of memory do not (tests/memory).
constexpr double stuck_share = 0.5;

// One per direction of parallelism with more than one rank.
int communicators(const Job& job) {
  const workloads::Parallel& p = job.workload.parallel;
  const std::array ranks{p.tp, p.cp, p.pp, p.dp, p.ep};
  return static_cast<int>(std::ranges::count_if(ranks, [](int n) { return n > 1; }));
}

}  // namespace

MemoryBytes held_all_the_time(const Job& job, const workloads::StaticMemory& tensors) {
  MemoryBytes held;
  held[MemoryUse::weights] = tensors.weights;
  held[MemoryUse::gradients] = tensors.gradients;
  held[MemoryUse::optimizer] = tensors.optimizer;
  held[MemoryUse::temporary] = tensors.temporary;
  held[MemoryUse::framework] = job.software.memory.context_bytes + communicators(job) * job.software.memory.communicator_bytes;
  return held;
}

double usable_bytes(const Gpu& gpu) { return gpu.memory_bytes - driver_bytes; }

void add_cache(const Job& job, RankMemory& memory) {
  memory.cached_bytes = job.software.memory.fragmentation * memory.tensor_bytes();
  memory.stuck_bytes = stuck_share * memory.cached_bytes;
}

}  // namespace rehearse::sim

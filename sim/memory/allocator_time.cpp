#include "sim/memory/allocator_time.hpp"

#include <algorithm>

namespace rehearse::sim {

int ranks_in_step(const workloads::Parallel& parallel) { return parallel.tp * parallel.cp; }

double retaking_s(const Job& job, double retaken_bytes) {
  return ranks_in_step(job.workload.parallel) * retaken_bytes / job.system.gpu.retaking_bytes_per_s;
}

double longest_retaking_s(const Job& job, const MemoryResult& memory) {
  double longest_s = 0;
  for (const RankMemory& rank : memory.ranks) longest_s = std::max(longest_s, retaking_s(job, rank.retaken_bytes));
  return longest_s;
}

double add_allocator_time(const Job& job, StepResult& step) {
  const double longest_s = longest_retaking_s(job, step.memory);
  if (longest_s == 0) return 0;
  for (std::size_t i = 0; i < step.ranks.size(); ++i) {
    const double own_s = retaking_s(job, step.memory.ranks.at(i).retaken_bytes);
    step.ranks[i].phases[Phase::allocator] += own_s;
    step.ranks[i].phases[Phase::bubble] += longest_s - own_s;
  }
  lengthen(step, longest_s);
  return longest_s;
}

}  // namespace rehearse::sim

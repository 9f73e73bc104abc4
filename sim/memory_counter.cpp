#include "sim/memory_counter.hpp"

#include <algorithm>

namespace rehearse::sim {

const config::Names<MemoryCounter>& memory_counters() {
  static const config::Names<MemoryCounter> names{
      {"allocated", MemoryCounter::allocated}, {"reserved", MemoryCounter::reserved}, {"nvidia-smi", MemoryCounter::nvidia_smi}};
  return names;
}

const config::Names<MemoryTime>& memory_times() {
  static const config::Names<MemoryTime> names{{"later", MemoryTime::later}, {"first", MemoryTime::first}, {"update", MemoryTime::update}};
  return names;
}

double counted_bytes(const RankMemory& memory, MemoryCounter counter) {
  if (counter == MemoryCounter::nvidia_smi) return memory.device_bytes();
  return memory.tensor_bytes() + (counter == MemoryCounter::reserved ? memory.cached_bytes : 0);
}

double counted_bytes(const MemoryResult& memory, MemoryCounter counter) {
  double most = 0;
  for (const RankMemory& rank : memory.ranks) most = std::max(most, counted_bytes(rank, counter));
  return most;
}

}  // namespace rehearse::sim

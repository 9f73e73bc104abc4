// How many sequences and tokens an engine takes at most where a job does not say: by the GPU's memory, and by its attention replicas.
#include <algorithm>
#include <cctype>
#include <string>

#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

namespace {

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

}  // namespace

bool settle_limits(Pool& pool, const Gpu& gpu) {
  PoolLimits limits = pool.usual_limits;
  const auto holds = [&](const MemoryLimits& some) {
    const auto named = [&](const std::string& name) { return in_lower_case(gpu.name).find(in_lower_case(name)) != std::string::npos; };
    return gpu.memory_bytes < some.below_bytes || std::ranges::any_of(some.gpus, named);
  };
  bool of_gpu = false;
  if (const auto found = std::ranges::find_if(pool.habits.by_memory, holds); found != pool.habits.by_memory.end()) {
    if (found->sequences > 0) limits.sequences = found->sequences;
    if (found->tokens > 0) limits.tokens = found->tokens;
    of_gpu = (found->sequences > 0 && pool.limits.sequences == 0) || (found->tokens > 0 && pool.limits.tokens == 0);
  }
  if (pool.habits.divides_tokens) limits.tokens = std::max(1, limits.tokens / pool.plan.dp);
  pool.habits.sequences = pool.limits.sequences > 0 ? pool.limits.sequences : limits.sequences;
  pool.habits.tokens = pool.limits.tokens > 0 ? pool.limits.tokens : limits.tokens;
  return of_gpu;
}

}  // namespace rehearse::sim

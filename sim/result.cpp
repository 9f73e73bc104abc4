#include "sim/result.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace rehearse::sim {

std::string_view name_of(RankAftermath::End end) {
  constexpr std::array<std::string_view, 3> names{"dead", "waiting", "done"};
  return names.at(static_cast<std::size_t>(end));
}

double MemoryBytes::total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

double RankMemory::device_bytes() const { return std::max(needed_bytes(), std::min(peak_bytes() + cached_bytes, capacity_bytes)); }

bool MemoryResult::fits() const { return std::ranges::all_of(ranks, &RankMemory::fits) && host.fits(); }

const RankMemory* MemoryResult::fullest() const {
  const auto it = std::ranges::max_element(ranks, {}, &RankMemory::needed_bytes);
  return it == ranks.end() ? nullptr : &*it;
}

double PhaseTimes::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

void add_means(StepResult& result) {
  MeanPhases mean;
  for (const RankResult& rank : result.ranks) mean.add(rank.phases, rank.ranks);
  result.mean = mean.mean();
  const double busy_s = result.step_s - result.mean[Phase::bubble];
  result.bubble_share = busy_s > 0 ? result.mean[Phase::bubble] / busy_s : 0;
}

void lengthen(StepResult& result, double by_s) {
  const double before_s = result.step_s;
  result.step_s += by_s;
  for (double& seconds : result.step_seconds) seconds += by_s;
  for (double* rate : {&result.tokens_per_s, &result.tokens_per_s_per_gpu, &result.model_flops_per_gpu_per_s, &result.mfu})
    *rate *= before_s / result.step_s;
  add_means(result);
}

void finish(StepResult& result, double tokens, double model_flops, int gpus, double peak_flops_per_s) {
  if (!(result.step_s > 0) || result.ranks.empty() || gpus < 1) throw std::logic_error("a step without duration, ranks or GPUs");
  add_means(result);
  result.tokens_per_s = tokens / result.step_s;
  result.tokens_per_s_per_gpu = result.tokens_per_s / gpus;
  result.model_flops_per_gpu_per_s = model_flops / (gpus * result.step_s);
  result.mfu = result.model_flops_per_gpu_per_s / peak_flops_per_s;
}

}  // namespace rehearse::sim

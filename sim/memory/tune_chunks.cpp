#include "sim/memory/tune_chunks.hpp"

#include "sim/memory/predicted.hpp"

namespace rehearse::sim {

Job tuned(Job job) {
  workloads::ExpertPlan& plan = job.workload.experts;
  if (!job.workload.model.moe || plan.chunks != 0) return job;
  const auto layers = static_cast<std::size_t>(job.workload.model.layers) + static_cast<std::size_t>(job.workload.model.mtp);
  std::vector<int> chosen(layers, 0);
  for (const int chunks : plan.thresholds) {
    plan.layer_chunks.assign(layers, chunks);  // a layer's chunks are its own affair: they change what it needs while it is at work
    const std::vector<bool> fit = expert_layers_that_fit(job);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      if (chosen[layer] == 0 && fit[layer]) chosen[layer] = chunks;
    }
  }
  for (int& chunks : chosen) {
    if (chunks == 0) chunks = plan.thresholds.back();
  }
  plan.layer_chunks = std::move(chosen);
  return job;
}

}  // namespace rehearse::sim

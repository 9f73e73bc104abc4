#include "sim/report/training_cost.hpp"

#include <cmath>

namespace rehearse::sim {

TrainingCost training_cost(const Job& job, double price_per_gpu_hour) {
  const workloads::Workload& workload = job.workload;
  const double all = workloads::step_flops_per_sequence(workload, false);
  TrainingCost cost;
  cost.gpus = job.system.gpus;
  cost.price_per_gpu_hour = price_per_gpu_hour;
  if (all > 0) cost.causal_share = workloads::step_flops_per_sequence(workload, true) / all;
  const TrainingLength& training = job.whole.training;
  const double tokens_per_step = static_cast<double>(workload.batch.global) * workload.batch.sequence;
  if (training.steps > 0) cost.steps = static_cast<double>(training.steps);
  if (training.tokens > 0) cost.steps = std::ceil(training.tokens / tokens_per_step);
  if (!cost.steps) cost.time_s = training.time_s;
  return cost;
}

}  // namespace rehearse::sim

// What follows from the time of a step: MFU with causal attention counted half, and what the whole training takes where its length is
// known.
#pragma once

#include <cmath>
#include <optional>

#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

struct TrainingCost {
  double causal_share = 1;  // of the model FLOPs that MFU counts, those below the diagonal of attention and all others
  // Of `training.tokens` or `training.steps`, without failures and checkpoints (`rehearse run` has those); nothing where neither is given.
  std::optional<double> steps;
  double time_s = 0;  // of `training.time` instead, in which so many whole steps fit
  int gpus = 0;
  double price_per_gpu_hour = 0;  // 0: none given

  [[nodiscard]] bool known() const { return steps || time_s > 0; }
  [[nodiscard]] double steps_of(const StepResult& result) const { return steps ? *steps : std::floor(time_s / result.step_s); }
  [[nodiscard]] double seconds(const StepResult& result) const { return steps ? *steps * result.step_s : time_s; }
  [[nodiscard]] double gpu_hours(const StepResult& result) const { return seconds(result) * gpus / 3600; }
};
[[nodiscard]] TrainingCost training_cost(const Job& job, double price_per_gpu_hour = 0);

}  // namespace rehearse::sim

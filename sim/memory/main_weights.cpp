#include "sim/memory/main_weights.hpp"

#include <numeric>

namespace rehearse::sim {

MainWeights::MainWeights(const TrainedStage& stage, const std::vector<double>& own, AllocatorDevice& device)
    : RankWeights(stage),
      stage_(stage),
      own_(own),
      device_(device),
      weight_(bytes_of(stage.workload.precision.weights)),
      gradient_(bytes_of(stage.workload.precision.gradients)),
      state_(bytes_of(stage.workload.precision.optimizer)) {}

void MainWeights::build() {
  for (const double size : own_) device_.take(size * weight_);
  if (!narrow()) device_.take(std::accumulate(own_.begin(), own_.end(), 0.0) * gradient_);
  if (weight_ >= state_) return;
  for (const double size : own_) {
    Block* copy = device_.take(size * weight_);
    device_.take(size * state_);
    device_.give(copy);
  }
}

// Later micro-batches are added to what the first made.
void MainWeights::add_gradient(Block* gradient, double /*bytes*/) {
  if (narrow() && first_) {
    gradients_.push_back(gradient);
  } else {
    device_.give(gradient);
  }
}

void MainWeights::update(bool first_step) {
  if (narrow() && stage_.workload.parallel.dp > 1) {
    Block* joined = device_.take(std::accumulate(own_.begin(), own_.end(), 0.0) * gradient_);
    device_.give(joined);
  }
  if (first_step && narrow() && stage_.habits.main_gradients) {
    for (const double size : own_) device_.take(size * state_);
  }
  if (first_step) take_moments(own_, bytes_of(stage_.workload.precision.moments), device_);
  device_.give(gradients_);
}

}  // namespace rehearse::sim

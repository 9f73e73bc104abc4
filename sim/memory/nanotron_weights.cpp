#include "sim/memory/nanotron_weights.hpp"

#include <numeric>

namespace rehearse::sim {
namespace {

constexpr double bucket_bytes = 25 * 1024 * 1024;  // ddp_bucket_cap_mb of ModelArgs in src/nanotron/config/config.py

double parameters_in(const std::vector<double>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), 0.0); }

}  // namespace

NanotronWeights::NanotronWeights(const TrainedStage& stage, const std::vector<double>& own, int shards, AllocatorDevice& device)
    : RankWeights(stage), stage_(stage), own_(own), device_(device), shards_(shards), weight_(bytes_of(stage.workload.precision.weights)) {}

void NanotronWeights::build() {
  const workloads::Workload& workload = stage_.workload;
  for (const double size : stage_.parameters) device_.take(size * weight_);
  if (workload.optimizer.zero_stage == 0 && workload.parallel.dp > 1) take_buckets();
  device_.take(parameters_in(stage_.parameters) * bytes_of(workload.precision.gradients));
  device_.take(parameters_in(own_) * bytes_of(workload.precision.optimizer));
}

// Of DDP: whole tensors, last ones first, until a bucket is full.
void NanotronWeights::take_buckets() {
  double bucket = 0;
  for (std::size_t i = stage_.parameters.size(); i-- > 0;) {
    bucket += stage_.parameters[i] * weight_;
    if (bucket < bucket_bytes && i > 0) continue;
    device_.take(bucket);
    bucket = 0;
  }
}

void NanotronWeights::update(bool first_step) {
  if (first_step) take_moments(own_, bytes_of(stage_.workload.precision.moments), device_);
  if (shards_ > 1) gather_weights();
}

// all_gather_coalesced: the flat piece, one of every rank, and what NCCL gathers into.
void NanotronWeights::gather_weights() {
  const double piece = parameters_in(own_) * weight_;
  std::vector<Block*> flat;
  for (int i = 0; i <= shards_; ++i) flat.push_back(device_.take(piece));
  flat.push_back(device_.take(piece * shards_));
  device_.give(flat);
}

}  // namespace rehearse::sim

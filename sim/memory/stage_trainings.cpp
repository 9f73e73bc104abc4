#include "sim/memory/stage_trainings.hpp"

#include <algorithm>
#include <utility>

#include "config/threads.hpp"

namespace rehearse::sim {
namespace {

constexpr int most_shards = 4;  // each is a training of its own

// PyTorch: getChosenWorkspaceSize in aten/src/ATen/cuda/CublasHandlePool.cpp: 32 MiB on Hopper and, since February 2026 (pull request
// 175344), Blackwell, elsewhere 4096:2:16:8. Transformer Engine (get_cublas_workspace_size_bytes): 32 MiB and 1 KiB on both, elsewhere 4
// MiB. Of chips with products in 8 bits Ada's are elsewhere: those have none in 4 bits, and no HBM.
Workspaces blas_workspaces(const Gpu& gpu) {
  constexpr double ada_bytes_per_s = 1.1e12;  // at most (RTX 4090: 1.008)
  constexpr double kib = 1024;
  if (gpu.vendor != "nvidia") return {};
  const auto multiplies = [&](workloads::DType type) { return gpu.peak_flops_per_s.contains(type); };
  const bool hopper = multiplies(workloads::DType::fp8) && gpu.memory_bytes_per_s > ada_bytes_per_s;
  if (hopper || multiplies(workloads::DType::fp4)) return {32 * 1024 * kib, (32 * 1024 + 1) * kib};
  return {(2 * 4096 + 8 * 16) * kib, 4096 * kib};
}

void keep_fuller(const AllocatorPeaks& peaks, AllocatorPeaks& most) {
  if (peaks.reserved > most.reserved) most = peaks;
}

}  // namespace

TriedStage::TriedStage(const Job& job, const workloads::Compiled& compiled, int stage, int expert_rank, int step)
    : what(job.workload, job.system.software.memory.habits, stage, compiled.stages[static_cast<std::size_t>(stage)],
           blas_workspaces(job.system.gpu), expert_rank, step) {
  const int shards = job.workload.optimizer.zero_stage > 0 ? compiled.sync.shard_ranks : 1;
  const int tried = std::min(shards, most_shards);
  for (int i = 0; i < tried; ++i) {
    std::vector<double> own = parameters_of_shard(what, tried == 1 ? 0 : i * (shards - 1) / (tried - 1), shards);
    if (std::ranges::find(pieces, own) == pieces.end()) pieces.push_back(std::move(own));
  }
}

AllocatorPeaks TriedStage::fullest(double device_bytes) const {
  AllocatorPeaks most;
  for (const std::vector<double>& own : pieces) {
    const AllocatorPeaks peaks = trained(what, own, device_bytes);
    if (peaks.out_of_memory) return peaks;
    keep_fuller(peaks, most);
  }
  return most;
}

StageTrainings::StageTrainings(const std::map<int, TriedStage>& stages, unsigned threads) {
  for (const auto& [stage, tried] : stages) {
    for (const std::vector<double>& own : tried.pieces) all_.push_back({stage, &tried.what, &own, {}});
  }
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, all_.size()); ++i) others_.push_back(config::beside([this] { work(); }));
}

void StageTrainings::work() {
  try {
    for (std::size_t i = next_++; i < all_.size(); i = next_++) all_[i].peaks = trained(*all_[i].what, *all_[i].own, unlimited);
  } catch (...) {
    const std::scoped_lock lock(one_at_a_time_);
    error_ = std::current_exception();
  }
}

std::map<int, AllocatorPeaks> StageTrainings::finish() {
  work();
  others_.clear();
  if (error_) std::rethrow_exception(error_);
  std::map<int, AllocatorPeaks> fullest;
  for (const One& one : all_) keep_fuller(one.peaks, fullest[one.stage]);
  return fullest;
}

}  // namespace rehearse::sim

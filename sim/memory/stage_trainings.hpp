// The trainings of the ranks of stages: each stage with the pieces of the optimizer that its ranks may have.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/memory/allocator_training.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// A stage and the distinct pieces of the optimizer that are tried on it: at most four, evenly spread. Job parts must outlive it.
struct TriedStage {
  // Of a model with experts, which ranks of a group: as TrainedStage.
  TriedStage(const Job& job, const workloads::Compiled& compiled, int stage, int expert_rank = 0, int step = 0);

  // Of the rank that reserves most on a GPU with device_bytes for tensors; of the first that runs out of memory.
  [[nodiscard]] AllocatorPeaks fullest(double device_bytes) const;

  TrainedStage what;
  std::vector<std::vector<double>> pieces;
};

// All of them on a GPU without end, on several threads from construction on. The stages must outlive it and stay as they are.
class StageTrainings {
 public:
  static constexpr double unlimited = 1e15;  // bytes; no GPU is that large

  StageTrainings(const std::map<int, TriedStage>& stages, unsigned threads);

  // Of each stage the fullest rank. The caller helps until all is done.
  [[nodiscard]] std::map<int, AllocatorPeaks> finish();

 private:
  struct One {
    int stage;
    const TrainedStage* what;
    const std::vector<double>* own;
    AllocatorPeaks peaks;
  };

  void work();

  std::vector<One> all_;
  std::atomic<std::size_t> next_ = 0;
  std::exception_ptr error_;
  std::mutex one_at_a_time_;
  std::vector<std::jthread> others_;  // last: they use the rest
};

}  // namespace rehearse::sim

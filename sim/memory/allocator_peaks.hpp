// What PyTorch's allocator holds of a rank's GPU in training: the rank's own sequence of tensors, run through the allocator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

struct AllocatorPeaks {
  double allocated = 0;       // torch.cuda.max_memory_allocated
  double reserved = 0;        // torch.cuda.max_memory_reserved
  std::uint64_t retries = 0;  // times that all free segments were given back
  bool out_of_memory = false;
  double retaken = 0;             // of a step: bytes taken from the device again, where free segments had to be given back
  double reserved_by_update = 0;  // the most since the last backward ended: less where segments were given back on the way
};

// Of the rank of a stage that reserves most, over model, optimizer and three steps, on a GPU with device_bytes left for tensors. Nothing
// where the stack's order of tensors is not known (unit_tensors.hpp).
//
// Steps have at most 2 pp micro-batches here: what follows repeats the same tensors; with uneven routing, where it does not, at most 64 (or
// 2 pp, if more). Ranks differ by the part of the optimizer that they
// shard; at most four, evenly spread, are tried.
[[nodiscard]] std::optional<AllocatorPeaks> allocator_peaks(const Job& job, int stage, double device_bytes);

// The step with the memory of AllocatorTrainings, and with the time that the allocator takes where it is full (allocator_time.hpp).
[[nodiscard]] StepResult with_allocator(const Job& job, const workloads::Compiled& compiled, StepResult step);
[[nodiscard]] StepResult with_allocator(const Job& job, StepResult step);

// Replaces the fitted share of cache by what the allocator keeps, where that is known: without a limit, and whether it must be kept when
// the GPU's memory is one; in results of the same job, one after another: each stage is trained once for all of them. Some trainings of a
// few steps per stage: not for searches.
class AllocatorTrainings {
 public:
  // What it is given must outlive it.
  explicit AllocatorTrainings(const Job& job);
  AllocatorTrainings(const Job& job, const workloads::Compiled& compiled);
  ~AllocatorTrainings();
  AllocatorTrainings(const AllocatorTrainings&) = delete;
  AllocatorTrainings& operator=(const AllocatorTrainings&) = delete;

  // Begins with every stage, on other threads (no fork before add_to); add_to waits for it. With uneven routing with none: which rank of
  // a stage is trained is known in add_to.
  void begin();
  void add_to(MemoryResult& memory);
  // As with_allocator(); the seconds that the step is longer.
  double add_to(StepResult& step);

 private:
  struct Impl;
  void train_on(const workloads::Compiled* known);  // none where the order of the job's own tensors is not
  const Job& job_;
  std::unique_ptr<const workloads::Compiled> own_;
  std::unique_ptr<Impl> impl_;  // none where the order of tensors is not known
};

}  // namespace rehearse::sim

// What it costs a step that memory is full: PyTorch's allocator gives free segments back, which waits for the GPU, and asks the device for
// them again, in every micro-batch. How many bytes that are says the allocator (RankMemory::retaken_bytes); their time is so many at the
// rate of the GPU's `retaking`, once for each rank that works in step with the others: those of tensor and context parallelism, who
// exchange activations within every layer; no two of them are held up at the same time. Of nanotron's fitted half the four steps that
// retake memory take 24, 32, 47 and 54 ms longer for each GiB, with 16, 16, 32 and 32 ranks in step: 1.5, 2.0, 1.5 and 1.7 for each of
// these. ZeRO-3 and experts' exchanges count no ranks: fms-fsdp's 70B on 96 GPUs would be 31 % too slow in place of 2 (docs/memory.md).
#pragma once

#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Ranks of which none goes on to its next layer before the others have come to theirs.
[[nodiscard]] int ranks_in_step(const workloads::Parallel& parallel);

// Seconds of a step.
[[nodiscard]] double retaking_s(const Job& job, double retaken_bytes);
// Of the rank that takes longest, for which the others wait.
[[nodiscard]] double longest_retaking_s(const Job& job, const MemoryResult& memory);

// Makes the step longer by what its memory says, as its allocator phase; stages that have less of it have a bubble more. The seconds.
double add_allocator_time(const Job& job, StepResult& step);

}  // namespace rehearse::sim

// What can be measured of a step, and what a prediction says about it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// The first is the one that errors are first looked at in.
enum class Metric { step_s, tokens_per_s_per_gpu, samples_per_s, forward_ms, backward_ms, peak_memory_gib, ettr, failures };

[[nodiscard]] std::string_view name_of(Metric metric);
[[nodiscard]] std::vector<Metric> all_metrics();

using Metrics = std::map<Metric, double>;

// What a source's peak of memory counts: live tensors (torch.cuda.max_memory_allocated), what the allocator holds
// (max_memory_reserved), or all of the device that is taken (nvidia-smi).
enum class MemoryCounter { allocated, reserved, nvidia_smi };
[[nodiscard]] double counted_bytes(const RankMemory& memory, MemoryCounter counter);

// What follows from the time of a step.
[[nodiscard]] Metrics metrics_of_step(const Job& job, double step_s);

// All of `wanted` that the formulas can say: also the passes of a single stage, which have no step of their own.
[[nodiscard]] Metrics predicted_metrics(const Job& job, const Metrics& wanted, MemoryCounter counter = MemoryCounter::allocated);

// Whether the job fits, by formula; where that is close, the allocator is run as well (sim/memory/allocator_peaks).
[[nodiscard]] bool said_to_fit(const Job& job);

// Predicted over measured, minus one.
[[nodiscard]] double relative_error(double predicted, double measured);

}  // namespace rehearse::sim

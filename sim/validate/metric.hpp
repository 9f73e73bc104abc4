// What can be measured of a step, and what a prediction says about it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/job/job.hpp"
#include "sim/memory_counter.hpp"
#include "sim/result.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// The first is the one that errors are first looked at in.
enum class Metric {
  step_s,
  tokens_per_s_per_gpu,
  samples_per_s,
  passes_s,
  forward_ms,
  backward_ms,
  peak_memory_gib,
  ettr,
  failures,
  // Of a serving job (docs/serving.md): ttft_ms and tpot_ms are means.
  ttft_ms,
  ttft_mean_ms,
  ttft_p50_ms,
  ttft_p90_ms,
  ttft_p99_ms,
  tpot_ms,
  tpot_mean_ms,
  tpot_p50_ms,
  tpot_p90_ms,
  tpot_p99_ms,
  itl_mean_ms,
  itl_p50_ms,
  itl_p90_ms,
  itl_p99_ms,
  e2e_mean_ms,
  e2e_p50_ms,
  e2e_p90_ms,
  e2e_p99_ms,
  kv_transfer_ms,
  output_tokens_per_s,
  input_tokens_per_s_per_gpu,
  output_tokens_per_s_per_gpu,
  makespan_s
};

[[nodiscard]] std::string_view name_of(Metric metric);
[[nodiscard]] std::vector<Metric> all_metrics();

using Metrics = std::map<Metric, double>;

// What follows from the time of a step.
[[nodiscard]] Metrics metrics_of_step(const Job& job, double step_s);

// What the formulas say about a job: each worked out once, when it is first asked for.
class Predicted {
 public:
  // Must outlive this.
  explicit Predicted(const Job& job) : job_(job) {}

  // By the formula alone, as a search has it.
  [[nodiscard]] const StepResult& step();
  // What the allocator takes of a step where memory is full (sim/memory/allocator_time), which step() has not.
  [[nodiscard]] double allocator_s();
  // All of `wanted` that the formulas can say: also the passes of a single stage, which have no step of their own. Throws
  // std::invalid_argument where the memory was read on a stage that the job lacks.
  [[nodiscard]] Metrics metrics(const Metrics& wanted, const MemoryReading& reading = {});
  // Whether the job fits; where that is close, the allocator is run as well (sim/memory/allocator_peaks).
  [[nodiscard]] bool fits();
  // What the fullest GPU needs over what it has, by formula alone: what a search decides by.
  [[nodiscard]] double needed_share();

 private:
  [[nodiscard]] const workloads::Compiled& compiled();
  [[nodiscard]] const MemoryResult& memory();
  [[nodiscard]] const MemoryResult& with_allocator();
  // Of the optimizer on a rank of the stage.
  [[nodiscard]] double moments_bytes(int stage);
  void add_step(const Metrics& wanted, const MemoryReading& reading, Metrics& metrics);

  const Job& job_;
  std::optional<workloads::Compiled> compiled_;
  std::optional<StepResult> step_;
  std::optional<MemoryResult> memory_, with_allocator_;
};

// Predicted over measured, minus one.
[[nodiscard]] double relative_error(double predicted, double measured);

}  // namespace rehearse::sim

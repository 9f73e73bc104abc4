#include "sim/validate/metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/analytic/predict.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/allocator_time.hpp"
#include "sim/memory/predicted.hpp"

namespace rehearse::sim {
namespace {

constexpr std::array<std::pair<Metric, std::string_view>, 32> names{{{Metric::step_s, "step_s"},
                                                                     {Metric::tokens_per_s_per_gpu, "tokens_per_s_per_gpu"},
                                                                     {Metric::samples_per_s, "samples_per_s"},
                                                                     {Metric::passes_s, "passes_s"},
                                                                     {Metric::forward_ms, "forward_ms"},
                                                                     {Metric::backward_ms, "backward_ms"},
                                                                     {Metric::peak_memory_gib, "peak_memory_gib"},
                                                                     {Metric::ettr, "ettr"},
                                                                     {Metric::failures, "failures"},
                                                                     {Metric::ttft_ms, "ttft_ms"},
                                                                     {Metric::ttft_mean_ms, "ttft_mean_ms"},
                                                                     {Metric::ttft_p50_ms, "ttft_p50_ms"},
                                                                     {Metric::ttft_p90_ms, "ttft_p90_ms"},
                                                                     {Metric::ttft_p99_ms, "ttft_p99_ms"},
                                                                     {Metric::tpot_ms, "tpot_ms"},
                                                                     {Metric::tpot_mean_ms, "tpot_mean_ms"},
                                                                     {Metric::tpot_p50_ms, "tpot_p50_ms"},
                                                                     {Metric::tpot_p90_ms, "tpot_p90_ms"},
                                                                     {Metric::tpot_p99_ms, "tpot_p99_ms"},
                                                                     {Metric::itl_mean_ms, "itl_mean_ms"},
                                                                     {Metric::itl_p50_ms, "itl_p50_ms"},
                                                                     {Metric::itl_p90_ms, "itl_p90_ms"},
                                                                     {Metric::itl_p99_ms, "itl_p99_ms"},
                                                                     {Metric::e2e_mean_ms, "e2e_mean_ms"},
                                                                     {Metric::e2e_p50_ms, "e2e_p50_ms"},
                                                                     {Metric::e2e_p90_ms, "e2e_p90_ms"},
                                                                     {Metric::e2e_p99_ms, "e2e_p99_ms"},
                                                                     {Metric::kv_transfer_ms, "kv_transfer_ms"},
                                                                     {Metric::output_tokens_per_s, "output_tokens_per_s"},
                                                                     {Metric::input_tokens_per_s_per_gpu, "input_tokens_per_s_per_gpu"},
                                                                     {Metric::output_tokens_per_s_per_gpu, "output_tokens_per_s_per_gpu"},
                                                                     {Metric::makespan_s, "makespan_s"}}};

constexpr double ms_per_s = 1e3;
constexpr double bytes_per_gib = 1024.0 * 1024 * 1024;

Metrics pass_metrics(const Job& job, const workloads::Compiled& compiled) {
  const PassTimes passes = predict_passes(job, compiled);
  return {{Metric::forward_ms, passes.forward_s * ms_per_s}, {Metric::backward_ms, passes.backward_s * ms_per_s}};
}

bool wants_step(const Metrics& wanted) {
  constexpr std::array of_step{Metric::step_s, Metric::tokens_per_s_per_gpu, Metric::samples_per_s, Metric::passes_s,
                               Metric::peak_memory_gib};
  return std::ranges::any_of(of_step, [&](Metric metric) { return wanted.contains(metric); });
}

bool wants_passes(const Metrics& wanted) { return wanted.contains(Metric::forward_ms) || wanted.contains(Metric::backward_ms); }

// Passes that are timed alone have no optimizer: neither its states nor buffers in which gradients add up, but the gradients that autograd
// makes in the type of the weights.
RankMemory without_optimizer(RankMemory memory) {
  memory.at_peak[MemoryUse::optimizer] = 0;
  memory.at_peak[MemoryUse::gradients] = memory.at_peak[MemoryUse::weights];
  return memory;
}

// Of the first step: its passes run before the optimizer has made its moments, its update after the passes' activations went.
RankMemory in_first_step(RankMemory memory, double moments) {
  MemoryBytes updated;
  for (const MemoryUse use : {MemoryUse::weights, MemoryUse::gradients, MemoryUse::optimizer, MemoryUse::framework})
    updated[use] = memory.at_peak[use];
  memory.at_peak[MemoryUse::optimizer] -= moments;
  if (updated.total() > memory.peak_bytes()) memory.at_peak = updated;
  return memory;
}

// What is still reserved of a cache of which segments were given back.
RankMemory in_update(RankMemory memory) {
  memory.cached_bytes -= memory.returned_bytes;
  return memory;
}

}  // namespace

std::string_view name_of(Metric metric) { return std::ranges::find(names, metric, &std::pair<Metric, std::string_view>::first)->second; }

std::vector<Metric> all_metrics() {
  std::vector<Metric> all;
  all.reserve(names.size());
  for (const auto& [metric, name] : names) all.push_back(metric);
  return all;
}

Metrics metrics_of_step(const Job& job, double step_s) {
  const auto& batch = job.workload.batch;
  const double samples_per_s = batch.global / step_s;
  return {{Metric::step_s, step_s},
          {Metric::samples_per_s, samples_per_s},
          {Metric::tokens_per_s_per_gpu, samples_per_s * batch.sequence / job.system.gpus}};
}

const workloads::Compiled& Predicted::compiled() {
  if (!compiled_) compiled_ = workloads::compile(job_.workload);
  return *compiled_;
}

const StepResult& Predicted::step() {
  if (!step_) step_ = predict(job_, compiled());
  return *step_;
}

const MemoryResult& Predicted::memory() {
  if (step_) return step_->memory;
  if (!memory_) memory_ = predicted_memory(job_, compiled());
  return *memory_;
}

const MemoryResult& Predicted::with_allocator() {
  if (!with_allocator_) {
    with_allocator_ = memory();
    AllocatorTrainings(job_, compiled()).add_to(*with_allocator_);
  }
  return *with_allocator_;
}

double Predicted::allocator_s() {
  constexpr double may_fill = 0.5;  // of the memory; of nanotron's runs that retake any, the emptiest needs 0.64 by the formula
  if (needed_share() < may_fill) return 0;
  return longest_retaking_s(job_, with_allocator());
}

double Predicted::moments_bytes(int stage) {
  if (job_.workload.optimizer.on_cpu) return 0;
  const workloads::Parameters& own = compiled().stages[static_cast<std::size_t>(stage)].parameters;
  return compiled().sync.updated(own) * workloads::moment_bytes_per_parameter(job_.workload, own);
}

void Predicted::add_step(const Metrics& wanted, const MemoryReading& reading, Metrics& metrics) {
  const double step_s = step().step_s + allocator_s();
  metrics.merge(metrics_of_step(job_, step_s));
  metrics[Metric::passes_s] = step_s - step().mean[Phase::optimizer];
  if (reading.stage && *reading.stage >= job_.workload.parallel.pp) {
    throw std::invalid_argument(fmt::format("memory_stage is {}, and the job has {} stages", *reading.stage, job_.workload.parallel.pp));
  }
  const bool by_allocator = reading.counter != MemoryCounter::allocated && wanted.contains(Metric::peak_memory_gib);
  const bool passes_alone = wants_passes(wanted) && !wanted.contains(Metric::step_s);
  for (const RankMemory& rank : (by_allocator ? with_allocator() : memory()).ranks) {
    if (reading.stage && rank.stage != *reading.stage) continue;
    double& most = metrics[Metric::peak_memory_gib];
    const RankMemory read = passes_alone                         ? without_optimizer(rank)
                            : reading.time == MemoryTime::first  ? in_first_step(rank, moments_bytes(rank.stage))
                            : reading.time == MemoryTime::update ? in_update(rank)
                                                                 : rank;
    most = std::max(most, counted_bytes(read, reading.counter) / bytes_per_gib);
  }
}

Metrics Predicted::metrics(const Metrics& wanted, const MemoryReading& reading) {
  Metrics metrics;
  if (wants_step(wanted)) add_step(wanted, reading, metrics);
  if (wants_passes(wanted)) metrics.merge(pass_metrics(job_, compiled()));
  std::erase_if(metrics, [&](const auto& entry) { return !wanted.contains(entry.first); });
  return metrics;
}

bool Predicted::fits() {
  constexpr double close = 0.15;  // what the allocator keeps beyond this it gives back where memory runs short (docs/memory.md)
  const bool is_close = std::ranges::any_of(
      memory().ranks, [](const RankMemory& rank) { return std::abs(rank.peak_bytes() / rank.capacity_bytes - 1) < close; });
  return (is_close ? with_allocator() : memory()).fits();
}

double Predicted::needed_share() { return sim::needed_share(memory()); }

double relative_error(double predicted, double measured) { return predicted / measured - 1; }

}  // namespace rehearse::sim

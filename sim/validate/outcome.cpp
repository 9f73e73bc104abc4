#include "sim/validate/outcome.hpp"

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "config/threads.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/job/override.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/report/expected_band.hpp"

namespace rehearse::sim {
namespace {

// The first line of what() alone: a case's reason stands in a table.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool says_granularity(const config::Node& node) {
  const auto simulation = node.find("simulation");
  return simulation && simulation->is_map() && simulation->find("granularity");
}

Job job_of(const MeasuredCase& measured_case, const ValidationOptions& options) {
  config::Node node = measured_case.job;
  for (const auto& [key, value] : options.sets) set_in_job(node, key, value, measured_case.models);
  Job job = tuned(read_job(node, measured_case.id, measured_case.models));
  // Without a pipeline there are few operations, and whole passes would lose what FSDP overlaps layer by layer.
  if (!says_granularity(node) && job.workload.parallel.pp > 1) job.system.simulation.granularity = Granularity::stage;
  return job;
}

// A number that cannot be compared is a failure of the model, not an error of so many percent.
void refuse_nonsense(const Metrics& metrics) {
  for (const auto& [metric, value] : metrics) {
    if (!std::isfinite(value) || value < 0)
      throw std::runtime_error(std::string(name_of(metric)) + " came out as " + std::to_string(value));
  }
}

Metrics simulated_metrics(const Job& job, const Metrics& wanted, double allocator_s) {
  Metrics metrics = metrics_of_step(job, simulate_in_child(job).step_s + allocator_s);
  std::erase_if(metrics, [&](const auto& entry) { return !wanted.contains(entry.first); });
  refuse_nonsense(metrics);
  return metrics;
}

void add_throughput(const MeasuredCase& measured_case, const Job& job, double step_s, Outcome& outcome) {
  const Metrics& measured = measured_case.measured;
  const auto said = [&](Metric metric) { return measured.contains(metric) ? measured.at(metric) : 0; };
  const workloads::Batch& batch = job.workload.batch;
  const double tokens = static_cast<double>(batch.global) * batch.sequence;
  outcome.sweep = measured_case.sweep;
  outcome.predicted_tokens_per_s = tokens / step_s;
  if (said(Metric::step_s) > 0) {
    outcome.measured_tokens_per_s = tokens / said(Metric::step_s);
  } else if (said(Metric::tokens_per_s_per_gpu) > 0) {
    outcome.measured_tokens_per_s = said(Metric::tokens_per_s_per_gpu) * job.system.gpus;
  } else {
    outcome.measured_tokens_per_s = said(Metric::samples_per_s) * batch.sequence;
  }
}

// Those that were measured; a formula may know fewer of them.
Metrics wanted_of(const JobKind::Measures& measures, const Metrics& wanted) {
  Metrics metrics;
  for (const auto& [metric, value] : wanted) {
    if (const auto found = measures.find(std::string(name_of(metric))); found != measures.end()) metrics[metric] = found->second;
  }
  refuse_nonsense(metrics);
  return metrics;
}

void run_kind(const std::string& kind, const MeasuredCase& measured_case, const ValidationOptions& options, Outcome& outcome) {
  config::Node node = measured_case.job;
  for (const auto& [key, value] : options.sets) node.set(key, value);
  const JobKind& other = JobKindRegistry::get(kind);
  outcome.predicted = wanted_of(other.predicted_measures(measured_case.id, node, measured_case.models), measured_case.measured);
  if (!options.simulate) return;
  outcome.simulated = wanted_of(other.simulated_measures(measured_case.id, node, measured_case.models), measured_case.measured);
}

void run(const MeasuredCase& measured_case, const ValidationOptions& options, Outcome& outcome) {
  if (const std::string kind = kind_of(measured_case.job); !kind.empty()) return run_kind(kind, measured_case, options, outcome);
  const Job job = job_of(measured_case, options);
  outcome.gpu = job.system.gpu.name;
  outcome.software = job.system.software.name;
  outcome.precision = name_of(job.workload.precision.compute);
  outcome.experts = job.workload.model.moe.has_value();
  outcome.gpus = job.system.gpus;
  Predicted predicted(job);
  if (!measured_case.sweep.empty()) add_throughput(measured_case, job, predicted.step().step_s, outcome);
  outcome.predicted = predicted.metrics(measured_case.measured, measured_case.memory);
  if (measured_case.fits) {
    outcome.said_to_fit = predicted.fits();
    outcome.needed_share = predicted.needed_share();
    if (!measured_case.sweep.empty()) {
      const MostNeed most = MeasuredErrors().most_need(job);
      outcome.surely_fits = *outcome.said_to_fit && outcome.needed_share * most.factor <= 1;
      outcome.chance = most.chance(outcome.needed_share);
    }
  }
  refuse_nonsense(outcome.predicted);
  if (options.simulate) outcome.simulated = simulated_metrics(job, measured_case.measured, predicted.allocator_s());
}

}  // namespace

Outcome run_case(const MeasuredCase& measured_case, const ValidationOptions& options) {
  Outcome outcome;
  outcome.id = measured_case.id;
  outcome.group = measured_case.group;
  outcome.source = measured_case.source;
  outcome.inferred = measured_case.inferred;
  outcome.measured = measured_case.measured;
  outcome.ran = measured_case.fits;
  outcome.counter = measured_case.memory.counter;
  try {
    run(measured_case, options, outcome);
  } catch (const config::InputError& error) {
    outcome.failed = error.message();
  } catch (const std::exception& error) {
    outcome.failed = first_line(error.what());
  }
  return outcome;
}

std::vector<Outcome> run_cases(const std::vector<MeasuredCase>& cases, const ValidationOptions& options,
                               const std::function<void(double)>& progress) {
  std::vector<Outcome> outcomes(cases.size());
  std::atomic<std::size_t> next = 0;
  std::size_t done = 0;
  std::mutex one_at_a_time;
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) {
      outcomes[i] = run_case(cases[i], options);
      const std::scoped_lock lock(one_at_a_time);
      ++done;
      if (progress) progress(static_cast<double>(done) / static_cast<double>(cases.size()));
    }
  };
  const unsigned threads = options.simulate ? 1 : std::thread::hardware_concurrency();  // a simulation forks
  config::on_threads(threads, work);
  return outcomes;
}

}  // namespace rehearse::sim

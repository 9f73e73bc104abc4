// Split-federated rounds: how tuning grows with the devices, and rounds on weighted media against the same through SimGrid.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/seconds.hpp"
#include "sim/federated/job.hpp"
#include "sim/federated/plan.hpp"
#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {
namespace {

Job job_of(int devices, const char* samples, const char* more, const char* solver = "auto") {
  const double rate_gbps = devices / 2000.0;
  const std::string text = fmt::format(
      "model: resnet18-cifar\n"
      "federated:\n"
      "  devices:\n"
      "    - {{name: d, count: {}, speed: {{lognormal: 20 GFLOP/s, sigma: 1}}, samples: {}, uplink: {{lognormal: {} Gbps, sigma: 1}},\n"
      "       downlink: {{lognormal: {} Gbps, sigma: 1}}, latency: 20 ms}}\n"
      "  server: {{speed: {} TFLOP/s{}}}\n"
      "  batch: 50\n"
      "simulation: {{seed: 1, solver: {}}}\n",
      devices, samples, rate_gbps, 2 * rate_gbps, devices / 10, more, solver);
  return read_job("bench", config::Node::load_text(text, "bench.yaml"), {});
}

// Ten times the devices on ten times the resources: ten times the seconds of the small one over those of the large one. 1 is linear; the
// large one may also need another deadline.
void tune_against_a_tenth(benchmark::State& state) {
  const Job small = job_of(10'000, "{uniform: [50, 500]}", ""), large = job_of(100'000, "{uniform: [50, 500]}", "");
  double small_s = 0, large_s = 0;
  for (auto _ : state) {
    small_s += seconds_of([&] {
      for (int i = 0; i < 10; ++i) benchmark::DoNotOptimize(tuned_plan(small).round_s);
    });
    large_s += seconds_of([&] { benchmark::DoNotOptimize(tuned_plan(large).round_s); });
  }
  state.counters["ratio"] = small_s / large_s;
}

// 1,000 devices, 20 batches each, on media that share in time.
void weighted_round_against_simgrid(benchmark::State& state) {
  const char* weighted = ", sharing: weighted}\n  radio: {sharing: weighted";
  const Job ours = job_of(1000, "1000", weighted), simgrid = job_of(1000, "1000", weighted, "simgrid");
  const Plan plan = tuned_plan(ours);
  double ours_s = 0, simgrid_s = 0;
  for (auto _ : state) {
    ours_s += seconds_of([&] { benchmark::DoNotOptimize(simulate_round(ours, plan).result.round_s); });
    simgrid_s += seconds_of([&] { benchmark::DoNotOptimize(simulate_round(simgrid, plan).result.round_s); });
  }
  state.counters["ratio"] = simgrid_s / ours_s;
}

BENCHMARK(tune_against_a_tenth)->Iterations(3)->Repetitions(3)->Unit(benchmark::kMillisecond);
BENCHMARK(weighted_round_against_simgrid)->Iterations(3)->Repetitions(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::federated

BENCHMARK_MAIN();

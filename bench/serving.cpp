// A deployment's requests: runs of passes as one activity against every pass as one.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/seconds.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"

namespace rehearse::sim {
namespace {

// 5,000 requests with lengths as Azure's conversations, together and apart: the same answers, from fewer events.
void runs_of_passes_against_each(benchmark::State& state, const char* pools) {
  const std::string text = std::string("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {") + pools +
                           "}\n  load: {arrivals: {poisson: 20 /s}, input: {lognormal: {median: 1020, p90: 2734}, max: 14050}, output: "
                           "{lognormal: {median: 129, p90: 424}, max: 1000}, requests: 5000}\n";
  const ServingJob job = read_serving_job(config::Node::load_text(text, "bench.yaml"), "bench");
  const Deployment deployment = deploy(job);
  const ServingSetup runs = setup_of(job, deployment);
  ServingSetup naive = runs;
  for (PoolSetup& pool : naive.pools) pool.rules.one_by_one = true;
  double runs_s = 0, naive_s = 0;
  for (auto _ : state) {
    runs_s += seconds_of([&] { benchmark::DoNotOptimize(simulate_serving(runs).end_s); });
    naive_s += seconds_of([&] { benchmark::DoNotOptimize(simulate_serving(naive).end_s); });
  }
  state.counters["ratio"] = naive_s / runs_s;
}

BENCHMARK_CAPTURE(runs_of_passes_against_each, together, "all: {role: both, instances: 4}")
    ->Iterations(3)
    ->Repetitions(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(runs_of_passes_against_each, apart, "p: {role: prefill, instances: 2}, d: {role: decode, instances: 2}")
    ->Iterations(3)
    ->Repetitions(3)
    ->Unit(benchmark::kMillisecond);

// Eight instances that take turns at 0.98 of what they carry, equal prompts: the chain of passes that `predict` settles against 20,000
// requests simulated.
void predict_against_simulation(benchmark::State& state, const char* engine, double rate_per_s) {
  const std::string text = fmt::format(
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n"
      "  pools: {{all: {{role: both, instances: 8, parallel: {{tp: 4}}, precision: {{compute: fp8, weights: fp8, kv: fp8}}}}}}\n"
      "  load: {{arrivals: {{poisson: {} /s}}, input: 2048, output: 32, requests: 20000}}\n",
      engine, rate_per_s);
  const ServingJob job = read_serving_job(config::Node::load_text(text, "bench.yaml"), "bench");
  const Deployment deployment = deploy(job);
  const ServingSetup setup = setup_of(job, deployment);
  double predicted_s = 0, simulated_s = 0;
  for (auto _ : state) {
    predicted_s += seconds_of([&] { benchmark::DoNotOptimize(predict_serving(job, deployment, 2048).result.ttft.mean_s); });
    simulated_s += seconds_of([&] { benchmark::DoNotOptimize(simulate_serving(setup).end_s); });
  }
  state.counters["ratio"] = simulated_s / predicted_s;
}

BENCHMARK_CAPTURE(predict_against_simulation, mixed, "vllm", 72.9)->Iterations(3)->Repetitions(3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_against_simulation, prompts_first, "sglang", 71.0)->Iterations(3)->Repetitions(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::sim

BENCHMARK_MAIN();

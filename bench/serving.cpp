// Of jobs that serve: runs of passes as one activity against every pass as one, the formula against the simulation, `tune` against every
// pair of plans priced by itself.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/seconds.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/tune.hpp"
#include "sim/serving/tune_formula.hpp"

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

// Of a pair of plans priced by itself: the cost of the least numbers of both that keep the promise.
double cheapest_of(const TuneSides& sides, const PoolCandidate& prompts, const PoolCandidate& decodes) {
  const TuneFormula formula(sides);
  static_cast<void>(deploy_pool(sides.job, *prompts.pool));
  static_cast<void>(deploy_pool(sides.job, *decodes.pool));
  double least = INFINITY;
  for (int decoders = 1; decoders <= sides.most(decodes); ++decoders) {
    if (!formula.keeps(formula.decodes_take(decodes, decoders))) continue;
    for (int prompters = 1; prompters <= sides.most(prompts) && formula.holds(prompts, prompters, decodes, decoders); ++prompters) {
      if (!formula.keeps(formula.apart(prompts, prompters, decodes, decoders))) continue;
      least = std::min(least, prompters * prompts.side.cost + decoders * decodes.side.cost);
      break;
    }
  }
  return least;
}

double cheapest_of_every_pair(const ServingJob& job) {
  ServingTuning counts;
  const TuneSides sides(job, counts);
  double least = INFINITY;
  for (const Candidates& some : sides.prompts) {
    for (const Candidates& others : sides.decodes) {
      for (const PoolCandidate& prompts : some) {
        for (const PoolCandidate& decodes : others) least = std::min(least, cheapest_of(sides, prompts, decodes));
      }
    }
  }
  return least;
}

// Two kinds of GPUs, prompts of different lengths, answers apart: `tune`, in which plans share prices and bounds, against the formula of
// every pair of plans by itself. Nothing is simulated in either.
void tune_of_unlike_prompts_against_every_pair(benchmark::State& state) {
  const std::string text =
      "model: llama3-70b\n"
      "cluster: {parts: {rich: {cluster: dgx-h100-ndr400, nodes: 2}, wide: {cluster: h20-roce-4x400, nodes: 2}}, between: {bandwidth: 1.6 "
      "Tbps}}\n"
      "software: vllm\nserving:\n  pools:\n"
      "    prefill: {role: prefill, part: rich, precision: {compute: fp8, weights: fp8, kv: fp8}}\n"
      "    decode: {role: decode, part: wide, precision: {compute: fp8, weights: fp8, kv: fp8}}\n"
      "  load: {arrivals: {poisson: 8 /s}, input: {uniform: [100, 4000]}, output: 200, requests: 1000}\n"
      "  slo: {ttft: 1 s, tpot: 40 ms}\n"
      "tune: {price: {rich: 3 /h, wide: 1 /h}, tp: [1, 2, 4], sequences: [16, 32, 64, 128, 256], tokens: [512, 1024, 2048, 4096, 8192], "
      "confirm: 0}\n";
  const ServingJob job = read_serving_job(config::Node::load_text(text, "bench.yaml"), "bench");
  double tuned_s = 0, every_s = 0, tuned = INFINITY, every = INFINITY;
  for (auto _ : state) {
    tuned_s += seconds_of([&] {
      for (const TunedDeployment& one : tune_serving(job, [](double) {}).best) {
        if (one.pools.size() == 2 && !one.mixed) tuned = std::min(tuned, one.cost_per_s);
      }
    });
    every_s += seconds_of([&] { every = cheapest_of_every_pair(job); });
  }
  if (std::abs(tuned - every) > 1e-9 * every) state.SkipWithError("not the cheapest pair");
  state.counters["ratio"] = every_s / tuned_s;
}

BENCHMARK(tune_of_unlike_prompts_against_every_pair)->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::sim

BENCHMARK_MAIN();

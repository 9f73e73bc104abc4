// Whole jobs: the 54 days of Llama 3 on 16,384 GPUs with their 466 interruptions, one run and many.
#include <benchmark/benchmark.h>

#include "bench/seconds.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/wholejob/job_run.hpp"
#include "sim/wholejob/simulate_run.hpp"

namespace rehearse {
namespace {

struct FiftyFourDays {
  sim::Job job = sim::load_job({"llama3-405b-54-days", {}, {}});
  sim::WholeJobPlan plan = sim::plan_whole_job(job, sim::predict(job).step_s, "predicted");
};

void report(benchmark::State& state, const std::vector<sim::RunResult>& runs) {
  double failures = 0;
  for (const sim::RunResult& run : runs) failures += static_cast<double>(run.all_failures());
  state.counters["failures"] = failures / static_cast<double>(runs.size());
  state.counters["runs/s"] = benchmark::Counter(static_cast<double>(runs.size()), benchmark::Counter::kIsIterationInvariantRate);
}

// From the job file to the answer, without SimGrid's share.
void load_and_plan(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(FiftyFourDays().plan.training.interval);
}

sim::RunResult accounted(const sim::WholeJobPlan& plan, std::uint64_t seed) {
  sim::StepTimes steps = plan.step_times();
  sim::JobRun run(plan, steps, seed, nullptr);
  while (!run.over()) {
    static_cast<void>(run.next());
    run.pass();
  }
  return run.result();
}

// The exact account alone.
void account_alone(benchmark::State& state) {
  const FiftyFourDays days;
  std::vector<sim::RunResult> runs(1);
  for (auto _ : state) runs[0] = accounted(days.plan, 1);
  report(state, runs);
}

// Each run on a SimGrid clock in a process of its own.
void on_simgrid(benchmark::State& state) {
  const FiftyFourDays days;
  std::vector<sim::RunResult> runs;
  for (auto _ : state) runs = sim::simulate_runs(days.plan, 1, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  report(state, runs);
}

// Seconds of runs on SimGrid over those of their accounts alone.
void accounts_against_simgrid(benchmark::State& state) {
  constexpr int runs = 100;
  const FiftyFourDays days;
  double alone_s = 0, simgrid_s = 0;
  for (auto _ : state) {
    simgrid_s += processor_seconds_of([&] { benchmark::DoNotOptimize(sim::simulate_runs(days.plan, 1, runs, 1).size()); });
    alone_s += processor_seconds_of([&] {
      for (std::uint64_t seed = 1; seed <= runs; ++seed) benchmark::DoNotOptimize(accounted(days.plan, seed).wall);
    });
  }
  state.counters["ratio"] = simgrid_s / alone_s;
}

BENCHMARK(accounts_against_simgrid)->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
BENCHMARK(load_and_plan)->Unit(benchmark::kMillisecond);
BENCHMARK(account_alone)->Unit(benchmark::kMillisecond);
BENCHMARK(on_simgrid)
    ->ArgNames({"runs", "processes"})
    ->Args({1, 1})
    ->Args({100, 1})
    ->Args({100, 2})
    ->Args({1000, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse
BENCHMARK_MAIN();

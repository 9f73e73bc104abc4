// A search of the default space of llama2-70b on 1,024 GPUs (504,000 points, of which 80,000 are plans): points a second with bounds and
// without, against one another and against predict().
#include <benchmark/benchmark.h>

#include "bench/seconds.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/tune/search.hpp"

namespace rehearse {
namespace {

struct Problem {
  sim::JobRequest request{"llama2-70b-1024-a100", {}, {}};
  config::Node given = sim::given_document(request);
  sim::TuneSpec spec;
  sim::Space space{given, sim::name_of(request), spec, {}};
};

void search(benchmark::State& state, const sim::Bounds& bounds) {
  const Problem problem;
  std::uint64_t evaluated = 0, points = 0;
  for (auto _ : state) {
    const sim::Found found = sim::Search(problem.space, problem.spec, bounds).run(static_cast<int>(state.range(0)));
    evaluated += found.evaluated;
    points += found.points;
  }
  state.counters["points/s"] = benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate);
  state.counters["evaluated/s"] = benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}
void search_bounded(benchmark::State& state) { search(state, sim::Bounds{}); }
void search_exhaustive(benchmark::State& state) { search(state, sim::Bounds::none()); }

// How many times faster bounds make the search.
void bounds_against_none(benchmark::State& state) {
  const Problem problem;
  double with_s = 0, without_s = 0;
  for (auto _ : state) {
    with_s += processor_seconds_of([&] { benchmark::DoNotOptimize(sim::Search(problem.space, problem.spec, {}).run(1).evaluated); });
    without_s += processor_seconds_of(
        [&] { benchmark::DoNotOptimize(sim::Search(problem.space, problem.spec, sim::Bounds::none()).run(1).evaluated); });
  }
  state.counters["ratio"] = without_s / with_s;
}

// Seconds of a plan by predict(), over those of one that a search without bounds evaluates; the best plan with each value by predict().
void search_against_predict(benchmark::State& state) {
  const Problem problem;
  double searched_s = 0, predicted_s = 0;
  std::uint64_t evaluated = 0;
  int predicted = 0;
  for (auto _ : state) {
    sim::Found found = sim::Search(problem.space, problem.spec, {}).nothing();
    searched_s += processor_seconds_of([&] { found = sim::Search(problem.space, problem.spec, sim::Bounds::none()).run(1); });
    evaluated += found.evaluated;
    for (const auto& values : found.of_value) {
      for (const auto& best : values) {
        if (!best) continue;
        const sim::Job job = problem.space.job_of(best->point, best->dp);
        predicted_s += processor_seconds_of([&] { benchmark::DoNotOptimize(sim::predict(job).step_s); });
        ++predicted;
      }
    }
  }
  state.counters["ratio"] = (predicted_s / predicted) / (searched_s / static_cast<double>(evaluated));
}

BENCHMARK(bounds_against_none)->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
BENCHMARK(search_against_predict)->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
BENCHMARK(search_bounded)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(search_exhaustive)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

BENCHMARK_MAIN();

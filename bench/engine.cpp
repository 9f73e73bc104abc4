// How fast a step is predicted and simulated, as ratios against bare SimGrid in the same run.
//
// bare:   SimGrid alone, launching the same numbers of executions, flows and timers from completion callbacks, as many chains as there are
// ranks. engine: the same step through our executor. Each measurement runs in a child process (SimGrid allows one simulation per process);
// manual time is the simulation loop alone, in
// processor seconds where one thread does it.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>

#include "bench/bare_simgrid.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/communication_of.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024.0;
}

sim::Job largest_job() { return sim::load_job({"llama3-405b-16k-1f1b", {}, {}}); }

struct Counts {
  long executions = 0, flows = 0, timers = 0;
  int chains = 0;
};

// {processor seconds of the loop, executions, flows, timers, chains}
std::vector<double> run_engine(const sim::Job& job) {
  const sim::CommunicationModel model = sim::communication_of(job.system, job.workload);
  const workloads::Compiled compiled = sim::compiled_for_simulation(job);
  const sim::Fold fold = sim::fold(job.system, job.workload, compiled, model);
  const workloads::StepGraph graph = workloads::build_step(job.workload, compiled, fold.ranks);
  const sim::Prices prices = sim::price_graph(job.system, job.workload, model, graph);
  sim::Machine machine;
  std::vector<sim::HostIndex> hosts;
  for (std::size_t i = 0; i < graph.ranks.size(); ++i) hosts.push_back(machine.add_host(sim::contention_speeds(job.system.gpu)));
  sim::CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, graph, fold.ranks, prices, machine, hosts, &fold);
  const sim::CommPlans plans = planner.plans();
  machine.seal();
  Counts counts;
  counts.chains = static_cast<int>(graph.ranks.size());
  for (workloads::OpId id = 0; id < graph.size(); ++id) {
    const workloads::Op op = graph.op(id);
    if (op.kind == workloads::OpKind::compute) {
      counts.executions += prices.work_s[op.item] > 0 ? 1 : 0;
      continue;
    }
    for (const sim::Leg& leg : plans[op.item].legs) {
      counts.flows += leg.bytes > 0 ? 1 : 0;
      counts.timers += leg.delay_s > 0 ? 1 : 0;
    }
  }
  const double seconds = processor_seconds_of([&] {
    (void)sim::execute({job.system, graph, prices, plans, planner.port_links(), hosts}, machine, {});
  });
  return {seconds, static_cast<double>(counts.executions), static_cast<double>(counts.flows), static_cast<double>(counts.timers),
          static_cast<double>(counts.chains)};
}

// SimGrid alone: executions, flows and timers in the given proportions, one after another on every chain.
double bare_s(const Counts& counts) {
  using Kind = BareSimGrid::Kind;
  long left[] = {counts.executions, counts.flows, counts.timers};
  int turn = 0;
  const auto next = [&](std::size_t chain) -> BareSimGrid::Operation {
    turn = (turn + 1) % 3;
    for (int tries = 0; tries < 3 && left[turn] == 0; ++tries) turn = (turn + 1) % 3;
    if (left[turn] == 0) return {};
    --left[turn];
    if (turn == 2) return {Kind::timer, 1e-6};
    return {turn == 0 ? Kind::compute : Kind::flow, 1e-3 * (1 + static_cast<double>(chain) * 0.01)};
  };
  return BareSimGrid(counts.chains, false, next).run();
}

void engine_against_bare_simgrid(benchmark::State& state) {
  const sim::Job job = largest_job();
  double engine_rate = 0, bare_rate = 0;
  for (auto _ : state) {
    const std::vector<double> engine = sim::run_in_child([&] { return run_engine(job); });
    const Counts counts{static_cast<long>(engine[1]), static_cast<long>(engine[2]), static_cast<long>(engine[3]),
                        static_cast<int>(engine[4])};
    const double alone_s = sim::run_in_child([&] { return std::vector{bare_s(counts)}; }).front();
    const double activities = engine[1] + engine[2] + engine[3];
    engine_rate = activities / engine[0];
    bare_rate = activities / alone_s;
    state.SetIterationTime(engine[0]);
  }
  state.counters["engine_per_s"] = engine_rate;
  state.counters["bare_per_s"] = bare_rate;
  state.counters["ratio"] = engine_rate / bare_rate;
}
BENCHMARK(engine_against_bare_simgrid)->UseManualTime()->Unit(benchmark::kMillisecond)->Repetitions(5)->ReportAggregatesOnly();

// Operations a second of a whole simulation (folding, graph, execution, accounting, memory) against activities a second of bare SimGrid.
void step_against_bare_simgrid(benchmark::State& state, const sim::JobRequest& request) {
  const sim::Job job = sim::load_job(request);
  constexpr Counts bare{20'000, 20'000, 20'000, 64};
  double seconds = 0, operations = 0, mb = 0, alone_s = 0;
  for (auto _ : state) {
    const std::vector<double> numbers = sim::run_in_child([&] {
      const auto start = Clock::now();
      const sim::Simulation step = sim::simulate(job, {}, false);
      return std::vector<double>{since(start), static_cast<double>(step.result.activities), peak_mb()};
    });
    seconds = numbers[0];
    operations = numbers[1];
    mb = numbers[2];
    alone_s = sim::run_in_child([&] { return std::vector{bare_s(bare)}; }).front();
    state.SetIterationTime(seconds);
  }
  state.counters["operations"] = operations;
  state.counters["peak_MB"] = mb;
  state.counters["ratio"] = operations / seconds / (static_cast<double>(bare.executions + bare.flows + bare.timers) / alone_s);
}
// Every sender of tokens its own, collectives as flows; 16 of the 120 micro-batches.
BENCHMARK_CAPTURE(step_against_bare_simgrid, skewed_experts,
                  {"deepseek-v3-2048-h800", {{"batch.global", "2048"}, {"moe.routing", "{zipf: 0.6, senders: own}"}}, {}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Repetitions(3)
    ->ReportAggregatesOnly();
BENCHMARK_CAPTURE(
    step_against_bare_simgrid, stragglers,
    {"llama3-405b-16k-1f1b", {{"gpus", "1024"}, {"parallel.dp", "8"}, {"batch.global", "128"}}, {}, {"gpus 1 % slow 1.1 to 1.5"}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Repetitions(3)
    ->ReportAggregatesOnly();

// The whole simulation of the 16,384-GPU step: folding, graph, execution, accounting, timeline.
void simulate_16384_gpus(benchmark::State& state) {
  const sim::Job job = largest_job();
  double mb = 0;
  for (auto _ : state) {
    const std::vector<double> numbers = sim::run_in_child([&] {
      const auto start = Clock::now();
      (void)sim::simulate(job);
      return std::vector<double>{since(start), peak_mb()};
    });
    state.SetIterationTime(numbers[0]);
    mb = numbers[1];
  }
  state.counters["peak_MB"] = mb;
}
BENCHMARK(simulate_16384_gpus)->UseManualTime()->Unit(benchmark::kMillisecond);

void predict_16384_gpus(benchmark::State& state, const char* name) {
  const sim::Job job = sim::load_job({name, {}, {}});
  for (auto _ : state) benchmark::DoNotOptimize(sim::predict(job));
}
BENCHMARK_CAPTURE(predict_16384_gpus, one_chunk, "llama3-405b-16k-1f1b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_16384_gpus, eight_chunks, "llama3-405b-16k-h100")->Unit(benchmark::kMillisecond);

// Loading included: what `rehearse predict` does apart from printing.
void load_and_predict_16384_gpus(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(sim::predict(largest_job()));
}
BENCHMARK(load_and_predict_16384_gpus)->Unit(benchmark::kMillisecond);

// One ring all-reduce of 1 GB over all GPUs of an H100 cluster: as one flow per edge, or in every round; folded, or every member by itself.
void ring_all_reduce(benchmark::State& state, const std::string& collectives, const std::string& ranks) {
  const sim::Job job =
      sim::cluster_alone("dgx-h100-ndr400", static_cast<int>(state.range(0)),
                         {{"simulation.collectives", collectives}, {"simulation.ranks", ranks}, {"simulation.algorithm", "ring"}});
  for (auto _ : state) benchmark::DoNotOptimize(sim::run_alone(job, workloads::CollectiveKind::all_reduce, 1e9));
}
BENCHMARK_CAPTURE(ring_all_reduce, edges_all_ranks, "ring", "all")->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring_all_reduce, rounds_folded, "step", "folded")->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring_all_reduce, rounds_all_ranks, "step", "all")->Arg(512)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

BENCHMARK_MAIN();

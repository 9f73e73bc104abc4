// How fast a step is predicted and simulated, as ratios against bare SimGrid in the same run.
//
// bare:   SimGrid alone, launching the same numbers of executions, flows and timers from completion callbacks, as many chains as there are
// ranks. engine: the same step through our executor. Each measurement runs in a child process (SimGrid allows one simulation per process);
// manual time is the simulation loop alone.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

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
namespace sg4 = simgrid::s4u;

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

// {seconds of the loop, executions, flows, timers, chains}
std::vector<double> run_engine(const sim::Job& job) {
  const sim::CommunicationModel model = sim::communication_of(job.system, job.workload);
  const workloads::Compiled compiled = sim::compiled_for_simulation(job);
  const sim::Fold fold = sim::fold(job, compiled, model);
  const workloads::StepGraph graph = workloads::build_step(job.workload, compiled, fold.ranks);
  const sim::Prices prices = sim::price_graph(job, model, graph);
  sim::Machine machine;
  std::vector<sim::HostIndex> hosts;
  for (std::size_t i = 0; i < graph.ranks.size(); ++i) hosts.push_back(machine.add_host(sim::contention_speeds(job.system.gpu)));
  sim::CommPlanner planner(job, model, graph, fold.ranks, prices, machine, hosts, &fold);
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
  const auto start = Clock::now();
  (void)sim::execute({job, graph, prices, plans, planner.port_links(), hosts}, machine, {});
  return {since(start), static_cast<double>(counts.executions), static_cast<double>(counts.flows), static_cast<double>(counts.timers),
          static_cast<double>(counts.chains)};
}

// One after another on every chain: executions, flows over two links and timers in the given proportions.
class BareLoop {
 public:
  explicit BareLoop(const Counts& counts) : left_{counts.executions, counts.flows, counts.timers} {
    int argc = 1;
    char name[] = "bare";
    char* argv[] = {name, nullptr};
    xbt_log_control_set("root.thresh:critical");
    engine_ = std::make_unique<sg4::Engine>(&argc, argv);
    sg4::Engine::set_config("network/model:CM02");
    sg4::Engine::set_config("network/crosstraffic:0");
    sg4::Engine::set_config("network/TCP-gamma:0");
    sg4::NetZone* zone = sg4::create_full_zone("bare");
    for (int i = 0; i < counts.chains; ++i) {
      hosts_.push_back(zone->create_host("h" + std::to_string(i), 1.0)->seal());
      const sg4::Link* out = zone->create_link("o" + std::to_string(i), 1e9)->set_latency(0)->seal();
      const sg4::Link* in = zone->create_link("i" + std::to_string(i), 1e9)->set_latency(0)->seal();
      zone->add_route(hosts_[i]->get_netpoint(), hosts_[i]->get_netpoint(), nullptr, nullptr, {sg4::LinkInRoute(out), sg4::LinkInRoute(in)},
                      false);
    }
    zone->seal();
    running_.resize(counts.chains);
  }

  double run() {
    sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) {
      const auto chain = reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 1;
      graveyard_.push_back(std::move(running_[chain]));
      next(chain);
    });
    sg4::Engine::on_time_advance_cb([this](double) { graveyard_.clear(); });
    for (std::size_t i = 0; i < hosts_.size(); ++i) simgrid::kernel::timer::Timer::set(0, [this, i] { next(i); });
    const auto start = Clock::now();
    engine_->run();
    return since(start);
  }

 private:
  void next(std::size_t chain) {
    turn_ = (turn_ + 1) % 3;
    for (int tries = 0; tries < 3 && left_[turn_] == 0; ++tries) turn_ = (turn_ + 1) % 3;
    if (left_[turn_] == 0) return;
    --left_[turn_];
    const double seconds = 1e-3 * (1 + static_cast<double>(chain) * 0.01);
    if (turn_ == 2) {
      simgrid::kernel::timer::Timer::set(sg4::Engine::get_clock() + 1e-6, [this, chain] { next(chain); });
      return;
    }
    sg4::ActivityPtr activity;
    if (turn_ == 0) {
      activity = sg4::Exec::init()->set_flops_amount(seconds)->set_host(hosts_[chain]);
    } else {
      activity = sg4::Comm::sendto_init(hosts_[chain], hosts_[chain])->set_payload_size(static_cast<std::uint64_t>(seconds * 1e9));
    }
    activity->set_data(reinterpret_cast<void*>(chain + 1));
    running_[chain] = activity;
    activity->vetoable_start();
  }

  long left_[3];
  int turn_ = 0;
  std::unique_ptr<sg4::Engine> engine_;
  std::vector<sg4::Host*> hosts_;
  std::vector<sg4::ActivityPtr> running_, graveyard_;
};

void engine_against_bare_simgrid(benchmark::State& state) {
  const sim::Job job = largest_job();
  double engine_rate = 0, bare_rate = 0;
  for (auto _ : state) {
    const std::vector<double> engine = sim::run_in_child([&] { return run_engine(job); });
    const Counts counts{static_cast<long>(engine[1]), static_cast<long>(engine[2]), static_cast<long>(engine[3]),
                        static_cast<int>(engine[4])};
    const double bare_s = sim::run_in_child([&] { return std::vector<double>{BareLoop(counts).run()}; }).front();
    const double activities = engine[1] + engine[2] + engine[3];
    engine_rate = activities / engine[0];
    bare_rate = activities / bare_s;
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
  double seconds = 0, operations = 0, mb = 0, bare_s = 0;
  for (auto _ : state) {
    const std::vector<double> numbers = sim::run_in_child([&] {
      const auto start = Clock::now();
      const sim::Simulation step = sim::simulate(job, {}, false);
      return std::vector<double>{since(start), static_cast<double>(step.result.activities), peak_mb()};
    });
    seconds = numbers[0];
    operations = numbers[1];
    mb = numbers[2];
    bare_s = sim::run_in_child([&] { return std::vector<double>{BareLoop(bare).run()}; }).front();
    state.SetIterationTime(seconds);
  }
  state.counters["operations"] = operations;
  state.counters["peak_MB"] = mb;
  state.counters["ratio"] = operations / seconds / (static_cast<double>(bare.executions + bare.flows + bare.timers) / bare_s);
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

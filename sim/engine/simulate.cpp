#include "sim/engine/simulate.hpp"

#include <set>

#include "sim/engine/child_process.hpp"
#include "sim/engine/critical_path.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/summary.hpp"
#include "sim/engine/timeline.hpp"

namespace rehearse::sim {
namespace {

// Slower trunks, or fewer of them, are a higher oversubscription.
topology::ClusterSpec with_slow_trunks(const Job& job) {
  topology::ClusterSpec cluster = job.cluster;
  cluster.network.oversubscription *= job.simulation.faults.slow.trunk_factor(cluster.network.spines);
  return cluster;
}

// A job taken apart: which ranks, which operations, at what price.
struct Prepared {
  CommunicationModel model;
  workloads::Folding folding;
  workloads::StepGraph graph;
  Prices prices;

  explicit Prepared(const Job& job)
      : model(with_slow_trunks(job), job.workload, job.simulation.algorithm),
        folding(job.simulation.all_ranks ? workloads::unfolded(job.workload) : fold(job.workload, model, job.simulation.faults)),
        graph(workloads::build_step(job.workload, job.simulation.granularity, folding)),
        prices(price_graph(job, model, graph)) {}
};

std::vector<RankFailure> failures_of(const Job& job, const Prepared& prepared) {
  std::vector<RankFailure> failures;
  for (const StepFailure& failure : job.simulation.faults.failures) {
    std::set<std::uint32_t> simulated;
    for (const int rank : failure.ranks) simulated.insert(prepared.folding.class_of[rank]);
    failures.push_back({failure.ports, {simulated.begin(), simulated.end()}, failure.at_s});
  }
  return failures;
}

std::vector<Execution> execute_on_simgrid(const Job& job, const Prepared& prepared, const Progress& progress) {
  Machine machine;
  std::vector<HostIndex> hosts;
  const std::vector<double> speeds = contention_speeds(job.gpu);
  for (std::size_t i = 0; i < prepared.graph.ranks.size(); ++i) hosts.push_back(machine.add_host(speeds));
  CommPlanner planner(job, prepared.model, prepared.graph, prepared.folding, prepared.prices, machine, hosts);
  const std::vector<CommPlan> plans = planner.plans();
  machine.seal();
  return execute({job, prepared.graph, prepared.prices, plans, planner.port_links(), hosts, failures_of(job, prepared)}, machine, progress);
}

}  // namespace

Simulation simulate(const Job& job, const Progress& progress) {
  const Prepared prepared(job);
  const std::vector<Execution> steps = execute_on_simgrid(job, prepared, progress);
  if (const std::vector<RankFailure> failures = failures_of(job, prepared); !failures.empty()) {
    FailedStep failed = after_failure(job, prepared.graph, failures, steps.front());
    failed.aftermath.seed = job.simulation.seed;
    failed.aftermath.input_hash = input_hash(job);
    return {{}, make_timeline(job, prepared.graph, failed, failures), failed.aftermath};
  }
  return {summarise(job, prepared.graph, prepared.prices, steps, "simulated"), make_timeline(job, prepared.graph, steps), {}};
}

StepResult simulate_in_child(const Job& job) {
  const Prepared prepared(job);
  const std::vector<double> numbers = run_in_child([&] {
    std::vector<double> flat;
    for (const Execution& step : execute_on_simgrid(job, prepared, {})) {
      flat.push_back(step.step_s);
      for (const auto* times : {&step.arrive_s, &step.start_s, &step.end_s}) flat.insert(flat.end(), times->begin(), times->end());
    }
    return flat;
  });
  std::vector<Execution> steps;
  const std::size_t n = prepared.graph.ops.size();
  for (auto at = numbers.begin(); at != numbers.end();) {
    Execution& step = steps.emplace_back();
    step.step_s = *at++;
    for (auto* times : {&step.arrive_s, &step.start_s, &step.end_s}) {
      times->assign(at, at + static_cast<std::ptrdiff_t>(n));
      at += static_cast<std::ptrdiff_t>(n);
    }
  }
  return summarise(job, prepared.graph, prepared.prices, steps, "simulated");
}

Simulation critical_path(const Job& job) {
  const Prepared prepared(job);
  const std::vector<Execution> steps{longest_path(prepared.graph, prepared.prices)};
  return {summarise(job, prepared.graph, prepared.prices, steps, "critical path"), make_timeline(job, prepared.graph, steps), {}};
}

}  // namespace rehearse::sim

#include "sim/engine/simulate.hpp"

#include <algorithm>
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

  // Of a step of the routing.
  explicit Prepared(const Job& job, int step = 0)
      : model(with_slow_trunks(job), job.workload, job.simulation.algorithm),
        folding(job.simulation.all_ranks ? workloads::unfolded(job.workload) : fold(job.workload, model, job.simulation.faults)),
        graph(workloads::build_step(job.workload, job.simulation.granularity, folding, step)),
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

// Each in a process of its own. Times of every operation, and then of the step, as one list.
std::vector<Execution> execute_in_child(const Job& job, const Prepared& prepared) {
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
  return steps;
}

// Steps that differ, each with its own graph. A step begins when the one before has ended on all ranks, so that they do not meet.
Simulation each_step(Job job, const std::string& method, bool timeline,
                     const std::function<std::vector<Execution>(const Job&, const Prepared&, int)>& executed) {
  const Job whole = job;
  job.simulation.steps = 1;
  std::vector<StepResult> results;
  Simulation all;
  double end_s = 0;
  for (int step = 0; step < whole.distinct_steps(); ++step) {
    const Prepared prepared(job, step);
    const std::vector<Execution> run = executed(job, prepared, step);
    results.push_back(summarise(job, prepared.graph, prepared.prices, run, method, step));
    if (timeline && step == 0) all.timeline = make_timeline(job, prepared.graph, run, step);
    if (timeline && step > 0) append(all.timeline, end_s, make_timeline(job, prepared.graph, run, step));
    end_s += *std::ranges::max_element(run.back().end_s);
  }
  all.result = mean_step(whole, std::move(results));
  finish_for(whole, all.result);
  return all;
}

Simulation simulate_each_step(const Job& job, bool timeline, const Progress& progress) {
  return each_step(job, "simulated", timeline, [&](const Job& one, const Prepared& prepared, int step) {
    if (progress) progress(static_cast<double>(step) / job.simulation.steps);
    return execute_in_child(one, prepared);
  });
}

Simulation of_one_step(const Job& job, const Prepared& prepared, const std::vector<Execution>& executions, const std::string& method) {
  Simulation all{summarise(job, prepared.graph, prepared.prices, executions, method), make_timeline(job, prepared.graph, executions), {}};
  finish_for(job, all.result);
  return all;
}

}  // namespace

Simulation simulate(const Job& job, const Progress& progress) {
  if (job.distinct_steps() > 1) return simulate_each_step(job, true, progress);
  const Prepared prepared(job);
  const std::vector<Execution> steps = execute_on_simgrid(job, prepared, progress);
  if (const std::vector<RankFailure> failures = failures_of(job, prepared); !failures.empty()) {
    FailedStep failed = after_failure(job, prepared.graph, failures, steps.front());
    failed.aftermath.seed = job.simulation.seed;
    failed.aftermath.input_hash = input_hash(job);
    return {{}, make_timeline(job, prepared.graph, failed, failures), failed.aftermath};
  }
  return of_one_step(job, prepared, steps, "simulated");
}

StepResult simulate_in_child(const Job& job) {
  if (job.distinct_steps() > 1) return simulate_each_step(job, false, {}).result;
  const Prepared prepared(job);
  StepResult result = summarise(job, prepared.graph, prepared.prices, execute_in_child(job, prepared), "simulated");
  finish_for(job, result);
  return result;
}

Simulation critical_path(const Job& job) {
  const auto longest = [](const Prepared& prepared) { return std::vector<Execution>{longest_path(prepared.graph, prepared.prices)}; };
  if (job.distinct_steps() > 1) {
    return each_step(job, "critical path", true, [&](const Job&, const Prepared& prepared, int) { return longest(prepared); });
  }
  const Prepared prepared(job);
  return of_one_step(job, prepared, longest(prepared), "critical path");
}

}  // namespace rehearse::sim

#include "sim/engine/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "config/quantity.hpp"
#include "sim/analytic/finish.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/critical_path.hpp"
#include "sim/engine/cut.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/summary.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/job/names.hpp"

namespace rehearse::sim {
namespace {

// Slower trunks, or fewer of them, are a higher oversubscription.
topology::ClusterSpec with_slow_trunks(const Job& job) {
  topology::ClusterSpec cluster = job.system.cluster;
  cluster.network.oversubscription *= job.system.simulation.faults.slow.trunk_factor(cluster.network.spines);
  return cluster;
}

// A job taken apart: which ranks, which operations, at what price.
struct Prepared {
  CommunicationModel model;
  Fold fold;
  workloads::StepGraph graph;
  Prices prices;

  // Of a step of the routing.
  explicit Prepared(const Job& job, int step = 0)
      : model(with_slow_trunks(job), job.workload, job.system.simulation.algorithm, job.system.software.collectives),
        fold(job.system.simulation.all_ranks ? unfolded(job) : sim::fold(job, model)),
        graph(workloads::build_step(job.workload, cut_of(job, fold.ranks), fold.ranks, step)),
        prices(price_graph(job, model, graph)) {}
};

std::vector<RankFailure> failures_of(const Job& job, const Prepared& prepared) {
  std::vector<RankFailure> failures;
  for (const StepFailure& failure : job.system.simulation.faults.failures) {
    std::set<std::uint32_t> simulated;
    for (const int rank : failure.ranks) simulated.insert(prepared.fold.ranks.class_of[rank]);
    failures.push_back({failure.ports, {simulated.begin(), simulated.end()}, failure.at_s});
  }
  return failures;
}

// Of what is slow for a while and in the whole step the slowest counts: a spell adds only what it is slower.
std::vector<RankSpell> spells_of(const Job& job, const Prepared& prepared) {
  const SlowParts& slow = job.system.simulation.faults.slow;
  std::vector<RankSpell> spells;
  for (const SlowSpell& spell : job.system.simulation.faults.spells) {
    std::map<double, std::set<std::uint32_t>> simulated;
    for (const int rank : spell.ranks) {
      const double more = spell.slowdown / (spell.ports ? slow.port(rank) : slow.gpu(rank));
      if (more > 1) simulated[more].insert(prepared.fold.ranks.class_of[rank]);
    }
    for (const auto& [more, ranks] : simulated)
      spells.push_back({spell.ports, {ranks.begin(), ranks.end()}, more, spell.from_s, spell.for_s, spell.every_s});
  }
  return spells;
}

double last_end_s(const Execution& step) {
  double last_s = 0;
  for (const double end_s : step.end_s) last_s = std::max(last_s, std::isfinite(end_s) ? end_s : 0);
  return last_s;
}

// A failure that a scenario has in store for later does not happen in this step.
bool strikes(const Job& job, const Execution& step) {
  const StepFailure& first = job.system.simulation.faults.failures.front();
  return !first.drawn || first.at_s <= last_end_s(step);
}

// What a scenario has in store after the time that was asked for is not known.
void check_drawn(const Job& job, const Execution& step) {
  const StepFaults& faults = job.system.simulation.faults;
  if (!faults.drawn_for_s || last_end_s(step) <= *faults.drawn_for_s) return;
  throw config::InputError(fmt::format("the step takes {}, and the scenario is drawn for {} of it",
                                       config::human_quantity(last_end_s(step), config::Dimension::time),
                                       config::human_quantity(*faults.drawn_for_s, config::Dimension::time)),
                           "say for how long, as in 'scenario at 36 h for 1 h'");
}

std::vector<Execution> execute_here(const Job& job, const Prepared& prepared, const Progress& progress) {
  Machine machine(job.system.simulation.solver);
  std::vector<HostIndex> hosts;
  const std::vector<RankSpell> spells = spells_of(job, prepared);
  for (std::uint32_t i = 0; i < prepared.graph.ranks.size(); ++i)
    hosts.push_back(machine.add_host(contention_speeds(job.system.gpu, slowdowns_of(spells, i))));
  CommPlanner planner(job, prepared.model, prepared.graph, prepared.fold.ranks, prepared.prices, machine, hosts,
                      job.system.simulation.all_ranks ? nullptr : &prepared.fold);
  const CommPlans plans = planner.plans();
  machine.seal();
  return execute(
      {job, prepared.graph, prepared.prices, plans, planner.port_links(), hosts, failures_of(job, prepared), spells, planner.flapping()},
      machine, progress);
}

// Each in a process of its own. Times of every operation, and then of the step, as one list.
std::vector<Execution> execute_in_child(const Job& job, const Prepared& prepared) {
  const std::vector<double> numbers = run_in_child([&] {
    std::vector<double> flat;
    for (const Execution& step : execute_here(job, prepared, {})) {
      flat.push_back(step.step_s);
      for (const auto* times : {&step.arrive_s, &step.start_s, &step.end_s}) flat.insert(flat.end(), times->begin(), times->end());
    }
    return flat;
  });
  std::vector<Execution> steps;
  const std::size_t n = prepared.graph.size();
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
  job.system.simulation.steps = 1;
  std::vector<StepResult> results;
  Simulation all;
  double end_s = 0;
  for (int step = 0; step < whole.distinct_steps(); ++step) {
    const Prepared prepared(job, step);
    const std::vector<Execution> run = executed(job, prepared, step);
    results.push_back(summarise(job, prepared.graph, prepared.prices, run, method, step));
    results.back().told_apart = prepared.fold.told_apart;
    if (timeline && step == 0) all.timeline = make_timeline(job, prepared.graph, prepared.prices, run, step);
    if (timeline && step > 0) append(all.timeline, end_s, make_timeline(job, prepared.graph, prepared.prices, run, step));
    end_s += *std::ranges::max_element(run.back().end_s);
  }
  all.result = mean_step(whole, std::move(results));
  finish_for(whole, all.result);
  return all;
}

Simulation simulate_each_step(const Job& job, bool timeline, const Progress& progress) {
  Simulation all = each_step(job, "simulated", timeline, [&](const Job& one, const Prepared& prepared, int step) {
    if (progress) progress(static_cast<double>(step) / job.system.simulation.steps);
    return job.system.simulation.solver == Solver::simgrid ? execute_in_child(one, prepared) : execute_here(one, prepared, {});
  });
  all.result.solver = solvers.of(job.system.simulation.solver);
  return all;
}

Simulation of_one_step(const Job& job, const Prepared& prepared, const std::vector<Execution>& executions, const std::string& method,
                       bool timeline = true) {
  Simulation all{summarise(job, prepared.graph, prepared.prices, executions, method), {}, {}};
  all.result.told_apart = prepared.fold.told_apart;
  if (timeline) all.timeline = make_timeline(job, prepared.graph, prepared.prices, executions);
  finish_for(job, all.result);
  return all;
}

}  // namespace

Simulation simulate(const Job& job, const Progress& progress, bool timeline) {
  if (job.distinct_steps() > 1) return simulate_each_step(job, timeline, progress);
  const Prepared prepared(job);
  const std::vector<Execution> steps = execute_here(job, prepared, progress);
  check_drawn(job, steps.front());
  if (const std::vector<RankFailure> failures = failures_of(job, prepared); !failures.empty() && strikes(job, steps.front())) {
    FailedStep failed = after_failure(job, prepared.graph, failures, steps.front());
    failed.aftermath.seed = job.system.simulation.seed;
    failed.aftermath.input_hash = input_hash(job);
    return {{}, make_timeline(job, prepared.graph, prepared.prices, failed, failures), failed.aftermath};
  }
  Simulation all = of_one_step(job, prepared, steps, "simulated", timeline);
  all.result.solver = solvers.of(job.system.simulation.solver);
  return all;
}

StepResult simulate_in_child(const Job& job) {
  if (job.distinct_steps() > 1) return simulate_each_step(job, false, {}).result;
  const Prepared prepared(job);
  StepResult result = summarise(job, prepared.graph, prepared.prices, execute_in_child(job, prepared), "simulated");
  result.told_apart = prepared.fold.told_apart;
  finish_for(job, result);
  result.solver = solvers.of(job.system.simulation.solver);
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

#include "sim/engine/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "config/quantity.hpp"
#include "sim/analytic/finish.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/critical_path.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/engine/summary.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/job/names.hpp"

namespace rehearse::sim {
namespace {

std::vector<RankFailure> failures_of(const PreparedStep& prepared) {
  const Job& job = prepared.job;
  std::vector<RankFailure> failures;
  for (const StepFailure& failure : job.system.simulation.faults.failures) {
    std::set<std::uint32_t> simulated;
    for (const int rank : failure.ranks) simulated.insert(prepared.fold.ranks.class_of[rank]);
    failures.push_back({failure.ports, {simulated.begin(), simulated.end()}, failure.at_s});
  }
  return failures;
}

// Of what is slow for a while and in the whole step the slowest counts: a spell adds only what it is slower.
std::vector<RankSpell> spells_of(const PreparedStep& prepared) {
  const Job& job = prepared.job;
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

std::vector<Execution> execute_here(const PreparedStep& prepared, const Progress& progress) {
  const Job& job = prepared.job;
  Machine machine(job.system.simulation.solver);
  std::vector<HostIndex> hosts;
  const std::vector<RankSpell> spells = spells_of(prepared);
  for (std::uint32_t i = 0; i < prepared.graph.ranks.size(); ++i)
    hosts.push_back(machine.add_host(contention_speeds(job.system.gpu, slowdowns_of(spells, i))));
  CommPlanner planner(job.system, prepared.compiled.grid, prepared.model, prepared.graph, prepared.fold.ranks, prepared.prices, machine,
                      hosts, job.system.simulation.all_ranks ? nullptr : &prepared.fold);
  const CommPlans plans = planner.plans();
  machine.seal();
  return execute(
      {job.system, prepared.graph, prepared.prices, plans, planner.port_links(), hosts, failures_of(prepared), spells, planner.flapping()},
      machine, progress);
}

// Each in a process of its own. Times of every operation, and then of the step, as one list.
std::vector<Execution> execute_in_child(const PreparedStep& prepared) {
  load(prepared.job.system.simulation.solver);
  const std::vector<double> numbers = run_in_child([&] {
    std::vector<double> flat;
    for (const Execution& step : execute_here(prepared, {})) {
      flat.push_back(step.step_s);
      for (const auto* times : {&step.arrive_s, &step.end_s, &step.begin_s}) flat.insert(flat.end(), times->begin(), times->end());
    }
    return flat;
  });
  std::vector<Execution> steps;
  for (auto at = numbers.begin(); at != numbers.end();) {
    Execution& step = steps.emplace_back();
    step.step_s = *at++;
    const auto take = [&](std::vector<double>& times, std::size_t count) {
      times.assign(at, at + static_cast<std::ptrdiff_t>(count));
      at += static_cast<std::ptrdiff_t>(count);
    };
    take(step.arrive_s, prepared.graph.size());
    take(step.end_s, prepared.graph.size());
    take(step.begin_s, prepared.graph.joints());
  }
  return steps;
}

// One way to find out when the operations of a step run.
struct Method {
  const char* name;
  std::function<std::vector<Execution>(const PreparedStep&)> executed;
  bool timeline = false;
};
using Methods = std::span<const Method>;

Method by_simulation(const Progress& progress, bool timeline) {
  return {"simulated", [=](const PreparedStep& prepared) { return execute_here(prepared, progress); }, timeline};
}

Method in_child() { return {"simulated", execute_in_child}; }

Method by_longest_path(bool timeline) {
  return {"critical path",
          [](const PreparedStep& prepared) { return std::vector<Execution>{longest_path(prepared.graph, prepared.prices)}; }, timeline};
}

// Steps that differ, each prepared once. A step begins when the one before has ended on all ranks, so that they do not meet.
std::vector<Simulation> each_step(const Job& whole, const workloads::Compiled& compiled, Methods methods, const Progress& progress) {
  Job job = whole;
  job.system.simulation.steps = 1;
  std::vector<Simulation> all(methods.size());
  std::vector<std::vector<StepResult>> results(methods.size());
  std::vector<TimelineMaker> timelines(methods.size());
  for (int step = 0; step < whole.distinct_steps(); ++step) {
    if (progress) progress(static_cast<double>(step) / whole.distinct_steps());
    const auto prepared = std::make_shared<const PreparedStep>(job, compiled, step);
    for (std::size_t i = 0; i < methods.size(); ++i) {
      std::vector<Execution> run = methods[i].executed(*prepared);
      results[i].push_back(summarise(*prepared, run, methods[i].name));
      if (methods[i].timeline) timelines[i].add(prepared, std::move(run));
    }
  }
  for (std::size_t i = 0; i < methods.size(); ++i) {
    all[i].result = mean_step(whole, std::move(results[i]));
    if (methods[i].timeline) all[i].timeline = std::move(timelines[i]).timeline();
  }
  return all;
}

using SharedStep = std::shared_ptr<const PreparedStep>;

Simulation of_one_step(const SharedStep& prepared, std::vector<Execution> run, const Method& method) {
  Simulation one{summarise(*prepared, run, method.name), {}, {}};
  if (!method.timeline) return one;
  TimelineMaker timeline;
  timeline.add(prepared, std::move(run));
  one.timeline = std::move(timeline).timeline();
  return one;
}

// Each method's answer, of a step in which nothing fails.
std::vector<Simulation> answers(const Job& job, const workloads::Compiled& compiled, Methods methods, const Progress& progress) {
  std::vector<Simulation> all;
  if (job.distinct_steps() > 1) {
    all = each_step(job, compiled, methods, progress);
  } else {
    const auto prepared = std::make_shared<const PreparedStep>(job, compiled);
    for (const Method& method : methods) all.push_back(of_one_step(prepared, method.executed(*prepared), method));
  }
  for (Simulation& one : all) finish_for(job, one.result);
  return all;
}

// One simulation with SimGrid per process: further steps each in a child.
Method simulation_of(const Job& job, const Progress& progress, bool timeline) {
  const bool many = job.distinct_steps() > 1;
  if (many && job.system.simulation.solver == Solver::simgrid) return {"simulated", execute_in_child, timeline};
  return by_simulation(many ? Progress{} : progress, timeline);
}

Simulation failed_step(const SharedStep& prepared, const std::vector<RankFailure>& failures, const Execution& run) {
  const Job& job = prepared->job;
  FailedStep failed = after_failure(job.system, prepared->graph, failures, run);
  failed.aftermath.seed = job.system.simulation.seed;
  failed.aftermath.input_hash = input_hash(job);
  const Aftermath aftermath = failed.aftermath;
  return {{}, timeline_of(prepared, std::move(failed), failures), aftermath};
}

}  // namespace

Simulation simulate(const Job& job, const Progress& progress, bool timeline) {
  return simulate(job, compiled_for_simulation(job), progress, timeline);
}

Simulation simulate(const Job& job, const workloads::Compiled& compiled, const Progress& progress, bool timeline) {
  const Method method = simulation_of(job, progress, timeline);
  Simulation all;
  if (job.distinct_steps() > 1) {
    all = std::move(answers(job, compiled, {&method, 1}, progress).front());
  } else {
    const auto prepared = std::make_shared<const PreparedStep>(job, compiled);
    std::vector<Execution> steps = method.executed(*prepared);
    check_drawn(job, steps.front());
    const std::vector<RankFailure> failures = failures_of(*prepared);
    if (!failures.empty() && strikes(job, steps.front())) return failed_step(prepared, failures, steps.front());
    all = of_one_step(prepared, std::move(steps), method);
    finish_for(job, all.result);
  }
  all.result.solver = solvers.of(job.system.simulation.solver);
  return all;
}

StepResult simulate_in_child(const Job& job) {
  const Method method = job.distinct_steps() > 1 ? simulation_of(job, {}, false) : in_child();
  StepResult result = std::move(answers(job, compiled_for_simulation(job), {&method, 1}, {}).front().result);
  result.solver = solvers.of(job.system.simulation.solver);
  return result;
}

SimulationBesideLongestPath simulate_beside_longest_path(const Job& job, const workloads::Compiled& compiled, const Progress& progress) {
  const std::array methods{simulation_of(job, progress, true), by_longest_path(false)};
  std::vector<Simulation> both = answers(job, compiled, methods, progress);
  both.front().result.solver = solvers.of(job.system.simulation.solver);
  return {std::move(both.front()), std::move(both.back().result)};
}

Simulation critical_path(const Job& job) {
  const Method method = by_longest_path(true);
  return std::move(answers(job, compiled_for_simulation(job), {&method, 1}, {}).front());
}

}  // namespace rehearse::sim

#include "sim/wholejob/simulate_run.hpp"

#include <algorithm>

#include "sim/engine/child_process.hpp"
#include "sim/engine/machine.hpp"
#include "sim/wholejob/job_run.hpp"

namespace rehearse::sim {
namespace {

constexpr Token any_token = 0;

// The spans of a run as activities, one after another: work of the cluster while it trains, a delay while it stands still.
class OnSimGrid {
 public:
  explicit OnSimGrid(JobRun& run) : run_(run) {
    constexpr double full_speed[] = {1.0};
    cluster_ = machine_.add_host(full_speed);
    machine_.seal();
  }

  double run() {
    start_next();
    machine_.run([this](Token) {
      run_.pass();
      start_next();
    });
    return machine_.now();
  }

 private:
  void start_next() {
    while (!run_.over()) {
      const Span span = run_.next();
      if (span.length > 0) return start(span);
      run_.pass();
    }
  }

  void start(const Span& span) {
    if (span.training) {
      machine_.compute(cluster_, to_s(span.length), any_token);
    } else {
      machine_.after(to_s(span.length), any_token);
    }
  }

  JobRun& run_;
  Machine machine_{Solver::simgrid};
  HostIndex cluster_ = 0;
};

// SimGrid allows one simulation per process, and a run is one: the steps of all states of the cluster that it meets are simulated before.
void meet_states(const WholeJobPlan& plan, StepTimes& steps, std::uint64_t seed) {
  if (plan.step_method != "simulated") return;
  JobRun run(plan, steps, seed, nullptr);
  while (!run.over()) {
    static_cast<void>(run.next());
    run.pass();
  }
}

RunResult run_with(const WholeJobPlan& plan, StepTimes& steps, std::uint64_t seed, History* history) {
  JobRun run(plan, steps, seed, history);
  const double clock_s = OnSimGrid(run).run();
  RunResult result = run.result();
  result.clock_s = clock_s;
  return result;
}

}  // namespace

RunResult simulate_run(const WholeJobPlan& plan, std::uint64_t seed, History* history, StateCounts* states) {
  StepTimes steps = plan.step_times();
  meet_states(plan, steps, seed);
  if (states != nullptr) *states = {steps.states_met(), steps.states()};
  return run_with(plan, steps, seed, history);
}

History history_of(const WholeJobPlan& plan, std::uint64_t seed) {
  StepTimes steps = plan.step_times();
  History history;
  JobRun run(plan, steps, seed, &history);
  while (!run.over()) {
    static_cast<void>(run.next());
    run.pass();
  }
  return history;
}

std::vector<RunResult> simulate_runs(const WholeJobPlan& plan, std::uint64_t first_seed, int runs, int processes,
                                     const std::function<void(double)>& progress, StateCounts* states) {
  std::vector<RunResult> results(static_cast<std::size_t>(runs));
  std::size_t ended = 0;
  const auto done = [&](std::size_t i, const RunResult& result) {
    results[i] = result;
    ++ended;
    if (progress) progress(static_cast<double>(ended) / static_cast<double>(results.size()));
  };
  simulate_some_runs(
      plan, first_seed, runs, processes, [](std::size_t) { return true; }, done, states);
  return results;
}

void simulate_some_runs(const WholeJobPlan& plan, std::uint64_t first_seed, int runs, int processes,
                        const std::function<bool(std::size_t)>& mine, const std::function<void(std::size_t, const RunResult&)>& done,
                        StateCounts* states) {
  load(Solver::simgrid);
  StepTimes steps = plan.step_times();
  std::size_t met = 0;  // runs whose states are worked out, in their order
  const auto meet_until = [&](std::size_t end) {
    for (; met < end; ++met) meet_states(plan, steps, first_seed + met);
  };
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs); ++i) {
    if (mine(i)) wanted.push_back(i);
  }
  const auto work_of = [&](std::size_t i) -> Work {
    meet_until(wanted[i] + 1);
    return [&plan, &steps, seed = first_seed + wanted[i]] { return to_numbers(run_with(plan, steps, seed, nullptr)); };
  };
  run_in_children(wanted.size(), std::max(1, processes), work_of,
                  [&](std::size_t i, const std::vector<double>& answer) { done(wanted[i], from_numbers(answer)); });
  meet_until(static_cast<std::size_t>(runs));
  if (states != nullptr) *states = {steps.states_met(), steps.states()};
}

}  // namespace rehearse::sim

#include "sim/wholejob/simulate_run.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>

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
  Machine machine_;
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

RunResult run_in_own_process(const WholeJobPlan& plan, StepTimes& shared, std::uint64_t seed) {
  meet_states(plan, shared, seed);
  StepTimes steps(shared);  // the child must not meet a lock that another thread holds
  return from_numbers(run_in_child([&] { return to_numbers(run_with(plan, steps, seed, nullptr)); }));
}

// Takes runs one by one until none is left.
class Workers {
 public:
  Workers(const WholeJobPlan& plan, std::uint64_t first_seed, int runs, const std::function<void(double)>& progress)
      : plan_(plan), steps_(plan.step_times()), first_seed_(first_seed), results_(static_cast<std::size_t>(runs)), progress_(progress) {}

  std::vector<RunResult> work(int processes) {
    std::vector<std::future<void>> workers;
    for (int i = 0; i < processes; ++i) workers.push_back(std::async(std::launch::async, [this] { work_one_by_one(); }));
    for (auto& worker : workers) worker.wait();
    for (auto& worker : workers) worker.get();
    return std::move(results_);
  }

 private:
  void work_one_by_one() {
    for (std::size_t i = next_++; i < results_.size(); i = next_++) {
      results_[i] = run_in_own_process(plan_, steps_, first_seed_ + i);
      const std::lock_guard lock(progress_mutex_);
      ++done_;
      if (progress_) progress_(static_cast<double>(done_) / static_cast<double>(results_.size()));
    }
  }

  const WholeJobPlan& plan_;
  StepTimes steps_;
  std::uint64_t first_seed_;
  std::vector<RunResult> results_;
  const std::function<void(double)>& progress_;
  std::atomic<std::size_t> next_{0};
  std::mutex progress_mutex_;
  std::size_t done_ = 0;
};

}  // namespace

RunResult simulate_run(const WholeJobPlan& plan, std::uint64_t seed, History* history) {
  StepTimes steps = plan.step_times();
  meet_states(plan, steps, seed);
  return run_with(plan, steps, seed, history);
}

std::vector<RunResult> simulate_runs(const WholeJobPlan& plan, std::uint64_t first_seed, int runs, int processes,
                                     const std::function<void(double)>& progress) {
  return Workers(plan, first_seed, runs, progress).work(std::max(1, processes));
}

}  // namespace rehearse::sim

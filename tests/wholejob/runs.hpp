// Whole jobs for these tests: a small model whose step is given, so that times can be worked out by hand.
#pragma once

#include <algorithm>

#include "sim/wholejob/job_run.hpp"
#include "sim/wholejob/plan.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::tests {

// 64 GPUs on 8 nodes: tp 8, pp 2, dp 4; nodes 0 to 3 hold stage 0 of replicas 0 to 3, nodes 4 to 7 stage 1.
inline sim::Job whole_job(const std::string& sections) {
  return small_job(64, "{tp: 8, pp: 2, dp: 4}", "{global: 48, micro: 1, sequence: 128}", sections);
}

// A run without SimGrid's clock.
inline sim::RunResult run_alone(const sim::WholeJobPlan& plan, std::uint64_t seed, sim::History* history = nullptr) {
  sim::StepTimes steps = plan.step_times();
  sim::JobRun run(plan, steps, seed, history);
  while (!run.over()) {
    static_cast<void>(run.next());
    run.pass();
  }
  return run.result();
}

// A job of steps of 10 s.
struct TenSecondJob {
  sim::Job job;
  sim::WholeJobPlan plan;
  explicit TenSecondJob(const std::string& sections) : job(whole_job(sections)), plan(sim::plan_whole_job(job, 10, "given")) {}
  TenSecondJob(const TenSecondJob&) = delete;
  TenSecondJob& operator=(const TenSecondJob&) = delete;
  ~TenSecondJob() = default;
};

inline double booked_s(const sim::RunResult& result, sim::Cause cause) { return sim::to_s(result.account[cause]); }

}  // namespace rehearse::tests

// The step of a job in each state of its cluster (docs/whole-jobs.md, "Steps of a cluster that is not well").
#pragma once

#include <map>

#include "sim/faults/nanoseconds.hpp"
#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "sim/wholejob/cluster_state.hpp"

namespace rehearse::sim {

// Throws config::InputError when no replica is left or the job's batch cannot be spread over fewer ones. What a slow cluster costs is
// bounded from above: everything waits for the slowest.
[[nodiscard]] double predicted_step_s(const Job& job, const ClusterState& state);

// Remembers what it has worked out. The healthy step is given; others are that step times their predicted ratio to it.
class StepTimes {
 public:
  StepTimes(const Job& job, double healthy_s);

  [[nodiscard]] Ns healthy() const { return to_ns(healthy_s_); }
  // Never shorter than the healthy step. 0 when the job cannot run in that state.
  [[nodiscard]] Ns at(const ClusterState& state);
  [[nodiscard]] std::size_t states() const { return known_.size(); }

 private:
  [[nodiscard]] Ns work_out(const ClusterState& state) const;
  const Job& job_;
  double healthy_s_, predicted_healthy_s_;
  std::map<ClusterState, Ns> known_;
};

}  // namespace rehearse::sim

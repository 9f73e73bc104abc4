// The step of a job in each state of its cluster (docs/whole-jobs.md, "Steps of a cluster that is not well").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/faults/nanoseconds.hpp"
#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "sim/wholejob/cluster_state.hpp"
#include "sim/wholejob/state_symmetry.hpp"

namespace rehearse::sim {

// How the step of a cluster that is not well is worked out, relative to the healthy one.
enum class StepMethod { formula, simulation };

// What is left of a job that lost replicas: the others share its global batch, as many of them as can.
struct ShrunkenJob {
  std::optional<Job> job;
  std::string why_not;  // no job: what it lacks
};
[[nodiscard]] ShrunkenJob shrunken(const Job& job, int replicas_lost);

// By formula, bounded from above: everything waits for the slowest. Throws config::InputError when the job cannot run in that state.
[[nodiscard]] double predicted_step_s(const Job& job, const ClusterState& state);
// On SimGrid, in a child process.
[[nodiscard]] double simulated_step_s(const Job& job, const ClusterState& state);

// Remembers what it has worked out. The healthy step is given; others are that step times their ratio to it.
class StepTimes {
 public:
  StepTimes(const Job& job, double healthy_s, StepMethod method = StepMethod::formula);
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;
  ~StepTimes() = default;

  [[nodiscard]] Ns healthy() const { return to_ns(healthy_s_); }
  // Never shorter than the healthy step. 0 when the job cannot run in that state.
  [[nodiscard]] Ns at(const ClusterState& state);
  // Why it cannot run with fewer replicas; "" when it can.
  [[nodiscard]] std::string why_not(const ClusterState& state);
  // States other than the healthy one that were asked for, and how many of them had to be worked out: others look the same to the job.
  [[nodiscard]] std::size_t states_met() const { return met_.size(); }
  [[nodiscard]] std::size_t states() const { return known_.size(); }

 private:
  struct Known {
    Ns step = 0;
    std::string why_not;
  };
  // A job with fewer replicas, and what is alike in it.
  struct Smaller {
    ShrunkenJob shrunken;
    std::optional<StateSymmetry> symmetry;  // simulation
  };
  [[nodiscard]] const Known& look_up(const ClusterState& state);
  [[nodiscard]] Known work_out(const ClusterState& state);
  [[nodiscard]] ClusterState representative(const ClusterState& state);
  [[nodiscard]] const Smaller& smaller(int replicas_lost);

  const Job& job_;
  double healthy_s_;
  StepMethod method_;
  double reference_s_ = 0;                                            // the healthy step by the method; 0: not worked out
  std::map<int, Smaller> smaller_;                                    // [replicas lost]
  std::map<ClusterState, ClusterState> met_;                          // -> the one that was worked out
  std::map<std::pair<int, StateSymmetry::Key>, ClusterState> alike_;  // replicas lost and key -> the same
  std::map<ClusterState, Known> known_;
};

}  // namespace rehearse::sim

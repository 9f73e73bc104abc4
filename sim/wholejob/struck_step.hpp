// The step that a failure of a whole job strikes, on the timeline.
#pragma once

#include <string>

#include "sim/result.hpp"
#include "sim/wholejob/history.hpp"
#include "sim/wholejob/plan.hpp"

namespace rehearse::sim {

struct StruckStep {
  int failure = 0;              // which of the history, from 1 on
  Ns at = 0;                    // since the start of the job
  std::string what;             // "gpu 136 at 3.2 s"; of several the first
  std::int64_t steps = 0;       // done before it
  Ns spent = 0, all = 0;        // time that the whole job has spent on the step, and a whole one takes
  double at_s = 0, step_s = 0;  // when it strikes in the simulated step, at the same share of it, and how long that is undisturbed
  bool detected = false;        // by a communication that times out
  double lost_s = 0;            // of the simulated step until then
  std::string folder;           // of its files
};

// That step as a job of its own: the slow parts and the replicas of the moment, and the failure at its instant. `at_s` as above.
[[nodiscard]] Job struck_job(const WholeJobPlan& plan, const StepUnderWay& step, const Fault& fault, double at_s);

// The `number`-th failure of a history. Throws config::InputError where there are not so many, or training stood still.
[[nodiscard]] const HistoryEntry& failure_in_step(const History& history, int number);

}  // namespace rehearse::sim

// A whole job ready to run: every time worked out.
#pragma once

#include <memory>

#include "sim/job/job.hpp"
#include "sim/wholejob/checkpoint_times.hpp"
#include "sim/wholejob/formula.hpp"
#include "sim/wholejob/step_times.hpp"
#include "sim/wholejob/training.hpp"

namespace rehearse::sim {

struct WholeJobPlan {
  const Job* job = nullptr;  // must outlive the plan
  TrainingPlan training;
  Ns limit = never;    // of the wall clock
  Ns give_up = never;  // a job of so many steps that is not done by then never will be
  Ns init = 0, load = 0, backup_load = 0, data = 0;
  CheckpointTimes checkpoint;
  double step_s = 0;
  std::string step_method;     // "predicted", "simulated", "given"
  FormulaInput formula_input;  // of (36)-(44)
  double tokens_per_step = 0;

  // Steps of a cluster that is not well: simulated where the healthy one is, else by formula.
  [[nodiscard]] StepTimes step_times() const {
    return {*job, step_s, step_method == "simulated" ? StepMethod::simulation : StepMethod::formula};
  }
};

// `step_s`: of the healthy job. Throws config::InputError when the job does not say how long it trains, or no time for its checkpoints is
// known.
[[nodiscard]] WholeJobPlan plan_whole_job(const Job& job, double step_s, const std::string& step_method);

}  // namespace rehearse::sim

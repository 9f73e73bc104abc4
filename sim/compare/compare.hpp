// Analytic, simulated and critical-path answers side by side, phase by phase, with the reason where they part.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/prepared_step.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/job/job.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

struct PhaseDifference {
  Phase phase = Phase::compute;
  double analytic_s = 0, simulated_s = 0;
  std::string reason;  // which assumption of the formula explains it; "" when they agree
};

struct Comparison {
  StepResult analytic, simulated, critical;
  double needed_share = 0;  // of the fullest GPU's memory by the formula, before the allocator was asked
  double analytic_alone_s =
      0;              // the analytic step with all contention coefficients at 1 and nothing left to others, as the critical path has it
  Timeline timeline;  // of the simulation
  std::vector<PhaseDifference> phases;  // mean over ranks; adds up to the difference of the steps
  double difference = 0;                // simulated / analytic - 1
  std::vector<std::string> reasons;     // for the step as a whole, most important first
};

[[nodiscard]] Comparison compare(const Job& job, const Progress& progress = {});

// The same in two parts, between which the formula's answer can be looked at: `analytic` and analytic_alone_s, then all else. `trainings`:
// the job's.
[[nodiscard]] Comparison begin_comparison(const Job& job, const CompiledJob& compiled, AllocatorTrainings& trainings);
void finish_comparison(const Job& job, const CompiledJob& compiled, AllocatorTrainings& trainings, const Progress& progress,
                       Comparison& comparison);

}  // namespace rehearse::sim

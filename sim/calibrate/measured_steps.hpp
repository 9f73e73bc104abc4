// A GPU, cluster and software stack fitted to steps that one measured oneself (docs/calibration.md).
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/parameters.hpp"
#include "sim/validate/measured_case.hpp"

namespace rehearse::sim {

// Mean absolute error of the step time over some cases, in percent.
struct ErrorBeforeAfter {
  int cases = 0;
  double before_pct = 0, after_pct = 0;
};

struct StepCalibration {
  std::vector<FitParameter> parameters;
  std::vector<FittedParameter> fitted;
  ErrorBeforeAfter taken, left_out;  // the half that was fitted to, and the other
  std::vector<std::string> skipped;  // cases without a step time, or that cannot be run: "id: why"
  Settings settings;                 // on a job: what was fitted
  JobParts parts;                    // as they were
};

// Half of the cases, by a hash of their ids, is fitted to; the other half shows what that is worth. All must name one cluster, GPU and
// stack. Throws config::InputError where they do not, and for fewer than four.
[[nodiscard]] StepCalibration calibrate_to_steps(const std::vector<MeasuredCase>& cases, const FittedParts& which);

}  // namespace rehearse::sim

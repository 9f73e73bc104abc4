// A GPU and a stack fitted to the kernels of a trace of a job that is known.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/kineto_trace.hpp"
#include "sim/calibrate/parameters.hpp"

namespace rehearse::sim {

struct TraceCalibration {
  std::vector<FitParameter> parameters;
  std::vector<FittedParameter> fitted;
  bool by_operation = false;  // kernels are named as the job's operations (traces of `simulate`); else classes of kernels are compared
  int compared = 0;           // operations, or classes
  double before_pct = 0, after_pct = 0;  // mean absolute error of their times
  Settings settings;
  JobParts parts;
};

// Each trace is of one rank of the job. Kernels named as the job's operations are compared one by one, those beside communication left out,
// and must come in the job's order: the first that does not is named. Others are compared by class, a whole step of one rank.
// Throws config::InputError.
[[nodiscard]] TraceCalibration calibrate_to_traces(const std::vector<KinetoTrace>& traces, const JobRequest& job, const FittedParts& which);

}  // namespace rehearse::sim

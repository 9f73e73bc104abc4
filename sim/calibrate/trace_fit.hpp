// A GPU and a stack fitted to the kernels of a trace of a job that is known.
#pragma once

#include <vector>

#include "sim/calibrate/compared_time.hpp"
#include "sim/calibrate/kineto_trace.hpp"
#include "sim/calibrate/parameters.hpp"

namespace rehearse::sim {

struct TraceCalibration {
  std::vector<FitParameter> parameters;
  std::vector<FittedParameter> fitted;
  std::vector<ComparedTime> compared;
  Settings settings;
  JobParts parts;
  [[nodiscard]] bool by_name() const { return !compared.empty() && compared.front().by == ComparedBy::name; }
};

// Each trace is of one rank of the job. Kernels named as the job's operations are compared one by one, those beside communication left out,
// and must come in the job's order: the first that does not is named. Of others what the trace gives shapes of is compared operator by
// operator, products by their place in the step where it has as many as the job, and classes of kernels of which neither holds by their
// sum, over a step of one rank. Throws config::InputError.
[[nodiscard]] TraceCalibration calibrate_to_traces(const std::vector<KinetoTrace>& traces, const JobRequest& job, const FittedParts& which);

}  // namespace rehearse::sim

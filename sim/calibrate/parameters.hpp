// What calibration may change in the files of a GPU, a cluster and a software stack, and the files that come out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/calibrate/least_squares.hpp"
#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim {

// Which parts of a job are fitted.
struct FittedParts {
  bool gpu = false, cluster = false, software = false;
};

// Of the job's parts as their files say them. `first`: what must be set before any of the parameters (the efficiency of a GPU whose file
// has none). Keys as --set takes them on a job.
struct JobParameters {
  std::vector<FitParameter> parameters;
  Settings first;
};
[[nodiscard]] JobParameters parameters_of(const Job& job, const FittedParts& which);
[[nodiscard]] JobParameters parameters_of_gpu(const Part& part, const Gpu& gpu);

// With these values of the parameters, to be set on a job in this order.
[[nodiscard]] Settings settings_of(const JobParameters& all, std::span<const double> values);

// Of those alone that the measurements told; nothing where they told none.
[[nodiscard]] Settings settings_of_fitted(const JobParameters& all, std::span<const FittedParameter> fitted);

// A file of one's own: like the part that was begun with where that is ready-made, else all of it; with what was fitted. prefix: of the
// part's keys, "cluster.gpu." or "cluster." or "software.".
[[nodiscard]] config::Node fitted_part(const PartKind& kind, const Part& part, const std::string& prefix, const Settings& settings);

}  // namespace rehearse::sim

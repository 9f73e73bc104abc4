// How far predictions are off, per group of cases.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/outcome.hpp"

namespace rehearse::sim {

// Relative errors (predicted over measured, minus one) of one metric over several cases.
struct ErrorSummary {
  std::string group;   // "all": every group
  std::string cases;   // which of the group: "all", "stated" (the source states the whole job) or "inferred" (somebody guessed a field)
  std::string method;  // "predicted" or "simulated"
  Metric metric = Metric::step_s;
  int count = 0;
  double mean_abs = 0, median_abs = 0, p90_abs = 0;
  double worst = 0;  // with its sign
  std::string worst_id;
  double bias = 0;  // mean with its sign
};

// By group (sorted, "all" last), then metric, then method, then all, stated, inferred. Groups in which nothing could be compared are left
// out.
[[nodiscard]] std::vector<ErrorSummary> summarise_errors(const std::vector<Outcome>& outcomes);

// The smallest of the sorted values that at least `share` of them do not exceed (nearest rank).
[[nodiscard]] double quantile(const std::vector<double>& sorted, double share);

}  // namespace rehearse::sim

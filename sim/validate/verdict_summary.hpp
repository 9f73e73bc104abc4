// How often a job is rightly said to fit into memory, per group of cases.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/outcome.hpp"

namespace rehearse::sim {

struct VerdictSummary {
  std::string group;         // "all": every group
  int ran = 0, ran_out = 0;  // of the cases that say it
  int false_alarms = 0;      // ran, and is said not to fit
  int missed = 0;            // ran out of memory, and is said to fit
  [[nodiscard]] double right() const { return 1 - static_cast<double>(false_alarms + missed) / (ran + ran_out); }
};

// By group (sorted, "all" last). A step that was timed is a job that ran. Groups without a verdict are left out.
[[nodiscard]] std::vector<VerdictSummary> summarise_verdicts(const std::vector<Outcome>& outcomes);

}  // namespace rehearse::sim

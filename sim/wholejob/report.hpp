// What `run` and `replay` found out, for the reporters.
#pragma once

#include <string>
#include <vector>

#include "sim/wholejob/history.hpp"
#include "sim/wholejob/plan.hpp"
#include "sim/wholejob/run_result.hpp"
#include "sim/wholejob/simulate_run.hpp"
#include "sim/wholejob/statistics.hpp"
#include "sim/wholejob/struck_step.hpp"

namespace rehearse::sim {

// One value of a swept key.
struct SweepPoint {
  std::string value;
  WholeJobPlan plan;
  FormulaResult formula;
  Statistics ettr, total_s;  // over the runs
};

struct WholeJobReport {
  WholeJobPlan plan;
  FormulaResult formula;
  std::vector<RunResult> runs;
  StateCounts states;                    // of the cluster, over all runs
  std::vector<StruckStep> struck_steps;  // replay: of the failures that were asked for
  History history;                       // of the only run; else empty
  bool replay = false;                   // the history is the answer
  std::string sweep_key;                 // "" when nothing is swept
  std::vector<SweepPoint> sweep;
};

// Of one number of every run.
template <class Get>
[[nodiscard]] Statistics statistics_over(const std::vector<RunResult>& runs, Get get) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunResult& run : runs) values.push_back(static_cast<double>(get(run)));
  return statistics_of(std::move(values));
}

}  // namespace rehearse::sim

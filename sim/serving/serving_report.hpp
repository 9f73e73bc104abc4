// What a command found out about a serving job: a section of its report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/report/report.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/explain.hpp"
#include "sim/serving/service_days.hpp"
#include "sim/serving/serving_result.hpp"
#include "sim/serving/stage_differences.hpp"
#include "sim/serving/tune.hpp"
#include "sim/serving/tune_sweep.hpp"

namespace rehearse::sim {

struct ServingReport {
  std::vector<ServingResult> results;             // by method
  std::vector<StageDifference> differences = {};  // of compare
  std::vector<std::string> notes;                 // what was made of the job
  std::vector<std::string> verdicts;              // why the answer is no
  std::shared_ptr<const ServingRun> run;          // of the simulation, where files are wanted
  std::shared_ptr<const ServingTuning> tuning = {};
  std::shared_ptr<const TuneSweep> sweep = {};   // of tune --sweep
  std::vector<ServingEffect> effects = {};       // of explain
  std::vector<ServingEffect> methods = {};       // of compare --methods
  std::shared_ptr<const ServiceDays> days = {};  // of run
  std::string plan_yaml = {};                    // the job with the pools that tune chose
};

// What instances did over time in the run of a report; nullptr: it has none.
[[nodiscard]] inline const ServiceRecord* recorded(const Report& report) {
  const auto* serving = report.find<ServingReport>();
  return serving != nullptr && serving->run != nullptr ? serving->run->record.get() : nullptr;
}
struct RecordedInstance {
  std::string name;  // "decode.2"
  double page_bytes = 0;
};
[[nodiscard]] std::vector<RecordedInstance> instances_of(const ServingReport& report);

[[nodiscard]] JobSummary serving_summary(const ServingJob& job);

}  // namespace rehearse::sim

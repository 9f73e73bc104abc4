// A case that was run, or the reason why it was not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/validate/measured_case.hpp"

namespace rehearse::sim {

struct Outcome {
  std::string id, group, source;
  std::string gpu, software;  // of the job, by name; empty when it could not be read
  std::string precision;      // of its matrix products
  bool experts = false;
  int gpus = 0;
  std::vector<std::string> inferred;
  Metrics measured, predicted, simulated;
  std::optional<bool> ran, said_to_fit;              // whether memory sufficed: as measured, and by formula
  double needed_share = 0;                           // of the fullest GPU's memory, by formula; of cases that have `ran`
  std::optional<bool> surely_fits;                   // as a search has it (docs/tuning.md, `fits: surely`); of cases that share a sweep
  double chance = 0;                                 // that it fits, likewise
  MemoryCounter counter = MemoryCounter::allocated;  // of the peak
  std::string failed;                                // the reason; empty when the case ran
  // Of a case that shares a sweep with others: all GPUs', as measured (0: it was not) and by formula.
  std::string sweep = {};
  double measured_tokens_per_s = 0, predicted_tokens_per_s = 0;
};

struct ValidationOptions {
  bool simulate = false;
  std::vector<std::pair<std::string, std::string>> sets;  // of every job, in order
};

// A simulated job is folded, and a pipeline cut into whole passes of a stage unless the case or `sets` ask for another granularity: a step
// of hundreds of micro-batches then has thousands of operations and not millions. Every simulation runs in a process of its own.
[[nodiscard]] Outcome run_case(const MeasuredCase& measured_case, const ValidationOptions& options);

// In the order of the cases. On all cores, one of them where steps are simulated. progress: called with the share of the cases done, 0..1,
// by one thread at a time.
[[nodiscard]] std::vector<Outcome> run_cases(const std::vector<MeasuredCase>& cases, const ValidationOptions& options,
                                             const std::function<void(double)>& progress);

}  // namespace rehearse::sim

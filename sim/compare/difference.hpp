// Two jobs side by side: where they differ, and what each difference alone does to the step by formula.
#pragma once

#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// What of a step is set side by side, whoever found it out.
struct StepNumbers {
  std::string method = {};  // "analytic", "simulated"
  int gpus = 0;
  double step_s = 0, tokens_per_s = 0;
  PhaseTimes mean = {};       // over all ranks
  double needed_bytes = 0;    // by the fullest GPU
  double capacity_bytes = 0;  // of that
  bool fits = true;

  [[nodiscard]] double gpu_hours_per_token() const;
};
[[nodiscard]] StepNumbers numbers_of(const StepResult& result, int gpus);

// A key that has two values; "" where one of the jobs has none.
struct KeyDifference {
  std::string key;  // "parallel.tp"
  std::string a, b;
};

// A part of the job (its first key) put from B into A, the rest of A as it is. Parts that A can have only together are one.
struct PartAlone {
  std::string part;          // "parallel"; "gpus, parallel"
  std::string refusal = {};  // why A cannot have it alone; then there are no numbers
  double step_s = 0;         // more than A's
  PhaseTimes phases = {};    // the same of each
  double needed_bytes = 0;
};

struct PhaseChange {
  Phase phase = Phase::compute;
  double a_s = 0, b_s = 0;
  std::string reason;  // the part that alone changes this phase most, in the same direction; "" when none does
};

struct Difference {
  std::string a, b;  // names
  StepNumbers numbers_a, numbers_b;
  std::vector<KeyDifference> keys = {};
  std::vector<PartAlone> parts = {};  // the largest change of the step first, then those refused
  std::vector<PhaseChange> phases = {};
};

struct DifferenceSide {
  std::string name;
  config::Node job;  // resolved
  StepNumbers numbers;
};
[[nodiscard]] Difference difference_of(const DifferenceSide& a, const DifferenceSide& b);

[[nodiscard]] std::vector<KeyDifference> differing_keys(const config::Node& a, const config::Node& b);

}  // namespace rehearse::sim

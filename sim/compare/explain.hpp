// What switching each feature of a job would change, by formula (equation 16, one optimisation at a time).
#pragma once

#include <string>
#include <vector>

#include "sim/engine/simulate.hpp"
#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

struct FeatureSwitch {
  Settings settings;    // what to set
  std::string feature;  // the first key of it
  std::string from, to;
  double step_s = 0;
  double peak_bytes = 0;  // needed by the fullest GPU
  bool fits = false;
  std::string refusal;  // why the job could not be run so; then there are no numbers

  [[nodiscard]] bool possible() const { return refusal.empty(); }
};

struct Explanation {
  StepResult now;
  std::vector<FeatureSwitch> switches;  // best first: what fits before what does not, shorter steps first, then less memory
  std::vector<FeatureSwitch> idle;      // those that change neither time nor memory
  std::vector<FeatureSwitch> refused;
};

[[nodiscard]] Explanation explain(const Job& job);

// What a feature that the job uses does to it: the job minus the job without the feature, by formula and on the timeline. Bytes: of the
// fullest GPU's need.
struct FeatureEffect {
  std::string feature, value, without;
  double analytic_s = 0, simulated_s = 0;
  double analytic_bytes = 0, simulated_bytes = 0;
};

// One per feature that is switched on and can be left out alone. Simulates the job and each variant in child processes: call it before this
// process simulates anything itself.
[[nodiscard]] std::vector<FeatureEffect> effects_of_features(const Job& job, const Progress& progress = {});

}  // namespace rehearse::sim

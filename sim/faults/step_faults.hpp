// What goes wrong in one simulated step: `simulation.faults` of a job and --fault (docs/fault-format.md, "Inside a step").
#pragma once

#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/faults/slow_parts.hpp"

namespace rehearse::sim {

// GPUs or network ports that stop working at an instant of the step.
struct StepFailure {
  std::string text;        // as the job calls it: "gpu 5 at 3.2 s"
  bool ports = false;      // network ports; else GPUs
  std::vector<int> ranks;  // that use them
  double at_s = 0;         // since the start of the step
};

struct StepFaults {
  SlowParts slow;                     // from the start of the step to its end
  std::vector<StepFailure> failures;  // in order of time
};

// A list of "gpu 5 at 3.2 s", "gpu 5 slow 1.3", "nic 5 slow 2", "node 1 at 2 s", "rail 0 slow 2", "spine lost", "spine slow 1.5".
// Throws config::InputError where one is not that, or names what the job does not have.
[[nodiscard]] StepFaults read_step_faults(const config::Node& list, const Places& places, int spines);

}  // namespace rehearse::sim

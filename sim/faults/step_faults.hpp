// What goes wrong in one simulated step: `simulation.faults` of a job and --fault (docs/fault-format.md, "Inside a step").
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/faults/slow_parts.hpp"

namespace rehearse::sim {

class FaultScenario;

// GPUs or network ports that stop working at an instant of the step.
struct StepFailure {
  std::string text;        // as the job calls it: "gpu 5 at 3.2 s"
  bool ports = false;      // network ports; else GPUs
  std::vector<int> ranks;  // that use them
  double at_s = 0;         // since the start of the step
  bool drawn = false;      // from a scenario: it may come after the end of the step, and then never happens
};

// GPUs or network ports that are slow for a while inside the step, once or again and again: a throttling GPU, a flapping rail.
struct SlowSpell {
  std::string text;
  bool ports = false;
  std::vector<int> ranks;
  double slowdown = 1;                 // how many times as long they take meanwhile
  double from_s = 0, for_s = 0;        // since the start of the step
  std::optional<double> every_s = {};  // begins again so long after it began; none: once
};

// A port that is down moves nothing: a billionth of its bandwidth. What it carries goes on when it is up again.
inline constexpr double down_slowdown = 1e9;

struct StepFaults {
  SlowParts slow;                     // from the start of the step to its end
  std::vector<SlowSpell> spells;      // in the order of the list
  std::vector<StepFailure> failures;  // in order of time
  std::set<int> flapping;             // ranks whose network port has spells
  std::vector<std::string> items;     // all of it one by one: as given, and what was drawn at random written out
  std::optional<double> drawn_for_s;  // a scenario was drawn for so much of the step and no more

  [[nodiscard]] bool any_slow() const { return !slow.none() || !spells.empty(); }
};

// What the items of the list may speak of.
struct StepFaultContext {
  Places places;
  int spines = 0;                           // 0: unknown
  std::uint64_t seed = 1;                   // of what is drawn at random
  const FaultScenario* scenario = nullptr;  // `faults` of the job; null: it has none
};

// A list of "gpu 5 at 3.2 s", "gpu 5 slow 1.3", "nic 5 slow 2 from 1 s for 0.5 s every 2 s", "rail 0 down from 1 s for 20 ms", "node 1 at 2
// s", "job at 2 s", "spine lost", "spine slow 1.5"; drawn at random: "gpus 1 % slow 1.1 to 1.5", "nodes 2 at 3 s", "scenario at 36 h".
// Throws config::InputError where one is not that, or names what the job does not have.
[[nodiscard]] StepFaults read_step_faults(const config::Node& list, const StepFaultContext& context);

}  // namespace rehearse::sim

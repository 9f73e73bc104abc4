// The step DAG executed.
#pragma once

#include <functional>
#include <optional>

#include "sim/job/job.hpp"
#include "sim/timeline.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

struct Simulation {
  StepResult result;                   // empty when something failed in the step
  Timeline timeline;                   // refers to nothing outside
  std::optional<Aftermath> aftermath;  // when something failed in the step
};

// Called with the share of the work done, 0..1, now and then.
using Progress = std::function<void(double)>;

// With simulation.solver simgrid a second call in the same process throws std::logic_error (SimGrid's clock and platform are global).
// `timeline`: otherwise that stays empty, except of a step in which something fails.
// `compiled`: compiled_for_simulation().
[[nodiscard]] Simulation simulate(const Job& job, const workloads::Compiled& compiled, const Progress& progress, bool timeline);
[[nodiscard]] Simulation simulate(const Job& job, const Progress& progress = {}, bool timeline = true);

// The same in a forked child process, without the timeline. Nothing may fail in the step.
[[nodiscard]] StepResult simulate_in_child(const Job& job);

// The same beside critical_path(), of the same graph at the same prices; nothing may fail in the step. `compiled`:
// compiled_for_simulation().
struct SimulationBesideLongestPath {
  Simulation simulated;
  StepResult longest;
};
[[nodiscard]] SimulationBesideLongestPath simulate_beside_longest_path(const Job& job, const workloads::Compiled& compiled,
                                                                       const Progress& progress);

// The longest path through the same DAG with nothing shared and every communication at its closed form: an oracle for the other two.
[[nodiscard]] Simulation critical_path(const Job& job);

}  // namespace rehearse::sim

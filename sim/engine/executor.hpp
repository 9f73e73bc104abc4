// A training step, as often as the system simulates it, on a Machine, one after another.
#pragma once

#include <vector>

#include "sim/engine/graph_runner.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::sim {

struct ExecutorSetup {
  const System& system;
  const workloads::StepGraph& graph;
  const Prices& prices;
  const CommPlans& plans;
  const std::vector<PortLink>& port_links;
  const std::vector<HostIndex>& hosts;  // [simulated rank]; made with contention_speeds()
  std::vector<RankFailure> failures = {};
  std::vector<RankSpell> spells = {};
  std::vector<PortLink> flapping = {};  // links of the ports that spells slow
};

// Runs the step simulation.steps times, each starting when the one before has ended on all ranks. With failures it ends when nothing
// can go on (GraphRunner::fail).
// Throws std::runtime_error naming what is stuck when the machine stops before all operations have ended.
[[nodiscard]] std::vector<Execution> execute(const ExecutorSetup& setup, Machine& machine, const Progress& progress);

}  // namespace rehearse::sim

// Executes a step graph on a Machine: in-order streams, collectives that wait for their members, flows that share links, and computation
// and communication that slow each other down while they overlap.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/comm_plan.hpp"
#include "sim/engine/execution.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::sim {

// Simulated ranks whose GPUs or network ports stop working.
struct RankFailure {
  bool ports = false;  // network ports; else GPUs
  std::vector<std::uint32_t> ranks;
  double at_s = 0;
};

// What is slow for a while on simulated ranks (SlowSpell).
struct RankSpell {
  bool ports = false;
  std::vector<std::uint32_t> ranks;
  double slowdown = 1;
  double from_s = 0, for_s = 0;
  std::optional<double> every_s = {};
};

struct ExecutorSetup {
  const Job& job;
  const workloads::StepGraph& graph;
  const Prices& prices;
  const CommPlans& plans;
  const std::vector<PortLink>& port_links;
  const std::vector<HostIndex>& hosts;  // [simulated rank]; made with contention_speeds()
  std::vector<RankFailure> failures = {};
  std::vector<RankSpell> spells = {};
  std::vector<PortLink> flapping = {};  // links of the ports that spells slow
};

// Relative speeds a rank's compute stream can have: 1, then 1/alpha of each class of communication; after them the same for each slowdown.
[[nodiscard]] std::vector<double> contention_speeds(const Gpu& gpu, std::span<const double> slowdowns = {});
// Slowdowns of a simulated rank's computation by spells, in order; its host is made with contention_speeds() of them.
[[nodiscard]] std::vector<double> slowdowns_of(const std::vector<RankSpell>& spells, std::uint32_t rank);

// Runs the step simulation.steps times, each starting when the one before has ended on all ranks. With failures it ends when nothing
// can go on: the streams of a dead GPU stop; communication of a dead GPU, or over a dead port, stands still from then on.
// Throws std::runtime_error naming what is stuck when the machine stops before all operations have ended.
[[nodiscard]] std::vector<Execution> execute(const ExecutorSetup& setup, Machine& machine, const Progress& progress);

}  // namespace rehearse::sim

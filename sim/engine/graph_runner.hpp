// Runs graphs of operations on a Machine as they are launched, several at once if so: in-order streams, collectives that wait for their
// members, flows that share links, and computation and communication that slow each other down while they overlap.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/areas.hpp"
#include "sim/engine/comm_plan.hpp"
#include "sim/engine/execution.hpp"

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

// Relative speeds a rank's compute stream can have: 1, then 1/alpha of each class of communication; after them the same for each slowdown.
[[nodiscard]] std::vector<double> contention_speeds(const Gpu& gpu, std::span<const double> slowdowns = {});
// Slowdowns of a simulated rank's computation by spells, in order; its host is made with contention_speeds() of them.
[[nodiscard]] std::vector<double> slowdowns_of(const std::vector<RankSpell>& spells, std::uint32_t rank);

// What graphs run on. All of it must outlive the runner, and the machine is sealed.
struct RunnerSetup {
  const Gpu& gpu;
  const std::vector<PortLink>& port_links;  // by rank of the runner
  const std::vector<HostIndex>& hosts;      // [rank of the runner]; made with contention_speeds()
  const std::vector<RankSpell>& spells;
  const std::vector<PortLink>& flapping;  // links of the ports that spells slow
  // Those of the machine, where one graph is launched once, at the beginning, and nothing fails or comes and goes; else null.
  const Areas* areas = nullptr;
};

// A graph that can be launched. What it refers to must outlive the runner.
struct Launchable {
  const workloads::StepGraph& graph;
  const Prices& prices;
  const CommPlans& plans;
  std::uint32_t first_rank = 0;  // the runner's, on which the graph's first runs; the others follow
};

class GraphRunner {
 public:
  // `ended`: called with the operations that have ended so far, now and then.
  GraphRunner(const RunnerSetup& setup, Machine& machine, std::function<void(std::size_t)> ended = {});
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  std::size_t add(const Launchable& graph);  // what launch() calls it by

  // Calls `then` at an instant of the machine's time, or now where that is over. What is asked for at one instant comes in that order.
  void at(double when_s, std::function<void()> then);

  // From inside run(): the graph begins now, also when it is under way already. Of launches on the same rank an operation begins when those
  // of its stream that were launched before have ended, as on CUDA streams. `times`, since now, must live until `done` is called or run()
  // has returned; with failures it may be left unfinished.
  void launch(std::size_t graph, Execution& times, std::function<void()> done);

  // From inside run(), for good from now on: the streams of a dead GPU stop; communication of a dead GPU, or over a dead port, stands
  // still.
  void fail(const RankFailure& failure);

  // Whether anything is launched that has not ended.
  [[nodiscard]] bool under_way() const;
  // Until nothing can go on. Throws std::runtime_error naming what is stuck when launched operations have not ended, and nothing failed.
  void run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::sim

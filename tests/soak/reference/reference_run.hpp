// A second opinion on the timeline: a step graph with its prices and its communications' plans, executed without SimGrid and without the
// engine's executor, contention and machine. It works out all rates anew at every event, as docs/simulation.md describes them.
#pragma once

#include <vector>

#include "sim/engine/comm_plan.hpp"
#include "sim/engine/prices.hpp"
#include "sim/job/job.hpp"

namespace rehearse::tests {

struct ReferenceInput {
  const sim::Gpu& gpu;
  const workloads::StepGraph& graph;
  const sim::Prices& prices;
  const sim::CommPlans& plans;              // [call]
  const std::vector<sim::PortLink>& ports;  // whose bandwidth suffers from computation
  const std::vector<double>& link_rates;    // [link] bytes per second
};

struct ReferenceTimes {
  std::vector<double> start_s, end_s;  // [op]
  double step_s = 0;
};

// Throws std::runtime_error when operations are left that nothing can start.
[[nodiscard]] ReferenceTimes reference_run(const ReferenceInput& input);

}  // namespace rehearse::tests

// Seconds of every piece of work and the price of every communication in a step graph.
#pragma once

#include <vector>

#include "sim/cost/communication.hpp"
#include "sim/system.hpp"
#include "workloads/step_graph.hpp"

namespace rehearse::sim {

struct Prices {
  std::vector<double> work_s;    // [work], repeat included
  std::vector<CallPrice> calls;  // [call], one call (without repeat)
  std::vector<double> slowdown;  // [simulated rank] how many times as long its computation takes; empty: once

  [[nodiscard]] double compute_s(const workloads::Op& op) const { return work_s[op.item] * (slowdown.empty() ? 1 : slowdown[op.rank]); }
};

[[nodiscard]] Prices price_graph(const System& system, const workloads::Workload& workload, const CommunicationModel& model,
                                 const workloads::StepGraph& graph);

}  // namespace rehearse::sim

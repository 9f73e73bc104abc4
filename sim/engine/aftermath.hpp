// What a failure inside a step left behind.
#pragma once

#include "sim/engine/graph_runner.hpp"

namespace rehearse::sim {

// The receiving side of a message that does not come: no operation of the graph, but a kernel that waits all the same.
struct HungReceive {
  std::uint32_t rank = 0;  // simulated
  workloads::OpId message = 0;
  double since_s = 0;
};

struct FailedStep {
  Aftermath aftermath;
  Execution drawn;              // hung operations from when they wait until detection; what never began has no duration
  std::vector<bool> hung, cut;  // [op]
  std::vector<HungReceive> receives;
};

// `run`: as execute() returned it. Detection is when the first hung communication of a living rank is older than the timeout; what would
// have ended later does not. Throws config::InputError when the step is over before the first failure.
[[nodiscard]] FailedStep after_failure(const System& system, const workloads::StepGraph& graph, const std::vector<RankFailure>& failures,
                                       const Execution& run);

}  // namespace rehearse::sim

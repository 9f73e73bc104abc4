// Turns a workload into the DAG of one step for the simulated ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/compiled.hpp"
#include "workloads/plan.hpp"
#include "workloads/step_graph.hpp"

namespace rehearse::workloads {

// Which ranks are simulated and which of them every rank is represented by. Must be equitable: ranks of one class have pipeline neighbours
// and group members of the same classes.
struct Folding {
  std::vector<SimulatedRank> ranks;
  std::vector<std::uint32_t> class_of;  // [global rank] -> index into ranks
};

// Every rank for itself.
[[nodiscard]] Folding unfolded(const Workload& workload);
// One rank per pipeline stage: right whenever the fabric looks the same from all ranks of a stage.
[[nodiscard]] Folding folded_by_stage(const Workload& workload);

// `step`: of the routing, where tokens are routed anew in every step; the operations are the same in all, what they work on is not.
[[nodiscard]] StepGraph build_step(const Workload& workload, const Compiled& compiled, const Folding& folding, int step = 0);

}  // namespace rehearse::workloads

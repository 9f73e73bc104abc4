// Executions as a timeline for people and trace tools.
#pragma once

#include <vector>

#include "sim/engine/aftermath.hpp"
#include "sim/engine/execution.hpp"
#include "sim/engine/prices.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Executions follow one another in time. Operations without duration are left out. `step` is that of the routing.
[[nodiscard]] Timeline make_timeline(const Job& job, const workloads::StepGraph& graph, const Prices& prices,
                                     const std::vector<Execution>& executions, int step = 0);

// Puts the timeline of another step on the same ranks behind one that lasts until end_s.
void append(Timeline& timeline, double end_s, const Timeline& next);

// The same of a step in which something failed.
[[nodiscard]] Timeline make_timeline(const Job& job, const workloads::StepGraph& graph, const Prices& prices, const FailedStep& step,
                                     const std::vector<RankFailure>& failures);

}  // namespace rehearse::sim

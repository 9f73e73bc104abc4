// Executions as a timeline for people and trace tools.
#pragma once

#include <vector>

#include "sim/engine/aftermath.hpp"
#include "sim/engine/execution.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Steps follow one another in time. Operations without duration are left out.
[[nodiscard]] Timeline make_timeline(const Job& job, const workloads::StepGraph& graph, const std::vector<Execution>& steps);

// The same of a step in which something failed.
[[nodiscard]] Timeline make_timeline(const Job& job, const workloads::StepGraph& graph, const FailedStep& step,
                                     const std::vector<RankFailure>& failures);

}  // namespace rehearse::sim

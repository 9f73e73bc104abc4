// Executions as a timeline for people and trace tools.
#pragma once

#include <vector>

#include "sim/engine/aftermath.hpp"
#include "sim/engine/execution.hpp"
#include "sim/engine/prepared_step.hpp"

namespace rehearse::sim {

// Executions follow one another in time. Operations without duration are left out.
[[nodiscard]] Timeline make_timeline(const PreparedStep& prepared, const std::vector<Execution>& executions);

// Puts the timeline of another step on the same ranks behind one that lasts until end_s.
void append(Timeline& timeline, double end_s, const Timeline& next);

// The same of a step in which something failed.
[[nodiscard]] Timeline make_timeline(const PreparedStep& prepared, const FailedStep& step, const std::vector<RankFailure>& failures);

}  // namespace rehearse::sim

#pragma once

#include "workloads/step_graph.hpp"

namespace rehearse::workloads {

// Whether operations of a step wait for one another in a circle, so that it would never end.
[[nodiscard]] bool has_cycle(const StepGraph& graph);

}  // namespace rehearse::workloads

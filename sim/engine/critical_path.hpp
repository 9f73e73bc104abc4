// The longest path through a step graph: every operation at its price, nothing shared.
#pragma once

#include "sim/engine/execution.hpp"
#include "sim/engine/prices.hpp"

namespace rehearse::sim {

[[nodiscard]] Execution longest_path(const workloads::StepGraph& graph, const Prices& prices);

}  // namespace rehearse::sim

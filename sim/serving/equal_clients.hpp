// Closed loops of equal requests by formula: clients whose prompts shared a pass end together and come again together, in waves.
#pragma once

#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

// Of so many clients an instance whose requests are alike and reach its queue `request_s` after they are sent; `first_share` of the counted
// requests are the first of their clients, which come to an idle instance together. TTFT and what it is made of are without `request_s`;
// stages may be negative by it, where the engine was busy meanwhile anyway. Required: instances that do both, no tokens tried.
[[nodiscard]] PoolState equal_clients(const PoolFormula& pool, const LoadMoments& load, double clients, double request_s,
                                      double first_share);

}  // namespace rehearse::sim

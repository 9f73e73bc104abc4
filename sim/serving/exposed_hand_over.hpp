// What of a hand-over is left to wait for when its prompt is computed, by formula: of a prompt and a cache that nothing delays.
#pragma once

#include "sim/serving/network_transfers.hpp"
#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

struct ExposedHandOver {
  double waiting_s = 0;   // until the other engine knows of the request
  double transfer_s = 0;  // from then until the cache is there
  double aligning_s = 0;  // of that, kernels that make it fit
};

// `lane`: from the pool of these prompts; `there`: tokens that the other side has already; `request_s`: seconds until a request is in the
// queue of the instance that decodes.
[[nodiscard]] ExposedHandOver exposed_hand_over(const PoolFormula& prompts, const NetworkTransfers& transfers, double tokens,
                                                double request_s, std::size_t lane = 0, double there = 0);

}  // namespace rehearse::sim

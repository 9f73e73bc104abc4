// Two things that run at once and slow each other down while they do.
#pragma once

#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

// Seconds until both have ended when `compute_s` of computation and `communication_s` of communication start together: computation runs at
// 1/alpha and communication at 1/beta of its speed as long as the other lasts. Equations (20)-(22) print max(alpha c, beta k), which
// stretches the longer one to its end; here, as in the simulator, it is stretched only while they overlap. With alpha = beta = 1 both are
// max(c, k).
[[nodiscard]] double overlapped_s(double compute_s, double communication_s, const ContentionPair& pair);

// The contention of a class of communication on a GPU; 1, 1 when its file does not name the class.
[[nodiscard]] ContentionPair contention_of(const Gpu& gpu, const char* communication);

}  // namespace rehearse::sim

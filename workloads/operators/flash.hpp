// What flash attention computes.
#pragma once

namespace rehearse::workloads {

// Backward recomputes the scores: five products where forward has two (Dao et al. 2022, algorithm 4).
inline constexpr double flash_backward_flops = 2.5;

}  // namespace rehearse::workloads

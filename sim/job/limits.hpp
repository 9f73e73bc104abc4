// What a job may ask for: far above anything that was ever run, far below what overflows.
#pragma once

#include <cstdint>

namespace rehearse::sim {

inline constexpr int most_gpus = 1'000'000;
inline constexpr std::uint64_t largest_seed = std::uint64_t{1} << 53U;  // exact in JSON

}  // namespace rehearse::sim

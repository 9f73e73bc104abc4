// What every reader of models accepts: far above any model that was ever trained, far below what overflows.
#pragma once

#include <cstdint>

namespace rehearse::workloads {

inline constexpr std::int64_t most_layers = 10'000;
inline constexpr std::int64_t widest = 1'000'000;  // of any width, and heads and experts
inline constexpr std::int64_t most_words = 100'000'000;

}  // namespace rehearse::workloads

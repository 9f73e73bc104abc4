// Time of whole jobs: whole nanoseconds, so that what is booked adds up to the wall clock exactly. 63 bits reach 292 years.
#pragma once

#include <cmath>
#include <cstdint>

namespace rehearse::sim {

using Ns = std::int64_t;

inline constexpr double ns_per_s = 1e9;
inline constexpr double seconds_per_day = 86400;
inline constexpr double longest_job_s = 100 * 365.25 * seconds_per_day;  // leaves room for sums of three such times
inline constexpr Ns never = INT64_MAX;

// `seconds` at most longest_job_s.
[[nodiscard]] inline Ns to_ns(double seconds) { return std::llround(seconds * ns_per_s); }
[[nodiscard]] inline double to_s(Ns ns) { return static_cast<double>(ns) / ns_per_s; }

}  // namespace rehearse::sim

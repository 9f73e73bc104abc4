// How every report begins: the job in short.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>

#include "sim/report/reporter.hpp"

namespace rehearse::sim {

inline constexpr int result_format = 1;  // of result.json: raised when a key changes its meaning or goes away

// Two lines for people.
void print_job(const JobSummary& job, std::ostream& out);
// result.json: format, version, job, seed, input_hash.
[[nodiscard]] nlohmann::ordered_json head_json(const JobSummary& job);

}  // namespace rehearse::sim

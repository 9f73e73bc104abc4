// A small result with round numbers, made by hand, for the reporters.
#pragma once

#include <string>

#include "sim/report/reporter.hpp"

namespace rehearse::sim {

// Two stages of two ranks, a step of 2 s.
[[nodiscard]] StepResult hand_made_step(const std::string& method);

// Step results of 2 s and 2.2 s and a critical path of 1.8 s; the difference is all bubble.
[[nodiscard]] Comparison hand_made_comparison();

// Ranks 0 and 2; a forward on rank 0 is sent to rank 2, which gathers and computes.
[[nodiscard]] Timeline hand_made_timeline();

[[nodiscard]] JobSummary hand_made_job();

[[nodiscard]] std::string written(const std::string& reporter, const Report& report);

}  // namespace rehearse::sim

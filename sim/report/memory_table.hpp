// Device memory on the console.
#pragma once

#include <map>
#include <string>

#include "sim/report/table.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// [stage] its rank that needs most.
[[nodiscard]] std::map<int, const RankMemory*> fullest_of_stages(const StepResult& result);

// GiB with two decimals.
[[nodiscard]] std::string in_gib(double bytes);

// The fullest rank of every pipeline stage, GiB at its peak by use.
[[nodiscard]] Table memory_table(const StepResult& result);

// "memory: 61.20 of 79.35 GiB on stage 0", and what is kept in host memory; "" without memory results.
[[nodiscard]] std::string memory_line(const StepResult& result);

// "B layer 7, micro-batch 3": what runs at the peak; with the step where simulated steps differ.
[[nodiscard]] std::string peak_place(const RankMemory& rank);

// What does not fit: which rank, when, while what runs, what is largest, how much is missing; "" when everything fits.
[[nodiscard]] std::string shortage(const StepResult& result);

}  // namespace rehearse::sim

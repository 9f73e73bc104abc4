// What one run of a whole job came to.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/faults/fault.hpp"
#include "sim/wholejob/account.hpp"

namespace rehearse::sim {

struct RunResult {
  std::uint64_t seed = 0;
  Ns wall = 0;
  Account account;  // adds up to wall
  std::int64_t steps = 0, lost_steps = 0, saves = 0;
  std::array<std::int64_t, level_count> failures{};  // by level
  std::int64_t not_felt = 0;                         // failures of nodes that were idle
  std::int64_t slow = 0;                             // times that something became slow
  std::int64_t waits = 0;                            // for nodes
  std::int64_t resized = 0;                          // restarts with fewer or more replicas
  std::int64_t refused = 0;                          // times that the job could not shrink, and waited instead
  std::uint64_t finished = 1;                        // 0: given up
  double clock_s = 0;                                // SimGrid's, at the end

  // (36), with the time of the steps that count at the healthy job's step time.
  [[nodiscard]] double ettr() const { return wall > 0 ? to_s(account[Cause::trained]) / to_s(wall) : 0; }
  [[nodiscard]] std::int64_t all_failures() const { return failures[0] + failures[1] + failures[2]; }
  // None without failures.
  [[nodiscard]] std::optional<double> mttf_s() const {
    return all_failures() > 0 ? std::optional(to_s(wall) / static_cast<double>(all_failures())) : std::nullopt;
  }
};

// As numbers that can go through a pipe, and back.
[[nodiscard]] std::vector<double> to_numbers(const RunResult& result);
[[nodiscard]] RunResult from_numbers(const std::vector<double>& numbers);

}  // namespace rehearse::sim

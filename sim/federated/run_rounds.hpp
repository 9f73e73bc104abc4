// Rounds one after another: who is selected, who leaves, who is late, channels that fade, a server that fails.
#pragma once

#include <functional>
#include <vector>

#include "sim/federated/job.hpp"

namespace rehearse::federated {

struct RoundRow {
  double begins_s = 0, round_s = 0;  // with aggregation, and with the negotiation where there is one
  double negotiation_s = 0;
  double repair_s = 0;  // of the server, after it
  std::size_t selected = 0, finished = 0, dropped = 0, late = 0;
  double worked_s = 0, wasted_s = 0;  // device seconds of work (without waiting); those that were not aggregated
  bool lost = false;
};

struct RunHistory {
  std::vector<RoundRow> rounds;
  std::uint64_t seed = 0;
  double training_s = 0;
  double joules = 0;                          // of all devices, where powers are given
  std::size_t failures = 0;                   // of the server
  [[nodiscard]] double useful_share() const;  // of the devices' work, what was aggregated
};

// Whether one round is another than the next: other devices, or other channels.
[[nodiscard]] bool rounds_differ(const Job& job);

// `training.rounds` rounds that count; lost ones are done again.
[[nodiscard]] RunHistory run_rounds(const Job& job, const std::function<void(double)>& progress);

}  // namespace rehearse::federated

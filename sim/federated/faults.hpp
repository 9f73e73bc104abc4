// What goes wrong in a round, as a line of text each: "device 3 slow 4", "device 3 at 12 s", "uplink slow 2 from 10 s for 5 s",
// "server slow 2", "server at 30 s".
#pragma once

#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {

// Adds it to the conditions; `refuse` says where the text stands and does not return. Devices are counted from 0, or named.
using Refuse = std::function<void(std::string_view why, std::string_view hint)>;
void add_fault(const Job& job, const std::string& text, const Refuse& refuse, Conditions& conditions);

// Those of the job (simulation.faults), its deadline, and more as given with --fault.
[[nodiscard]] Conditions conditions_of(const Job& job, const std::vector<std::string>& more);

// In seconds; `never` without one. A quantile is of the latencies by formula with equal shares and each device's own best cut.
[[nodiscard]] double deadline_s(const Job& job);

}  // namespace rehearse::federated

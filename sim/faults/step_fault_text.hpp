// Faults of whole jobs as items of `simulation.faults`: what a step feels of them.
#pragma once

#include <string>
#include <vector>

#include "sim/faults/slow_parts.hpp"

namespace rehearse::sim {

// What it strikes, each as the beginning of an item: "gpu 17", "node 3", "nic 8", "rail 2", "spine", "job". A failure of level job strikes
// the job, one of level process a single GPU of each node (unless it names ports); what lies beyond the job's GPUs is left out.
[[nodiscard]] std::vector<std::string> struck_by(const Fault& fault, const Places& places);

// What a step that begins `start_s` after the start of the job feels of the fault in its first `for_s` seconds; empty: nothing.
[[nodiscard]] std::vector<std::string> items_within(const Fault& fault, double start_s, double for_s, const Places& places);

// What is slow, from the start of a step to its end.
[[nodiscard]] std::vector<std::string> items_of(const SlowParts& slow);

}  // namespace rehearse::sim

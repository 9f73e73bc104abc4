// What goes wrong with a deployment over days, drawn from the job's `faults` (docs/fault-format.md).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/faults/fault_source.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// The nodes on which instances stand, part after part.
[[nodiscard]] FaultContext service_fault_context(const ServingJob& job);

// Those that begin before `until_s`, in order. A failure of level pod or job takes every instance on its nodes, one of level process those
// on one GPU of each; they are back after the fault's recovery, else the job's. What slows ports and spines is for hand-overs.
[[nodiscard]] std::vector<ServiceFault> draw_service_faults(const ServingJob& job, std::uint64_t seed, double until_s);

}  // namespace rehearse::sim

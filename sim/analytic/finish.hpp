// What every result of a step holds beside its times and memory, whichever method made it.
#pragma once

#include <vector>

#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// Several steps that differ, on the same ranks, as one result: times are means, memory is each rank's highest peak, collectives are those
// of the last step.
[[nodiscard]] StepResult mean_step(const Job& job, std::vector<StepResult> steps);

// What stands in every result whoever made it: throughput, MFU, experts' loads, seed, hash.
void finish_for(const Job& job, StepResult& result);

}  // namespace rehearse::sim

// The time to first token and the time per token by what they go to (docs/serving.md, "Outputs").
#pragma once

#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {

// Of the simulation: from the passes that prompts and answers were in.
void put_simulated_splits(ServingResult& result, const ServingRun& run);
// By formula: from the passes of a mean prompt and of the mean number of sequences. The result is not beyond its capacity.
void put_predicted_splits(ServingResult& result, const ServingJob& job, const Deployment& deployment);

}  // namespace rehearse::sim

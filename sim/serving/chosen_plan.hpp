// The job with the deployment that `tune` chose.
#pragma once

#include <string>

#include "sim/serving/tune.hpp"

namespace rehearse::sim {

// As YAML, resolved; with a goal of rates at the rate that the deployment carries. Something is chosen.
[[nodiscard]] std::string chosen_plan(const ServingJob& job, const ServingTuning& tuning);

}  // namespace rehearse::sim

// Where the formula and the simulation of a deployment part: stage by stage of a request, with what the formula left out.
#pragma once

#include <string>
#include <vector>

#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {

struct StageDifference {
  std::string name;  // of a stage, or "time to first token", "time per output token", "end to end"
  double analytic_s = 0, simulated_s = 0;
  std::string reason;  // "" where they agree within a thousandth of the end-to-end time, and for what the stages add up to
};

[[nodiscard]] std::vector<StageDifference> stage_differences(const ServingJob& job, const Deployment& deployment,
                                                             const ServingResult& analytic, const ServingResult& simulated);

}  // namespace rehearse::sim

// A deployment by formula (docs/serving.md, "The formula").
#pragma once

#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {

struct ServingPrediction {
  ServingResult result;    // percentiles are not known to it
  std::string overloaded;  // which pool cannot carry the load, and how much it can; empty: it can
};

// `transfer_s`: seconds that the hand-over of a mean cache takes alone; 0 where nothing is handed over.
[[nodiscard]] ServingPrediction predict_serving(const ServingJob& job, const Deployment& deployment, double transfer_s,
                                                double transfer_bytes);

}  // namespace rehearse::sim

// A deployment by formula (docs/serving.md, "The formula").
#pragma once

#include "sim/serving/deployment.hpp"
#include "sim/serving/promised_times.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {

struct ServingPrediction {
  ServingResult result;    // percentiles are not known to it, but those of the promise
  std::string overloaded;  // which pool cannot carry the load, and how much it can; empty: it can
};

// `tokens`: of a mean prompt, whose cache is handed over where the sides are apart.
[[nodiscard]] ServingPrediction predict_serving(const ServingJob& job, const Deployment& deployment, double tokens);
// The times that its promise is held against; infinite beyond the capacity.
[[nodiscard]] PromisedTimes predicted_promise(const ServingJob& job, const Deployment& deployment);

}  // namespace rehearse::sim

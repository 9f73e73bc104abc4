// What each choice of a deployment is worth: the same requests with one choice changed at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/serving_job.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {

struct ServingEffect {
  std::string key, value;    // "prefill.batching", "static"
  std::string refused = {};  // why it cannot be
  std::optional<ServingResult> simulated = {};
};

// Every other value of the choices of pools, hand-over and routers; half and twice the tensor parallelism on the same GPUs; the two sides
// together or apart on the same GPUs. `document` is the job as it was written, `job` what it says. With goodput where that is asked for.
[[nodiscard]] std::vector<ServingEffect> serving_effects(const config::Node& document, const ServingJob& job, bool with_goodput,
                                                         const std::function<void(double)>& progress);

// The job under the methods of a list, "apart", "together" or both with a comma: as it is, and its GPUs the other way, every way in which
// explain does it. Keys are the methods. With goodput, where something is promised and requests come at a rate. Throws config::InputError
// where the list is not one, or the job has no other way.
[[nodiscard]] std::vector<ServingEffect> serving_methods(const config::Node& document, const ServingJob& job, const std::string& list,
                                                         const std::function<void(double)>& progress);

}  // namespace rehearse::sim

// What a load's prompts find in caches, by formula: the caches that keep what was used last, prompt after prompt, without time. Prompts go
// to the instances of their side in turn, behind the router `by-length` to those that take them; behind `prefix` all caches are one.
#pragma once

#include <vector>

#include "sim/serving/deployment.hpp"
#include "sim/serving/load_moments.hpp"

namespace rehearse::sim {

// Whether any of these pools keeps blocks of prompts.
[[nodiscard]] bool keeps_prefixes(const ServingJob& job);

// What is known of a load without caches, with what its prompts find on a side: of those that compute prompts, or of those that decode
// alone. taken: of the cache of each of the job's pools, the share that answers take.
[[nodiscard]] LoadMoments with_found(const LoadMoments& load, const ServingJob& job, const Deployment& deployment, bool of_prompts,
                                     const std::vector<double>& taken);

}  // namespace rehearse::sim

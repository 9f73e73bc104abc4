// The deployments that `tune` found by formula, simulated.
#pragma once

#include <functional>

#include "sim/serving/tune.hpp"

namespace rehearse::sim {

// Simulates the first ones of `best` (tune.confirm), more of them until one keeps the promise, and the first of each kind, on the same
// requests, and chooses: by cost or GPUs the first that keeps the promise, by a time the one with the least of it, by a rate the highest.
// Where the job does not say how many, none is simulated that can be no better: none behind the round of four with the one that is chosen
// by cost or GPUs; and of rates it is asked first whether it carries what another does. The same whatever the number of threads.
void confirm_tuned(const ServingJob& job, const ServingTuneSpec& spec, ServingTuning& tuning, const std::function<void(double)>& progress);

}  // namespace rehearse::sim

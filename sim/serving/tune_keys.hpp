// Reading the section `tune` of a serving job.
#pragma once

#include "config/names.hpp"
#include "config/node.hpp"
#include "config/shape.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// What it leaves out: as many GPUs as the clusters have (or the pools take), at the pools' prices. Throws
// config::InputError with position.
[[nodiscard]] ServingTuneSpec read_serving_tune(const config::Node& node, const ServingJob& job);
[[nodiscard]] ServingTuneSpec usual_serving_tune(const ServingJob& job);
[[nodiscard]] const config::Names<ServingGoal>& serving_goal_names();
[[nodiscard]] config::Shape serving_tune_shape();

}  // namespace rehearse::sim

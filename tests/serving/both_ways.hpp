// A serving job that its formula can carry, by formula and simulated.
#pragma once

#include <gtest/gtest.h>

#include "sim/serving/formula.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/simulation.hpp"

namespace rehearse::tests {

struct BothWays {
  sim::ServingResult formula, simulated;
};

[[nodiscard]] inline BothWays both_ways(const sim::ServingJob& job) {
  const sim::Deployment deployment = deploy(job);
  const sim::ServingPrediction prediction = predict_serving(job, deployment, sim::moments_of(job.load, job.seed).input);
  EXPECT_EQ(prediction.overloaded, "");
  const sim::ServingSetup setup = setup_of(job, deployment);
  return {prediction.result, result_of(job, setup, simulate_serving(setup))};
}

}  // namespace rehearse::tests

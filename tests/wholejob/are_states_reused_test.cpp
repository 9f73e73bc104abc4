// With simulated steps a state that looks like another to the job is not simulated again; and it would have given the same step.
#include <gtest/gtest.h>

#include "config/random.hpp"
#include "sim/wholejob/state_symmetry.hpp"
#include "tests/wholejob/runs.hpp"

namespace rehearse::sim {
namespace {

// 64 GPUs: tp 8, pp 2, dp 4. Nodes 0 to 3 hold stage 0 of replicas 0 to 3.
Job job(const std::string& simulation = "") { return tests::whole_job("training: {steps: 10}\nsimulation: {" + simulation + "}\n"); }

TEST(AreStatesReused, where_the_same_parts_are_slow_somewhere_else) {
  const Job healthy = job();
  const StateSymmetry symmetry(healthy);
  const auto key = [&](SlowParts slow) { return symmetry.key(slow); };
  const SlowParts two{.gpus = {{3, 1.3}, {12, 1.2}}};  // of replicas 0 and 1, both of stage 0
  EXPECT_EQ(key(two), key({.gpus = {{17, 1.2}, {31, 1.3}}}));
  EXPECT_NE(key(two), key({.gpus = {{3, 1.3}, {4, 1.2}}}));    // of one replica
  EXPECT_NE(key(two), key({.gpus = {{3, 1.3}, {44, 1.2}}}));   // of two stages
  EXPECT_NE(key(two), key({.gpus = {{3, 1.3}, {12, 1.25}}}));  // otherwise slow
  EXPECT_NE(key(two), key({.gpus = {{3, 1.3}}, .ports = {{12, 1.2}}}));
  // The second stage of the same pipeline, and that of another one.
  EXPECT_EQ(key({.gpus = {{3, 1.3}, {35, 1.2}}}), key({.gpus = {{9, 1.3}, {41, 1.2}}}));
  EXPECT_NE(key({.gpus = {{3, 1.3}, {35, 1.2}}}), key({.gpus = {{9, 1.3}, {33, 1.2}}}));
}

TEST(AreStatesReused, not_where_places_count) {
  const Job all = job("ranks: all"), rounds = job("collectives: step");
  EXPECT_TRUE(StateSymmetry(all).key({.gpus = {{3, 1.3}}}).empty());
  EXPECT_TRUE(StateSymmetry(rounds).key({.ports = {{3, 1.3}}}).empty());
  EXPECT_FALSE(StateSymmetry(rounds).key({.gpus = {{3, 1.3}}}).empty());
}

// Random pairs of slow parts: equal keys mean equal steps, simulated one by one.
TEST(AreStatesReused, only_where_the_step_is_the_same) {
  const Job healthy = job("granularity: stage");
  const StateSymmetry symmetry(healthy);
  config::Random random(7);
  const auto below = [&](int n) { return static_cast<int>(random.uniform() * n); };
  std::map<StateSymmetry::Key, double> steps;
  int alike = 0;
  for (int i = 0; i < 40; ++i) {
    ClusterState state;
    state.slow.gpus[below(64)] = 1.3;
    (below(2) == 0 ? state.slow.gpus : state.slow.ports)[below(64)] = 1.5;
    const double step_s = simulated_step_s(healthy, state);
    const auto [known, added] = steps.try_emplace(symmetry.key(state.slow), step_s);
    alike += added ? 0 : 1;
    EXPECT_NEAR(step_s, known->second, 1e-9 * step_s) << i;
  }
  EXPECT_GT(alike, 5);
}

// Slow GPUs anywhere in the job: many states, few steps. Fewer replicas are a job of their own.
TEST(AreStatesReused, and_counted) {
  const Job healthy = job("granularity: stage");
  StepTimes steps(healthy, 10, StepMethod::simulation);
  for (int rank = 0; rank < 32; ++rank) static_cast<void>(steps.at({.slow = {.gpus = {{rank, 1.3}}}}));
  EXPECT_EQ(steps.states_met(), 32U);
  EXPECT_EQ(steps.states(), 1U);
  for (int rank = 0; rank < 24; ++rank) static_cast<void>(steps.at({.replicas_lost = 1, .slow = {.gpus = {{rank, 1.3}}}}));
  EXPECT_EQ(steps.states_met(), 56U);
  EXPECT_EQ(steps.states(), 2U);
}

}  // namespace
}  // namespace rehearse::sim

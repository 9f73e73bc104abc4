#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

// Sums of a few doubles near 1: rounding stays below some 10 ulp.
constexpr double rounding = 1e-14;

TEST(PhasesAddUp, OnEveryRankAndInTheMean) {
  const StepResult result = hand_made_step("analytic");
  for (const RankResult& rank : result.ranks) EXPECT_NEAR(rank.phases.total(), result.step_s, rounding);
  EXPECT_NEAR(result.mean.total(), result.step_s, rounding);
}

TEST(PhasesAddUp, MeanIsWeightedByTheRanksThatOneStandsFor) {
  StepResult result = hand_made_step("analytic");
  result.ranks[0].ranks = 6;  // (6 * 1.2 + 2 * 1.4) / 8 = 1.25
  finish(result, 8192, 4e14, 8, 100e12);
  EXPECT_NEAR(result.mean[Phase::compute], 1.25, rounding);
}

TEST(PhasesAddUp, ThroughputFollowsFromTheStep) {
  const StepResult result = hand_made_step("analytic");
  EXPECT_DOUBLE_EQ(result.tokens_per_s, 8192 / 2.0);
  EXPECT_DOUBLE_EQ(result.tokens_per_s_per_gpu, 8192 / 2.0 / 4);
  EXPECT_DOUBLE_EQ(result.model_flops_per_gpu_per_s, 4e14 / 4 / 2);
  EXPECT_DOUBLE_EQ(result.mfu, 0.5);  // 50 of 100 TFLOP/s
  // mean bubble (0.5 + 0.3) / 2 = 0.4 of a step of 2: 0.4 / (2 - 0.4)
  EXPECT_NEAR(result.bubble_share, 0.25, rounding);
}

TEST(PhasesAddUp, AStepWithoutDurationIsRefused) {
  StepResult result = hand_made_step("analytic");
  result.step_s = 0;
  EXPECT_THROW(finish(result, 1, 1, 1, 1), std::logic_error);
}

TEST(PhasesAddUp, EveryPhaseHasANameAndAKeyOfItsOwn) {
  std::set<std::string_view> names, keys;
  for (std::size_t i = 0; i < phase_count; ++i) {
    names.insert(name_of(static_cast<Phase>(i)));
    keys.insert(key_of(static_cast<Phase>(i)));
  }
  EXPECT_EQ(names.size(), phase_count);
  EXPECT_EQ(keys.size(), phase_count);
  EXPECT_EQ(name_of(Phase::tp), "exposed tp");
  EXPECT_EQ(key_of(Phase::tp), "exposed_tp");
  EXPECT_EQ(key_of(Phase::waiting), "waiting");
}

}  // namespace
}  // namespace rehearse::sim

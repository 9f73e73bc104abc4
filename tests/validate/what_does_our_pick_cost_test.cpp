// The regret of a sweep: what the plan that we would have picked was measured at, against the best one.
#include <gtest/gtest.h>

#include <sstream>

#include "sim/report/reporter.hpp"
#include "sim/validate/regret.hpp"

namespace rehearse::sim {
namespace {

Outcome pick_outcome(const std::string& id, const std::string& sweep, double measured, double predicted, std::optional<bool> ran = true,
                     std::optional<bool> said_to_fit = true) {
  Outcome one;
  one.id = id;
  one.sweep = sweep;
  one.measured_tokens_per_s = measured;
  one.predicted_tokens_per_s = predicted;
  one.ran = ran;
  one.said_to_fit = one.surely_fits = said_to_fit;
  return one;
}

TEST(Regret, IsWhatThePickLacksOfTheBest) {
  const auto regrets = regrets_of({pick_outcome("a", "s", 100, 90), pick_outcome("b", "s", 80, 95), pick_outcome("c", "s", 50, 10)});
  ASSERT_EQ(regrets.size(), 1U);
  EXPECT_EQ(regrets[0].picked, "b");
  EXPECT_EQ(regrets[0].best, "a");
  EXPECT_DOUBLE_EQ(regrets[0].regret, 1 - 80.0 / 100);
  EXPECT_EQ(regrets[0].of_five, 0);
  EXPECT_EQ(regrets[0].cases, 3);
}

TEST(Regret, PicksOnlyWhatIsSaidToFit) {
  const auto regrets = regrets_of(
      {pick_outcome("a", "s", 100, 90), pick_outcome("b", "s", 80, 95, true, false), pick_outcome("c", "s", 0, 200, false, false)});
  ASSERT_EQ(regrets.size(), 1U);
  EXPECT_EQ(regrets[0].picked, "a");
  EXPECT_EQ(regrets[0].regret, 0);
  EXPECT_FALSE(regrets[0].out_of_memory);
}

TEST(Regret, OfAPickThatRanOutOfMemoryIsAll) {
  const auto regrets =
      regrets_of({pick_outcome("a", "s", 100, 90), pick_outcome("b", "s", 80, 85), pick_outcome("c", "s", 0, 200, false, true)});
  ASSERT_EQ(regrets.size(), 1U);
  EXPECT_TRUE(regrets[0].out_of_memory);
  EXPECT_EQ(regrets[0].regret, 1);
  EXPECT_EQ(regrets[0].of_five, 0);
}

TEST(Regret, IsOnlyWhereThereWasAChoice) {
  EXPECT_TRUE(regrets_of({pick_outcome("a", "s", 100, 90), pick_outcome("b", "s", 0, 95, false), pick_outcome("c", "", 50, 10),
                          pick_outcome("d", "", 60, 10)})
                  .empty());
  Outcome failed = pick_outcome("b", "s", 80, 95);
  failed.failed = "unknown key";
  EXPECT_TRUE(regrets_of({pick_outcome("a", "s", 100, 90), failed}).empty());
}

TEST(Regret, IsPrintedByItsSweepAndOnTheWhole) {
  std::ostringstream out;
  Report report;
  report.own(regrets_of(
      {pick_outcome("a", "s", 100, 90), pick_outcome("b", "s", 80, 95), pick_outcome("a", "t", 100, 90), pick_outcome("b", "t", 80, 70)}));
  ReporterRegistry::get("validation-regret").write(report, out);
  EXPECT_NE(out.str().find("2 sweeps: mean regret 10.0 %, of the best of five 0.0 %; 0 picked plans ran out of memory"), std::string::npos)
      << out.str();
}

TEST(Regret, TakesNoPlanThatMayRunOutWhereAnotherSurelyFits) {
  Outcome fast = pick_outcome("fast", "s", 0, 200, false, true), safe = pick_outcome("safe", "s", 90, 95),
          best = pick_outcome("best", "s", 100, 80);
  fast.surely_fits = false;
  const auto regrets = regrets_of({fast, safe, best});
  ASSERT_EQ(regrets.size(), 1U);
  EXPECT_EQ(regrets[0].picked, "safe");
  EXPECT_FALSE(regrets[0].out_of_memory);
}

// Expected: 200 x 0.2 = 40, 50 x 0.85 = 42.5, 80 x 0.6 = 48.
TEST(Regret, TakesTheLargestExpectedThroughputWhereNoneSurelyFits) {
  Outcome fast = pick_outcome("fast", "s", 0, 200, false, true), small = pick_outcome("small", "s", 60, 50),
          ran = pick_outcome("ran", "s", 100, 80);
  fast.surely_fits = small.surely_fits = ran.surely_fits = false;
  fast.chance = 0.2;
  small.chance = 0.85;
  ran.chance = 0.6;
  const auto regrets = regrets_of({fast, small, ran});
  ASSERT_EQ(regrets.size(), 1U);
  EXPECT_EQ(regrets[0].picked, "ran");
}

}  // namespace
}  // namespace rehearse::sim

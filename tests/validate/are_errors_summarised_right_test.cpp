#include <gtest/gtest.h>

#include <algorithm>

#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

constexpr double rounding = 1e-12;

Outcome outcome(const std::string& id, const std::string& group, double measured, double predicted) {
  Outcome made;
  made.id = id;
  made.group = group;
  made.measured[Metric::step_s] = measured;
  made.predicted[Metric::step_s] = predicted;
  return made;
}

// Errors +10 %, -20 %, +30 % in g (the last with a guessed field) and -40 % in h.
std::vector<Outcome> four_cases() {
  std::vector<Outcome> outcomes{outcome("a", "g", 1, 1.1), outcome("b", "g", 1, 0.8), outcome("c", "g", 1, 1.3), outcome("d", "h", 1, 0.6)};
  outcomes[2].inferred = {"batch.micro"};
  return outcomes;
}

const ErrorSummary& find(const std::vector<ErrorSummary>& summaries, const std::string& group, const std::string& cases) {
  return *std::ranges::find_if(summaries, [&](const ErrorSummary& each) { return each.group == group && each.cases == cases; });
}

TEST(ErrorSummary, HasTheNumbersOfItsGroup) {
  const auto summaries = summarise_errors(four_cases());
  const ErrorSummary& g = find(summaries, "g", "all");
  EXPECT_EQ(g.count, 3);
  EXPECT_NEAR(g.mean_abs, (0.1 + 0.2 + 0.3) / 3, rounding);
  EXPECT_NEAR(g.bias, (0.1 - 0.2 + 0.3) / 3, rounding);
  EXPECT_NEAR(g.median_abs, 0.2, rounding);
  EXPECT_NEAR(g.p90_abs, 0.3, rounding);
  EXPECT_NEAR(g.worst, 0.3, rounding);
  EXPECT_EQ(g.worst_id, "c");
  EXPECT_NEAR(find(summaries, "all", "all").worst, -0.4, rounding);
}

TEST(ErrorSummary, TellsGuessedJobsApart) {
  const auto summaries = summarise_errors(four_cases());
  EXPECT_EQ(find(summaries, "g", "stated").count, 2);
  EXPECT_EQ(find(summaries, "g", "inferred").count, 1);
  EXPECT_NEAR(find(summaries, "all", "inferred").mean_abs, 0.3, rounding);
}

TEST(ErrorSummary, LeavesFailuresOut) {
  auto outcomes = four_cases();
  outcomes[3].failed = "why";
  EXPECT_EQ(find(summarise_errors(outcomes), "all", "all").count, 3);
}

TEST(Quantile, IsTheNearestRank) {
  const std::vector<double> sorted{1, 2, 3, 4};
  EXPECT_EQ(quantile(sorted, 0.5), 2);
  EXPECT_EQ(quantile(sorted, 0.9), 4);
  EXPECT_EQ(quantile({7}, 0.01), 7);
}

Json stored(const std::vector<Outcome>& outcomes) {
  return validation_json({outcomes, summarise_errors(outcomes), summarise_verdicts(outcomes)});
}

TEST(Changes, NameCasesAndGroupsThatMoved) {
  const Json before = stored(four_cases());
  EXPECT_TRUE(validation_changes(before, before, 0.05).cases.empty());
  auto outcomes = four_cases();
  outcomes[0].predicted[Metric::step_s] = 1.2;  // +10 % -> +20 %
  outcomes[3].failed = "why";
  const ValidationChanges changes = validation_changes(before, stored(outcomes), 0.05);
  ASSERT_EQ(changes.cases.size(), 2);
  EXPECT_EQ(changes.cases[0]["what"], "a step_s");
  EXPECT_NEAR(changes.cases[0]["now"].get<double>(), 20, 1e-9);
  EXPECT_EQ(changes.cases[1]["before"], "ran");
  EXPECT_EQ(changes.cases[1]["now"], "failed");
  EXPECT_FALSE(changes.groups.empty());
}

}  // namespace
}  // namespace rehearse::sim

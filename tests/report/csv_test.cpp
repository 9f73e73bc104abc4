#include "sim/report/csv.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Csv, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_field("exposed tp"), "exposed tp");
  EXPECT_EQ(csv_field("a, b"), "\"a, b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, PhasesHaveOneRowPerRankAndPhase) {
  const StepResult result = hand_made_step("analytic");
  const auto lines = lines_of(written("phases-csv", Report(hand_made_job()).own(StepResults{{&result}})));
  ASSERT_EQ(lines.size(), 1 + result.ranks.size() * phase_count);
  EXPECT_EQ(lines[0], "method,rank,stage,ranks,phase,seconds,share");
  EXPECT_EQ(lines[1], "analytic,0,0,2,compute,1.2,0.6");
  EXPECT_EQ(lines[1 + phase_count], "analytic,2,1,2,compute,1.4,0.7");
}

TEST(Csv, ComparisonEndsWithTheStep) {
  const Comparison comparison = hand_made_comparison();
  const auto lines = lines_of(written("compare-csv", Report(hand_made_job()).own(StepResults{{&comparison.analytic}}).add(&comparison)));
  ASSERT_EQ(lines.size(), 1 + phase_count + 1);
  EXPECT_EQ(lines[0], "phase,analytic_s,simulated_s,critical_path_s,difference_s,reason");
  EXPECT_EQ(lines[1], fmt::format("compute,{0},{0},{0},0,", comparison.analytic.mean[Phase::compute]));
  EXPECT_TRUE(lines[1 + static_cast<std::size_t>(Phase::bubble)].ends_with(",\"uneven stages, and \"\"warm-up\"\" waits\""));
  // 2.2 - 2 as doubles
  EXPECT_EQ(lines.back(), fmt::format("step,2,2.2,1.8,{},stage 1 is slower than the mean", 2.2 - 2));
}

}  // namespace
}  // namespace rehearse::sim

#include <gtest/gtest.h>

#include "sim/validate/verdict_summary.hpp"

namespace rehearse::sim {
namespace {

Outcome verdict(const std::string& group, bool ran, bool said_to_fit) {
  Outcome made;
  made.group = group;
  made.ran = ran;
  made.said_to_fit = said_to_fit;
  return made;
}

// Of four that ran one is refused, of three that ran out of memory two are let through; what nobody said counts for nothing.
TEST(Verdicts, AreCountedByWhatTheyCost) {
  std::vector<Outcome> outcomes{verdict("g", true, true),   verdict("g", true, true),  verdict("g", true, false), verdict("h", true, true),
                                verdict("g", false, false), verdict("g", false, true), verdict("g", false, true), {}};
  const auto summaries = summarise_verdicts(outcomes);
  ASSERT_EQ(summaries.size(), 3U);
  const VerdictSummary& g = summaries[0];
  EXPECT_EQ(g.group, "g");
  EXPECT_EQ(g.ran, 3);
  EXPECT_EQ(g.ran_out, 3);
  EXPECT_EQ(g.false_alarms, 1);
  EXPECT_EQ(g.missed, 2);
  EXPECT_DOUBLE_EQ(g.right(), 0.5);
  EXPECT_EQ(summaries[2].group, "all");
  EXPECT_EQ(summaries[2].ran, 4);
  EXPECT_DOUBLE_EQ(summaries[2].right(), 1 - 3.0 / 7);
}

}  // namespace
}  // namespace rehearse::sim

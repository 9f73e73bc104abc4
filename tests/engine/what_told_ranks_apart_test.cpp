// The result says what kept ranks from being folded: reasons that each told more of them apart, down to the ranks that were simulated.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "random_jobs.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

std::vector<std::pair<std::string, int>> told_apart(const sim::Job& job) {
  std::vector<std::pair<std::string, int>> out;
  for (const sim::ToldApart& told : sim::simulate_in_child(job).told_apart) out.emplace_back(told.by, told.classes);
  return out;
}

using Reasons = std::vector<std::pair<std::string, int>>;

sim::Job two_stages(const std::string& simulation, int nics = 8) {
  return small_job(16, "{tp: 2, pp: 2}", "{global: 16, micro: 1, sequence: 1024}", "simulation: {collectives: ring" + simulation + "}\n",
                   nics);
}

TEST(WhatToldRanksApart, StagesAndNothingElseWhereAllIsAlike) {
  EXPECT_EQ(told_apart(two_stages("")), (Reasons{{"pipeline stages", 2}}));
  EXPECT_EQ(told_apart(small_job(8, "{tp: 1}", "{global: 16, micro: 1, sequence: 1024}")), Reasons{});
}

// A slow GPU; then its tensor-parallel peer, its data-parallel group and the other stage's ranks that they talk to.
TEST(WhatToldRanksApart, WhatIsSlow) {
  const Reasons reasons = told_apart(two_stages(", faults: [gpu 0 slow 1.5]"));
  ASSERT_EQ(reasons.size(), 3U);
  EXPECT_EQ(reasons[1], (std::pair<std::string, int>{"what is slow or fails", 3}));
  EXPECT_EQ(reasons[2].first, "places in nodes, leaves and pods");
}

TEST(WhatToldRanksApart, ThatAllWereAskedFor) {
  EXPECT_EQ(told_apart(two_stages(", ranks: all")), (Reasons{{"simulation.ranks: all", 16}}));
  EXPECT_EQ(told_apart(two_stages(", routing: ecmp")), (Reasons{{"ECMP, which leads each flow its own way", 16}}));
}

TEST(WhatToldRanksApart, DownToTheRanksThatAreSimulated) {
  RandomJobs jobs(5);
  for (int i = 0; i < 40; ++i) {
    const std::string text = jobs.next() + "}\n";
    const sim::StepResult result = sim::simulate_in_child(job_of(text));
    int classes = 1;
    for (const sim::ToldApart& told : result.told_apart) {
      EXPECT_GT(told.classes, classes) << told.by << '\n' << text;
      classes = told.classes;
    }
    EXPECT_EQ(classes, static_cast<int>(result.ranks.size())) << text;
  }
}

}  // namespace
}  // namespace rehearse::tests

// Groups of ranks among which experts lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "workloads/rank_grid.hpp"

namespace rehearse::tests {
namespace {

workloads::Parallel layout(int tp, int cp, int pp, int dp, int ep, int etp) {
  workloads::Parallel parallel;
  parallel.tp = tp;
  parallel.cp = cp;
  parallel.pp = pp;
  parallel.dp = dp;
  parallel.ep = ep;
  parallel.etp = etp;
  return parallel;
}

// Every rank is in one group of each kind; ep * etp ranks hold all experts once; edp ranks hold the same ones.
TEST(ExpertRanks, GroupsPartitionEveryStage) {
  const workloads::Parallel layouts[] = {layout(2, 2, 2, 4, 8, 1), layout(2, 2, 2, 4, 4, 2), layout(1, 1, 4, 8, 4, 1),
                                         layout(8, 1, 2, 2, 1, 8)};
  for (const workloads::Parallel& parallel : layouts) {
    const workloads::RankGrid grid(parallel);
    ASSERT_TRUE(grid.experts_keep_stages());
    for (const auto kind : {workloads::GroupKind::ep, workloads::GroupKind::etp, workloads::GroupKind::edp}) {
      std::map<int, int> seen;
      for (int rank = 0; rank < grid.size(); ++rank) {
        const std::vector<int> members = grid.group(kind, rank);
        EXPECT_EQ(std::ranges::count(members, rank), 1);
        for (const int member : members) {
          EXPECT_EQ(grid.group(kind, member), members);
          EXPECT_EQ(grid.coordinates(member).pp, grid.coordinates(rank).pp);
          if (kind != workloads::GroupKind::ep) {
            EXPECT_EQ(grid.expert_rank(member), grid.expert_rank(rank));
          }
        }
        if (members.front() == rank) seen[static_cast<int>(members.size())] += static_cast<int>(members.size());
      }
      ASSERT_EQ(seen.size(), 1U);
      EXPECT_EQ(seen.begin()->second, grid.size());
    }
  }
  // Megatron-LM's default: experts over neighbouring data-parallel ranks.
  EXPECT_EQ(workloads::RankGrid(layout(2, 1, 1, 8, 4, 2)).group(workloads::GroupKind::ep, 3), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(workloads::RankGrid(layout(2, 1, 1, 8, 4, 1)).group(workloads::GroupKind::ep, 3), (std::vector<int>{0, 1, 2, 3}));
  workloads::Parallel inside = layout(2, 1, 2, 4, 8, 1);
  inside.order = {"tp", "pp", "cp", "ep", "dp"};
  EXPECT_FALSE(workloads::RankGrid(inside).experts_keep_stages());
}

}  // namespace
}  // namespace rehearse::tests

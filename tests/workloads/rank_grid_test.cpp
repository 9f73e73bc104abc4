// Which ranks form which groups, against Megatron-LM's documented example and by properties over random plans.
#include "workloads/rank_grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace rehearse::workloads {
namespace {

Parallel plan(int tp, int cp, int dp, int pp, std::vector<std::string> order = {"tp", "cp", "ep", "dp", "pp"}) {
  Parallel parallel;
  parallel.tp = tp;
  parallel.cp = cp;
  parallel.dp = dp;
  parallel.pp = pp;
  parallel.order = std::move(order);
  return parallel;
}

using Ranks = std::vector<int>;

// megatron/core/parallel_state.py, initialize_model_parallel: 16 GPUs, tensor 2, pipeline 4.
TEST(RankGrid, MegatronsExample) {
  const RankGrid grid(plan(2, 1, 2, 4));
  EXPECT_EQ(grid.group(GroupKind::tp, 0), (Ranks{0, 1}));
  EXPECT_EQ(grid.group(GroupKind::tp, 15), (Ranks{14, 15}));
  EXPECT_EQ(grid.group(GroupKind::dp, 0), (Ranks{0, 2}));
  EXPECT_EQ(grid.group(GroupKind::dp, 5), (Ranks{5, 7}));
  EXPECT_EQ(grid.group(GroupKind::pp, 0), (Ranks{0, 4, 8, 12}));
  EXPECT_EQ(grid.group(GroupKind::pp, 7), (Ranks{3, 7, 11, 15}));
  EXPECT_EQ(grid.group(GroupKind::embedding, 8), (Ranks{0, 12}));
}

// --use-tp-pp-dp-mapping: pipeline stages before replicas.
TEST(RankGrid, PipelineBeforeData) {
  const RankGrid grid(plan(2, 1, 2, 4, {"tp", "cp", "ep", "pp", "dp"}));
  EXPECT_EQ(grid.group(GroupKind::pp, 0), (Ranks{0, 2, 4, 6}));
  EXPECT_EQ(grid.group(GroupKind::dp, 0), (Ranks{0, 8}));
}

// Hybrid sharding: shards among neighbours in dp_cp order, copies across.
TEST(RankGrid, ShardGroupsAndTheirCopies) {
  const RankGrid grid(plan(2, 2, 4, 1, {"tp", "cp", "ep", "dp", "pp"}), false, 4);
  EXPECT_EQ(grid.group(GroupKind::dp_cp, 1), (Ranks{1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(grid.group(GroupKind::shard, 1), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(grid.group(GroupKind::shard, 13), (Ranks{9, 11, 13, 15}));
  EXPECT_EQ(grid.group(GroupKind::replicas, 1), (Ranks{1, 9}));
  EXPECT_EQ(grid.group(GroupKind::replicas, 14), (Ranks{6, 14}));
}

TEST(RankGrid, EveryKindOfGroupPartitionsTheRanks) {
  std::mt19937 random(1);
  std::vector<std::string> order{"tp", "cp", "ep", "dp", "pp"};
  for (int i = 0; i < 100; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    const auto size = [&] { return 1 << (random() % 3); };
    const int cp = size(), dp = size();
    const RankGrid grid(plan(size(), cp, dp, size(), order), false, cp * dp > 1 ? cp * dp / 2 : 1);
    for (const GroupKind kind :
         {GroupKind::tp, GroupKind::cp, GroupKind::dp, GroupKind::pp, GroupKind::dp_cp, GroupKind::shard, GroupKind::replicas}) {
      std::multiset<int> seen;
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Ranks members = grid.group(kind, rank);
        EXPECT_TRUE(std::ranges::count(members, rank) == 1);
        for (const int member : members) EXPECT_EQ(grid.group(kind, member), members);
        if (members.front() == rank) seen.insert(members.begin(), members.end());
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(grid.size()));
      EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), static_cast<std::size_t>(grid.size()));
    }
  }
}

TEST(RankGrid, CoordinatesAndRanksAreInverse) {
  const RankGrid grid(plan(4, 2, 3, 5, {"cp", "dp", "tp", "pp", "ep"}));
  for (int rank = 0; rank < grid.size(); ++rank) {
    EXPECT_EQ(grid.rank(grid.coordinates(rank)), rank);
    EXPECT_EQ(grid.previous_stage(grid.next_stage(rank)), rank);
  }
}

}  // namespace
}  // namespace rehearse::workloads

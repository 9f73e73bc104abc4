// Two ranks of one program, each with two collectives: in which groups decides whether they wait for one another.
#include <gtest/gtest.h>

#include "workloads/step_graph.hpp"

namespace rehearse::workloads {
namespace {

// Rank 0 meets in the first and the second group, rank 1 in `its`; groups of tensor, context and data parallelism, of the ranks named.
StepGraph two_ranks(const std::vector<std::vector<int>>& groups, const std::vector<std::uint32_t>& its) {
  StepGraphBuilder builder({{0, 0, 1}, {1, 0, 1}});
  constexpr std::array kinds{GroupKind::tp, GroupKind::cp, GroupKind::dp};
  std::vector<std::uint32_t> calls;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::uint32_t group = builder.add_group(kinds[i], groups[i], {groups[i].begin(), groups[i].end()});
    calls.push_back(builder.add_call({"x", CollectiveKind::all_reduce, kinds[i], 8, Pass::forward}, 1, group));
  }
  builder.begin_block(0);
  for (const std::size_t i : {0, 1}) builder.add({OpKind::collective, Stream::tp, Phase::tp, 0, calls[i]}, "x");
  builder.repeat_block(0, 1, {calls[its[0]], calls[its[1]]}, {}, {});
  return std::move(builder).freeze();
}

TEST(DoesAStepWaitForItself, not_when_both_meet_in_the_same_order) { EXPECT_EQ(two_ranks({{0, 1}, {0, 1}}, {0, 1}).size(), 4U); }

TEST(DoesAStepWaitForItself, when_each_is_first_where_the_other_is_second) {
  EXPECT_THROW(static_cast<void>(two_ranks({{0, 1}, {0, 1}}, {1, 0})), std::logic_error);
}

// What is first on one rank is second on the other, and yet neither waits for itself.
TEST(DoesAStepWaitForItself, not_when_only_their_places_do) { EXPECT_EQ(two_ranks({{0, 1}, {0}, {1}}, {2, 0}).size(), 4U); }

}  // namespace
}  // namespace rehearse::workloads

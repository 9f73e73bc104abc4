#include <gtest/gtest.h>

#include "groups.hpp"
#include "symbolic_buffers.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;
using workloads::CollectiveRegistry;
using workloads::GroupShape;
using workloads::Round;

constexpr double data_buffer = 3840;

void check_data(const std::string& algorithm, const NamedGroup& group, CollectiveKind kind, int root) {
  const auto rounds = CollectiveRegistry::get(algorithm).rounds(kind, group.shape, data_buffer, root);
  EXPECT_EQ(wrong_data(rounds, kind, group.shape, data_buffer, root), "")
      << algorithm << " " << workloads::name_of(kind) << ", " << group.name << ", root " << root;
}

void check_all_groups(const std::string& algorithm) {
  auto groups = many_groups();
  for (const NamedGroup& group : meshes(small_groups())) groups.push_back(group);
  for (const NamedGroup& group : with_reducing_switches(small_groups())) groups.push_back(group);
  for (const NamedGroup& group : with_reducing_networks(small_groups())) groups.push_back(group);
  for (const NamedGroup& group : tori()) groups.push_back(group);
  for (const NamedGroup& group : groups) {
    for (const CollectiveKind kind : all_kinds()) {
      if (!serves(algorithm, kind, group.shape)) continue;
      check_data(algorithm, group, kind, 0);
      if (kind == CollectiveKind::broadcast) check_data(algorithm, group, kind, group.shape.size / 2);
      if (kind == CollectiveKind::broadcast) check_data(algorithm, group, kind, group.shape.size - 1);
    }
  }
}

TEST(EverybodyEndsWithTheRightData, ring) { check_all_groups("ring"); }
TEST(EverybodyEndsWithTheRightData, halving_doubling) { check_all_groups("halving-doubling"); }
TEST(EverybodyEndsWithTheRightData, direct) { check_all_groups("direct"); }
TEST(EverybodyEndsWithTheRightData, binomial) { check_all_groups("binomial"); }
TEST(EverybodyEndsWithTheRightData, nvls) { check_all_groups("nvls"); }
TEST(EverybodyEndsWithTheRightData, nvls_tree) { check_all_groups("nvls-tree"); }
TEST(EverybodyEndsWithTheRightData, collnet) { check_all_groups("collnet"); }
TEST(EverybodyEndsWithTheRightData, nvls_sharp) { check_all_groups("nvls-sharp"); }
TEST(EverybodyEndsWithTheRightData, torus_rings) { check_all_groups("torus-rings"); }
TEST(EverybodyEndsWithTheRightData, pxn) { check_all_groups("pxn"); }
TEST(EverybodyEndsWithTheRightData, tree) { check_all_groups("tree"); }
TEST(EverybodyEndsWithTheRightData, hierarchical) { check_all_groups("hierarchical"); }

// The check itself: a lost round, a round played twice and a transfer with the wrong blocks are noticed.
TEST(EverybodyEndsWithTheRightData, a_spoilt_algorithm_is_noticed) {
  const GroupShape group = blocks(2, 4);
  const auto good = CollectiveRegistry::get("ring").rounds(CollectiveKind::all_reduce, group, data_buffer);
  const auto verdict = [&](const std::vector<Round>& rounds) {
    return wrong_data(rounds, CollectiveKind::all_reduce, group, data_buffer, 0);
  };
  ASSERT_EQ(verdict(good), "");
  auto lost = good;
  lost.erase(lost.begin() + 3);
  EXPECT_NE(verdict(lost), "");
  auto twice = good;
  twice.insert(twice.begin(), twice.front());
  EXPECT_EQ(verdict(twice), "counted twice");
  auto wrong = good;
  wrong[0].transfers[0].first_block += 1;
  EXPECT_NE(verdict(wrong), "");
  auto fat = good;
  fat[0].transfers[0].bytes *= 2;
  EXPECT_EQ(verdict(fat), "size of a transfer does not fit its blocks");
}

}  // namespace
}  // namespace rehearse::tests

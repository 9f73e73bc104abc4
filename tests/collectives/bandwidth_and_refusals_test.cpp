#include <gtest/gtest.h>

#include <stdexcept>

#include "executor.hpp"
#include "groups.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;
using workloads::CollectiveRegistry;
using workloads::GroupShape;
using workloads::nccl_bandwidth;

// nccl-tests, doc/PERFORMANCE.md: "busbw = algbw x 2(n-1)/n" for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for
// broadcast and send-recv. 8 ranks, 8 GB in 0.1 s: algbw 80 GB/s.
TEST(BandwidthIsAsNcclTestsPrintIt, for_eight_ranks) {
  const auto busbw = [](CollectiveKind kind) { return nccl_bandwidth(kind, 8, 8e9, 0.1).busbw_bytes_per_s; };
  EXPECT_DOUBLE_EQ(nccl_bandwidth(CollectiveKind::all_reduce, 8, 8e9, 0.1).algbw_bytes_per_s, 80e9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::all_reduce), 140e9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::all_gather), 70e9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::reduce_scatter), 70e9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::all_to_all), 70e9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::broadcast), 80e9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::send_recv), 80e9);
}

// The purpose of busbw: without latency a ring reaches the speed of the port, whatever the collective and the number of ranks.
TEST(BandwidthIsAsNcclTestsPrintIt, a_ring_without_latency_reaches_the_port_speed) {
  const Speeds speeds{.intra_bytes_per_s = 450e9};
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                          CollectiveKind::all_to_all, CollectiveKind::send_recv}) {
    for (const int n : {2, 3, 8, 13}) {
      const double seconds = execute(CollectiveRegistry::get("ring").rounds(kind, one_domain(n), 1e9), one_domain(n), speeds);
      EXPECT_NEAR(nccl_bandwidth(kind, n, 1e9, seconds).busbw_bytes_per_s, 450e9, 450e9 * 1e-9) << workloads::name_of(kind) << " " << n;
    }
  }
}

TEST(BandwidthIsAsNcclTestsPrintIt, a_bandwidth_needs_a_time) {
  EXPECT_THROW((void)nccl_bandwidth(CollectiveKind::all_reduce, 8, 1, 0), std::invalid_argument);
  EXPECT_THROW((void)nccl_bandwidth(CollectiveKind::all_reduce, 0, 1, 1), std::invalid_argument);
}

TEST(CollectivesAreFoundByName, all_of_them) {
  EXPECT_EQ(CollectiveRegistry::names(),
            (std::vector<std::string>{"binomial", "collnet", "direct", "halving-doubling", "hierarchical", "nvls", "nvls-sharp",
                                      "nvls-tree", "one-shot", "pxn", "ring", "torus-rings", "tree", "two-shot"}));
  EXPECT_EQ(workloads::name_of(CollectiveKind::all_reduce), "all-reduce");
  EXPECT_EQ(workloads::name_of(CollectiveKind::all_gather), "all-gather");
  EXPECT_EQ(workloads::name_of(CollectiveKind::reduce_scatter), "reduce-scatter");
  EXPECT_EQ(workloads::name_of(CollectiveKind::broadcast), "broadcast");
  EXPECT_EQ(workloads::name_of(CollectiveKind::all_to_all), "all-to-all");
  EXPECT_EQ(workloads::name_of(CollectiveKind::send_recv), "send-recv");
}

TEST(CollectivesAreFoundByName, groups_know_their_domains) {
  EXPECT_EQ(dealt(7, 3).domains(), 3);
  EXPECT_FALSE(dealt(7, 3).uniform());
  EXPECT_TRUE(dealt(6, 3).uniform());
  EXPECT_TRUE(one_domain(5).uniform());
}

template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "";
}

// One that it serves: NVLSTree, PXN and what SHARP does go between domains, rings on a torus between its nodes, all others inside a domain.
GroupShape group_for(const std::string& algorithm) {
  GroupShape group = one_domain(4);
  for (const char* between : {"nvls-tree", "pxn", "collnet", "nvls-sharp"}) {
    if (algorithm == between) group = blocks(2, 4);
  }
  if (algorithm == "torus-rings") {
    group = blocks(4, 1);
    group.torus = {2, 2};
  }
  group.switch_reduces = group.network_reduces = true;
  return group;
}

// What is not supported is refused by both members alike, and what is supported by neither.
TEST(CollectivesRefuse, kinds_they_do_not_have) {
  for (const std::string& name : CollectiveRegistry::names()) {
    const auto& collective = CollectiveRegistry::get(name);
    for (const CollectiveKind kind : all_kinds()) {
      const std::string message = collective.supports(kind) ? "" : "'" + name + "' has no " + std::string(workloads::name_of(kind));
      const GroupShape group = group_for(name);
      const auto rounds = refusal([&] { (void)collective.rounds(kind, group, 1); });
      const auto form = refusal([&] { (void)collective.closed_form(kind, group, 1); });
      const auto volumes = refusal([&] { (void)collective.volumes(kind, group, 1); });
      for (const std::string& said : {rounds, form, volumes}) {
        EXPECT_NE(said.find(message), std::string::npos) << said;
        EXPECT_EQ(said.empty(), message.empty()) << said;
      }
    }
  }
}

TEST(CollectivesRefuse, direct_between_domains) {
  const auto& direct = CollectiveRegistry::get("direct");
  const auto said = refusal([&] { (void)direct.rounds(CollectiveKind::all_reduce, blocks(2, 4), 1); });
  EXPECT_NE(said.find("collective 'direct' stays inside one domain"), std::string::npos) << said;
  EXPECT_NE(said.find("2 domains"), std::string::npos) << said;
  EXPECT_EQ(refusal([&] { (void)direct.closed_form(CollectiveKind::all_reduce, blocks(2, 4), 1); }), said);
  EXPECT_EQ(refusal([&] { (void)direct.rounds(CollectiveKind::all_to_all, blocks(2, 4), 1); }), "");
  EXPECT_NE(refusal([&] { (void)direct.rounds(CollectiveKind::all_to_all, domains_of({4, 2}), 1); }), "");
}

TEST(CollectivesRefuse, what_the_switch_cannot_do) {
  for (const char* name : {"nvls", "nvls-tree"}) {
    const auto said = refusal([&] { (void)CollectiveRegistry::get(name).rounds(CollectiveKind::all_reduce, blocks(2, 4), 1); });
    EXPECT_NE(said.find("intra_node.in_network"), std::string::npos) << said;
    EXPECT_FALSE(CollectiveRegistry::get(name).fits(CollectiveKind::all_reduce, blocks(2, 4)));
  }
}

TEST(CollectivesRefuse, what_the_network_cannot_do) {
  for (const char* name : {"collnet", "nvls-sharp"}) {
    const auto said = refusal([&] { (void)CollectiveRegistry::get(name).rounds(CollectiveKind::all_reduce, blocks(2, 4), 1); });
    EXPECT_NE(said.find("network.in_network"), std::string::npos) << said;
    EXPECT_FALSE(CollectiveRegistry::get(name).fits(CollectiveKind::all_reduce, blocks(2, 4)));
  }
  const auto said = refusal([] { (void)CollectiveRegistry::get("torus-rings").rounds(CollectiveKind::all_gather, blocks(8, 1), 1); });
  EXPECT_NE(said.find("whole axes of a torus"), std::string::npos) << said;
}

TEST(CollectivesRefuse, malformed_groups_and_strange_roots) {
  const GroupShape homeless{.size = 3, .domain = {0, 0}};
  const GroupShape nobody{.size = 0, .domain = {}};
  for (const std::string& name : CollectiveRegistry::names()) {
    const auto& collective = CollectiveRegistry::get(name);
    const CollectiveKind kind = collective.supports(CollectiveKind::all_reduce) ? CollectiveKind::all_reduce : CollectiveKind::all_to_all;
    EXPECT_THROW((void)collective.rounds(kind, homeless, 1), std::invalid_argument);
    EXPECT_THROW((void)collective.closed_form(kind, homeless, 1), std::invalid_argument);
    EXPECT_THROW((void)collective.closed_form(kind, nobody, 1), std::invalid_argument);
    EXPECT_THROW((void)collective.rounds(kind, one_domain(2), 1, 2), std::invalid_argument);
    EXPECT_THROW((void)collective.rounds(kind, one_domain(2), 1, -1), std::invalid_argument);
  }
}

}  // namespace
}  // namespace rehearse::tests

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "executor.hpp"
#include "groups.hpp"
#include "ports.hpp"

namespace rehearse::tests {
namespace {

using workloads::ClosedForm;
using workloads::CollectiveKind;
using workloads::CollectiveRegistry;
using workloads::GroupShape;
using workloads::Round;
using workloads::Transfer;

constexpr double buffer = 3840;
constexpr double rounding = 1e-9;  // sums of up to some ten thousand doubles

double total(const std::vector<Transfer>& transfers) {
  double sum = 0;
  for (const Transfer& t : transfers) sum += t.bytes;
  return sum;
}

std::vector<Round> rounds_of(const std::string& algorithm, CollectiveKind kind, const GroupShape& group) {
  return CollectiveRegistry::get(algorithm).rounds(kind, group, buffer);
}

int log2_up(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

// What must move at least, in buffers, over all members: an all-gather brings n-1 blocks of 1/n to each of n; a reduce-scatter takes as
// many away; an all-reduce is both. Ring, halving-doubling and hierarchical move exactly that.
double least_buffers(CollectiveKind kind, int n) { return (kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (n - 1); }

TEST(EveryByteIsCounted, bandwidth_optimal_algorithms_move_no_byte_too_many) {
  for (const std::string algorithm : {"ring", "halving-doubling", "hierarchical"}) {
    for (const NamedGroup& group : many_groups()) {
      for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
        if (!serves(algorithm, kind, group.shape)) continue;
        const double least = buffer * least_buffers(kind, group.shape.size);
        EXPECT_NEAR(total(flatten(rounds_of(algorithm, kind, group.shape))), least, rounding * least) << algorithm << ", " << group.name;
      }
    }
  }
}

// n members send a block of 1/n to n-1 others; a message to the next; the buffer over n-1 edges of a tree, once or twice.
TEST(EveryByteIsCounted, in_the_other_collectives) {
  for (const NamedGroup& group : many_groups()) {
    const int n = group.shape.size;
    EXPECT_NEAR(total(flatten(rounds_of("ring", CollectiveKind::all_to_all, group.shape))), buffer * (n - 1), rounding * buffer * n)
        << group.name;
    EXPECT_DOUBLE_EQ(total(flatten(rounds_of("ring", CollectiveKind::send_recv, group.shape))), n > 1 ? buffer * n : 0) << group.name;
    EXPECT_DOUBLE_EQ(total(flatten(rounds_of("binomial", CollectiveKind::broadcast, group.shape))), buffer * (n - 1)) << group.name;
    EXPECT_DOUBLE_EQ(total(flatten(rounds_of("binomial", CollectiveKind::all_reduce, group.shape))), 2 * buffer * (n - 1)) << group.name;
    EXPECT_NEAR(total(flatten(rounds_of("tree", CollectiveKind::all_reduce, group.shape))), 2 * buffer * (n - 1), rounding * buffer * n)
        << group.name;
  }
}

void expect_busiest_ports(const std::string& algorithm, CollectiveKind kind, const NamedGroup& group) {
  const ClosedForm form = CollectiveRegistry::get(algorithm).closed_form(kind, group.shape, buffer);
  const BusiestPorts ports = busiest_ports(flatten(rounds_of(algorithm, kind, group.shape)), group.shape);
  const std::string what = algorithm + " " + std::string(workloads::name_of(kind)) + ", " + group.name;
  EXPECT_NEAR(form.intra_bytes, ports.intra, rounding * buffer) << what;
  EXPECT_NEAR(form.inter_bytes, ports.inter, rounding * buffer) << what;
}

TEST(EveryByteIsCounted, closed_forms_name_the_load_of_the_busiest_port) {
  for (const NamedGroup& group : many_groups()) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      expect_busiest_ports("ring", kind, group);
      if (group.shape.uniform()) expect_busiest_ports("hierarchical", kind, group);
      if (group.shape.domains() == 1) expect_busiest_ports("direct", kind, group);
    }
    if (group.shape.uniform()) expect_busiest_ports("ring", CollectiveKind::all_to_all, group);
    if (group.shape.uniform()) expect_busiest_ports("hierarchical", CollectiveKind::all_to_all, group);
    expect_busiest_ports("ring", CollectiveKind::send_recv, group);
    if (group.shape.uniform()) expect_busiest_ports("direct", CollectiveKind::all_to_all, group);
  }
}

// S/n over every link of a mesh of n; 1/(n-1) or 1/(n-2) of a lap over every link that a channel of the ring uses.
TEST(EveryByteIsCounted, on_every_link_of_a_mesh) {
  for (const NamedGroup& group : meshes(small_groups())) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      expect_busiest_ports("ring", kind, group);
      if (group.shape.uniform()) expect_busiest_ports("hierarchical", kind, group);
      if (group.shape.domains() == 1) expect_busiest_ports("direct", kind, group);
    }
    if (!group.shape.uniform()) continue;
    expect_busiest_ports("direct", CollectiveKind::all_to_all, group);
    // In one domain it is the pairwise exchange, one link after the other.
    if (group.shape.domains() > 1) expect_busiest_ports("hierarchical", CollectiveKind::all_to_all, group);
  }
}

// 8 members, S = 1: 2/8 over each of 56 links with direct exchanges; 14/8 over 6 rings of 8 links.
TEST(EveryByteIsCounted, a_mesh_of_eight_has_seven_links_at_a_member_to_share_an_all_reduce) {
  const GroupShape mesh{.size = 8, .domain = std::vector<int>(8, 0), .mesh = true};
  EXPECT_DOUBLE_EQ(CollectiveRegistry::get("direct").closed_form(CollectiveKind::all_reduce, mesh, 1).intra_bytes, 2.0 / 8);
  EXPECT_DOUBLE_EQ(CollectiveRegistry::get("ring").closed_form(CollectiveKind::all_reduce, mesh, 1).intra_bytes, 14.0 / 8 / 6);
  EXPECT_DOUBLE_EQ(CollectiveRegistry::get("ring").closed_form(CollectiveKind::all_reduce, one_domain(8), 1).intra_bytes, 14.0 / 8);
}

TEST(EveryByteIsCounted, rings_of_a_mesh_share_no_link) {
  for (int n = 3; n <= 33; ++n) {
    const GroupShape mesh{.size = n, .domain = std::vector<int>(static_cast<std::size_t>(n), 0), .mesh = true};
    std::set<std::pair<int, int>> links;
    const std::vector<Round> rounds = rounds_of("ring", CollectiveKind::all_gather, mesh);
    for (const Transfer& t : rounds.front().transfers) {
      EXPECT_TRUE(links.emplace(t.from, t.to).second) << n << " members, " << t.from << " to " << t.to;
    }
    EXPECT_EQ(static_cast<int>(links.size()), n * (n % 2 == 0 ? n - 2 : n - 1));
  }
}

TEST(EveryByteIsCounted, volumes_are_the_sum_of_the_rounds) {
  for (const std::string algorithm : {"ring", "hierarchical"}) {
    for (const NamedGroup& group : many_groups()) {
      for (const CollectiveKind kind : all_kinds()) {
        if (!serves(algorithm, kind, group.shape)) continue;
        const auto volumes = CollectiveRegistry::get(algorithm).volumes(kind, group.shape, buffer);
        const auto expected = workloads::sum_per_pair(flatten(rounds_of(algorithm, kind, group.shape)));
        ASSERT_EQ(volumes.size(), expected.size()) << group.name;
        for (std::size_t i = 0; i < volumes.size(); ++i) {
          EXPECT_EQ(std::tie(volumes[i].from, volumes[i].to, volumes[i].rail_of),
                    std::tie(expected[i].from, expected[i].to, expected[i].rail_of));
          EXPECT_NEAR(volumes[i].bytes, expected[i].bytes, rounding * buffer) << group.name;
        }
      }
    }
  }
}

TEST(EveryByteIsCounted, numbers_of_rounds) {
  for (int n = 1; n <= 64; ++n) {
    const auto count = [&](const std::string& algorithm, CollectiveKind kind) {
      return static_cast<int>(rounds_of(algorithm, kind, one_domain(n)).size());
    };
    EXPECT_EQ(count("ring", CollectiveKind::all_reduce), 2 * (n - 1));
    EXPECT_EQ(count("ring", CollectiveKind::all_gather), n - 1);
    EXPECT_EQ(count("ring", CollectiveKind::reduce_scatter), n - 1);
    EXPECT_EQ(count("ring", CollectiveKind::broadcast), 2 * (n - 1));
    EXPECT_EQ(count("ring", CollectiveKind::all_to_all), n - 1);
    EXPECT_EQ(count("ring", CollectiveKind::send_recv), n > 1 ? 1 : 0);
    EXPECT_EQ(count("halving-doubling", CollectiveKind::all_gather), log2_up(n));
    EXPECT_EQ(count("halving-doubling", CollectiveKind::all_reduce), 2 * log2_up(n));
    EXPECT_EQ(count("binomial", CollectiveKind::broadcast), log2_up(n));
    EXPECT_EQ(count("binomial", CollectiveKind::all_reduce), 2 * log2_up(n));
  }
}

TEST(EveryByteIsCounted, by_trees_and_switches) {
  for (const NamedGroup& group : small_groups()) expect_busiest_ports("tree", CollectiveKind::all_reduce, group);
  for (const NamedGroup& group : meshes(small_groups())) expect_busiest_ports("tree", CollectiveKind::all_reduce, group);
  for (const NamedGroup& group : with_reducing_switches(small_groups())) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      for (const std::string algorithm : {"nvls", "nvls-tree"}) {
        if (serves(algorithm, kind, group.shape)) expect_busiest_ports(algorithm, kind, group);
      }
    }
  }
}

// Both halves of the buffer up and down: 2S through the NIC of a domain of one that has a parent and two children in one tree; depth log2.
TEST(EveryByteIsCounted, double_binary_trees_carry_twice_the_buffer_and_are_as_deep_as_the_logarithm) {
  for (int domains = 4; domains <= 64; ++domains) {
    const ClosedForm form = CollectiveRegistry::get("tree").closed_form(CollectiveKind::all_reduce, blocks(domains, 1), buffer);
    EXPECT_LE(form.inter_bytes, (domains % 2 == 0 ? 2 : 2.5) * buffer) << domains;
    EXPECT_LE(form.rounds_inter, 2 * log2_up(domains)) << domains;
  }
  const ClosedForm form = CollectiveRegistry::get("tree").closed_form(CollectiveKind::all_reduce, blocks(64, 8), buffer);
  EXPECT_DOUBLE_EQ(form.inter_bytes, 2 * buffer / 8);
  EXPECT_DOUBLE_EQ(form.intra_bytes, 2 * buffer * 7 / 8);
  EXPECT_EQ(form.rounds_inter, 2 * 6);
  EXPECT_EQ(form.rounds_intra, 2 * 7);
}

// 4 domains of 8: per member 7/8 of the ring's volume over the scale-up port and 1/8 over its NIC.
TEST(EveryByteIsCounted, a_ring_over_domains_spreads_over_all_nics) {
  const double volume = 2 * 31.0 / 32 * buffer;
  const ClosedForm form = CollectiveRegistry::get("ring").closed_form(CollectiveKind::all_reduce, blocks(4, 8), buffer);
  EXPECT_DOUBLE_EQ(form.intra_bytes, volume * 7 / 8);
  EXPECT_DOUBLE_EQ(form.inter_bytes, volume / 8);
  EXPECT_EQ(form.rounds_inter, 2 * 4);
  EXPECT_EQ(form.rounds_intra, 2 * 31 - 2 * 4);
  EXPECT_FALSE(form.sequential);
}

// Flows per NIC, direction and round.
std::map<Port, int> nic_flows(const Round& round, const Ports& ports) {
  std::map<Port, int> flows;
  for (const Transfer& t : round.transfers) {
    for (const Port& port : ports.of(t)) flows[port] += port.nic() ? 1 : 0;
  }
  std::erase_if(flows, [](const auto& entry) { return entry.second == 0; });
  return flows;
}

TEST(EveryByteIsCounted, every_nic_of_a_uniform_ring_has_one_flow_out_and_one_in_per_round) {
  for (const GroupShape& group : {blocks(2, 2), blocks(3, 4), blocks(4, 8), blocks(5, 1), dealt(12, 3)}) {
    const Ports ports(group);
    for (const Round& round : rounds_of("ring", CollectiveKind::all_reduce, group)) {
      const auto flows = nic_flows(round, ports);
      EXPECT_EQ(flows.size(), 2 * static_cast<std::size_t>(group.size));
      for (const auto& [port, count] : flows) EXPECT_EQ(count, 1);
    }
  }
}

// The rail is that of the member whose local index the receiver has, in the sender's domain.
TEST(EveryByteIsCounted, a_ring_enters_a_domain_over_the_receivers_rail) {
  const GroupShape group = blocks(3, 4);
  const auto rounds = rounds_of("ring", CollectiveKind::all_gather, group);
  for (const Transfer& t : rounds.front().transfers) {
    if (t.from / 4 == t.to / 4) continue;
    EXPECT_EQ(t.rail_of, t.from / 4 * 4 + t.to % 4);
    EXPECT_EQ(t.to % 4, t.channel);
  }
}

// Domains of rails {2, 3}, {0, 1, 2, 3} and {0, 1, 2, 3}: into the first a ring's two channels come over its own two, and between the
// others over the first two.
TEST(EveryByteIsCounted, a_ring_keeps_to_rails_that_both_domains_have) {
  GroupShape group = domains_of({2, 4, 4});
  group.rail = {2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  std::map<std::pair<int, int>, std::vector<int>> rails;  // {from, to} domain: by channel
  const auto rounds = rounds_of("ring", CollectiveKind::all_gather, group);
  for (const Transfer& t : rounds.front().transfers) {
    const int from = group.domain[static_cast<std::size_t>(t.from)], to = group.domain[static_cast<std::size_t>(t.to)];
    if (from == to) continue;
    EXPECT_EQ(group.domain[static_cast<std::size_t>(t.rail_of)], from);
    rails[{from, to}].push_back(group.rail[static_cast<std::size_t>(t.rail_of)]);
  }
  const std::map<std::pair<int, int>, std::vector<int>> expected{{{0, 1}, {2, 3}}, {{1, 2}, {0, 1}}, {{2, 0}, {2, 3}}};
  EXPECT_EQ(rails, expected);
}

// In blocks of two: each local index crosses over the rails that a ring's channel of that number has.
TEST(EveryByteIsCounted, so_do_the_rings_across_domains) {
  GroupShape group = domains_of({2, 4});
  group.rail = {2, 3, 0, 1, 2, 3};
  for (const auto& round : rounds_of("hierarchical", CollectiveKind::all_gather, group)) {
    for (const Transfer& t : round.transfers) {
      if (group.domain[static_cast<std::size_t>(t.from)] == group.domain[static_cast<std::size_t>(t.to)]) continue;
      EXPECT_EQ(group.rail[static_cast<std::size_t>(t.rail_of)], 2 + t.from % 2);
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

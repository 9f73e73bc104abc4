#include <gtest/gtest.h>

#include "executor.hpp"
#include "groups.hpp"
#include "smpi_run.hpp"

namespace rehearse::tests {
namespace {

using workloads::ClosedForm;
using workloads::CollectiveKind;
using workloads::CollectiveRegistry;
using workloads::GroupShape;

// SMPI puts an MPI header of 16 bytes on every message; see the first test.
constexpr double header_bytes = 16;
// surf/precision: SimGrid takes times that differ by less for equal; the start may be off by as much, and every message.
constexpr double precision_s = 1e-9;
constexpr long smpi_buffer = 65536L * 3 * 5;  // divisible by all numbers of ranks below

constexpr Speeds speeds{.alpha_intra_s = 2e-3, .alpha_inter_s = 5e-3, .intra_bytes_per_s = 4e6, .inter_bytes_per_s = 1e6};

struct Comparison {
  std::string ours;
  CollectiveKind kind;
  std::string smpi_collective, smpi_algorithms;
  bool at_once = false;  // in a round every rank sends to all others
};

SmpiFabric fabric_of(int ranks, int per_domain) {
  return {.ranks = ranks,
          .per_domain = per_domain,
          .alpha_intra_s = speeds.alpha_intra_s,
          .alpha_inter_s = speeds.alpha_inter_s,
          .intra_bytes_per_s = speeds.intra_bytes_per_s,
          .inter_bytes_per_s = speeds.inter_bytes_per_s};
}

double seconds_with_headers(const ClosedForm& form, int messages_per_round) {
  return evaluate(form, speeds) +
         header_bytes * messages_per_round * (form.rounds_intra / speeds.intra_bytes_per_s + form.rounds_inter / speeds.inter_bytes_per_s);
}

void expect_agreement(const Comparison& c, const GroupShape& group, int per_domain) {
  const ClosedForm form = CollectiveRegistry::get(c.ours).closed_form(c.kind, group, smpi_buffer);
  const double theirs = smpi_seconds(fabric_of(group.size, per_domain), c.smpi_collective, smpi_buffer, c.smpi_algorithms);
  const int messages = c.at_once ? group.size - 1 : 1;
  const double tolerance = precision_s * (1 + messages * (form.rounds_intra + form.rounds_inter));
  EXPECT_NEAR(theirs, seconds_with_headers(form, messages), tolerance)
      << c.ours << " against " << c.smpi_algorithms << ", " << group.size << " ranks";
}

void expect_agreement_for(const Comparison& c, const std::vector<int>& sizes) {
  for (const int n : sizes) {
    expect_agreement(c, one_domain(n), n);             // all over scale-up ports
    if (n < 64) expect_agreement(c, blocks(n, 1), 1);  // all over NICs
  }
}

const std::vector<int> any_size{2, 3, 4, 5, 8, 12, 16, 64};
const std::vector<int> powers_of_two{2, 4, 8, 16, 64};

// T = alpha + (bytes + 16)/B for one message, large or small.
TEST(SmpiAgrees, on_the_time_of_one_message) {
  for (const long bytes : {1L, 1000L, 100'000L, 10'000'000L}) {
    const double expected = speeds.alpha_intra_s + (bytes + header_bytes) / speeds.intra_bytes_per_s;
    EXPECT_NEAR(smpi_seconds(fabric_of(2, 2), "broadcast", bytes, "bcast:binomial_tree"), expected, 2 * precision_s) << bytes;
  }
}

TEST(SmpiAgrees, on_ring_all_reduce) { expect_agreement_for({"ring", CollectiveKind::all_reduce, "all-reduce", "allreduce:lr"}, any_size); }

TEST(SmpiAgrees, on_ring_all_gather) {
  expect_agreement_for({"ring", CollectiveKind::all_gather, "all-gather", "allgather:ring"}, any_size);
}

TEST(SmpiAgrees, on_ring_reduce_scatter) {
  expect_agreement_for({"ring", CollectiveKind::reduce_scatter, "reduce-scatter", "reduce_scatter:ompi_ring"}, any_size);
}

TEST(SmpiAgrees, on_pairwise_all_to_all) {
  expect_agreement_for({"ring", CollectiveKind::all_to_all, "all-to-all", "alltoall:ring"}, any_size);
}

TEST(SmpiAgrees, on_send_recv) { expect_agreement_for({"ring", CollectiveKind::send_recv, "send-recv", ""}, any_size); }

TEST(SmpiAgrees, on_recursive_doubling_all_gather) {
  expect_agreement_for({"halving-doubling", CollectiveKind::all_gather, "all-gather", "allgather:rdb"}, powers_of_two);
}

TEST(SmpiAgrees, on_bruck_all_gather_of_any_size) {
  expect_agreement_for({"halving-doubling", CollectiveKind::all_gather, "all-gather", "allgather:bruck"}, any_size);
}

TEST(SmpiAgrees, on_recursive_halving_reduce_scatter) {
  expect_agreement_for({"halving-doubling", CollectiveKind::reduce_scatter, "reduce-scatter", "reduce_scatter:ompi_basic_recursivehalving"},
                       powers_of_two);
}

TEST(SmpiAgrees, on_rabenseifner_all_reduce) {
  expect_agreement_for({"halving-doubling", CollectiveKind::all_reduce, "all-reduce", "allreduce:rab_rdb"}, powers_of_two);
}

TEST(SmpiAgrees, on_binomial_broadcast) {
  expect_agreement_for({"binomial", CollectiveKind::broadcast, "broadcast", "bcast:binomial_tree"}, any_size);
}

TEST(SmpiAgrees, on_reduce_and_broadcast_by_binomial_trees) {
  expect_agreement_for({"binomial", CollectiveKind::all_reduce, "all-reduce", "allreduce:redbcast reduce:binomial bcast:binomial_tree"},
                       any_size);
}

// The three phases as MPI collectives on sub-communicators.
TEST(SmpiAgrees, on_hierarchical_all_reduce_over_domains) {
  const Comparison phases{"hierarchical", CollectiveKind::all_reduce, "hierarchical-all-reduce",
                          "reduce_scatter:ompi_ring allreduce:lr allgather:ring"};
  for (const auto& [domains, per_domain] : {std::pair{2, 2}, {2, 4}, {4, 4}, {3, 5}}) {
    expect_agreement(phases, blocks(domains, per_domain), per_domain);
  }
}

TEST(SmpiAgrees, on_the_other_hierarchical_collectives) {
  using enum CollectiveKind;
  for (const auto& [domains, per_domain] : {std::pair{2, 2}, {2, 4}, {4, 4}, {3, 5}}) {
    for (const Comparison& phases : {Comparison{"hierarchical", all_gather, "hierarchical-all-gather", "allgather:ring"},
                                     {"hierarchical", reduce_scatter, "hierarchical-reduce-scatter", "reduce_scatter:ompi_ring"},
                                     {"hierarchical", all_to_all, "hierarchical-all-to-all", "alltoall:ring"}}) {
      expect_agreement(phases, blocks(domains, per_domain), per_domain);
    }
  }
}

// All messages of a rank at once share its port.
TEST(SmpiAgrees, on_direct_exchanges_in_one_domain) {
  using enum CollectiveKind;
  for (const int n : {2, 3, 4, 5, 8, 12, 16}) {
    for (const Comparison& direct :
         {Comparison{"direct", all_to_all, "all-to-all", "alltoall:basic_linear", true},
          {"direct", all_gather, "all-gather", "allgather:spreading_simple", true},
          {"direct", all_reduce, "direct-all-reduce", "alltoall:basic_linear allgather:spreading_simple", true},
          {"two-shot", all_reduce, "direct-all-reduce", "alltoall:basic_linear allgather:spreading_simple", true}}) {
      expect_agreement(direct, one_domain(n), n);
    }
  }
}

// Recursive doubling over domains of a power of two: the near exchanges over scale-up ports, the far ones over NICs; MPI's recursive
// halving sends the largest blocks farthest, ours nearest, so only the all-reduce by Rabenseifner, which halves vectors while doubling
// distances, compares.
TEST(SmpiAgrees, on_rabenseifner_all_reduce_over_domains) {
  for (const auto& [domains, per_domain] : {std::pair{2, 2}, {2, 4}, {4, 4}}) {
    expect_agreement({"halving-doubling", CollectiveKind::all_reduce, "all-reduce", "allreduce:rab_rdb"}, blocks(domains, per_domain),
                     per_domain);
  }
}

}  // namespace
}  // namespace rehearse::tests

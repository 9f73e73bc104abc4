#include <gtest/gtest.h>

#include <set>

#include "groups.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;
using workloads::CollectiveRegistry;
using workloads::dependencies;
using workloads::Dependency;
using workloads::Round;
using workloads::Transfer;

Round single(int from, int to, int channel = 0) { return {{{.from = from, .to = to, .bytes = 1, .channel = channel}}}; }

Dependency last_of(const std::vector<Round>& rounds) { return dependencies(rounds).back(); }

using Ids = std::vector<std::uint32_t>;

TEST(TransfersWaitForWhatTheyNeed, for_the_data_that_reach_the_sender) {
  EXPECT_EQ(last_of({single(0, 1), single(1, 2)}).before_alpha, Ids{0});
  EXPECT_EQ(last_of({single(0, 1), single(1, 2)}).before_bytes, -1);
  EXPECT_EQ(last_of({single(0, 1), single(1, 0)}).before_alpha, Ids{0});
}

TEST(TransfersWaitForWhatTheyNeed, a_member_deals_with_its_partners_one_by_one) {
  EXPECT_EQ(last_of({single(0, 1), single(0, 2)}).before_alpha, Ids{0});
  EXPECT_EQ(last_of({single(0, 2), single(1, 2)}).before_alpha, Ids{0});
}

TEST(TransfersWaitForWhatTheyNeed, a_stream_only_keeps_the_order_of_its_bytes) {
  const Dependency streamed = last_of({single(0, 1), single(0, 1)});
  EXPECT_EQ(streamed.before_alpha, Ids{});
  EXPECT_EQ(streamed.before_bytes, 0);
}

TEST(TransfersWaitForWhatTheyNeed, not_for_others_nor_for_what_the_receiver_sends_nor_for_other_channels) {
  EXPECT_EQ(last_of({single(0, 1), single(2, 3)}).before_alpha, Ids{});
  EXPECT_EQ(last_of({single(1, 2), single(0, 1)}).before_alpha, Ids{});
  EXPECT_EQ(last_of({single(0, 1, 0), single(1, 2, 1)}).before_alpha, Ids{});
  EXPECT_EQ(last_of({single(0, 1, 0), single(0, 1, 1)}).before_bytes, -1);
}

// The rule as the header states it, looked up transfer by transfer: for every pair of members only the last transfer counts, since a stream
// keeps its order.
Dependency by_the_words(const std::vector<Transfer>& all, std::size_t earlier, const Transfer& t) {
  Dependency out;
  std::set<std::pair<int, int>> seen;
  for (std::size_t i = earlier; i-- > 0;) {
    const Transfer& e = all[i];
    if (e.channel != t.channel || !seen.insert({e.from, e.to}).second) continue;
    const bool stream = e.from == t.from && e.to == t.to;
    if (stream) out.before_bytes = static_cast<std::int64_t>(i);
    if (!stream && (e.to == t.from || e.from == t.from || e.to == t.to))
      out.before_alpha.insert(out.before_alpha.begin(), static_cast<std::uint32_t>(i));
  }
  return out;
}

void expect_as_the_words_say(const std::vector<Round>& rounds) {
  const auto found = dependencies(rounds);
  std::vector<Transfer> all;
  for (const Round& round : rounds) {
    const std::size_t earlier = all.size();
    all.insert(all.end(), round.transfers.begin(), round.transfers.end());
    for (std::size_t i = earlier; i < all.size(); ++i) {
      const Dependency expected = by_the_words(all, earlier, all[i]);
      ASSERT_EQ(found[i].before_alpha, expected.before_alpha);
      ASSERT_EQ(found[i].before_bytes, expected.before_bytes);
    }
  }
  ASSERT_EQ(found.size(), all.size());
}

TEST(TransfersWaitForWhatTheyNeed, in_every_algorithm) {
  for (const std::string& name : CollectiveRegistry::names()) {
    for (const auto& group : {one_domain(7), one_domain(8), blocks(2, 4), blocks(3, 3), domains_of({3, 2, 1})}) {
      for (const CollectiveKind kind : all_kinds()) {
        if (serves(name, kind, group)) expect_as_the_words_say(CollectiveRegistry::get(name).rounds(kind, group, 1));
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

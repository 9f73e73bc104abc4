// A timeline makes its events as they are asked for: in order, the same for one rank as among all, and in no memory to speak of.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/engine/simulate.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::tests {
namespace {

using sim::TimelineEvent;

auto place_of(const TimelineEvent& event) { return std::tuple(event.start_s, event.rank, event.stream, event.end_s); }

sim::Timeline timeline_of_all_ranks(int sequences, const std::string& more = "") {
  const std::string batch = fmt::format("{{global: {}, micro: 1, sequence: 1024}}", sequences);
  const std::string simulation = fmt::format("simulation: {{ranks: all, granularity: operator{}}}\n", more);
  return sim::simulate(small_job(32, "{tp: 4, pp: 4, sp: true}", batch, simulation)).timeline;
}

std::size_t memory_in_use() {
  const auto use = ::mallinfo2();
  return use.uordblks + use.hblkhd;
}

void expect_in_order(const sim::Timeline& timeline) {
  std::vector<std::vector<TimelineEvent>> by_rank(timeline.ranks.size());
  TimelineEvent before;
  before.start_s = -1;
  std::size_t events = 0;
  timeline.events->each([&](const TimelineEvent& event) {
    ++events;
    EXPECT_LT(place_of(before), place_of(event));
    EXPECT_LT(event.start_s, event.end_s);
    by_rank.at(event.rank).push_back(event);
    before = event;
  });
  EXPECT_GT(events, 1000U);
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    std::size_t i = 0;
    timeline.events->each_of(rank, [&](const TimelineEvent& event) {
      ASSERT_LT(i, by_rank[rank].size());
      EXPECT_EQ(place_of(event), place_of(by_rank[rank][i]));
      EXPECT_EQ(event.name, by_rank[rank][i].name);
      ++i;
    });
    EXPECT_EQ(i, by_rank[rank].size());
  }
}

TEST(TimelineEvents, ComeInOrderForAllRanksAndForOne) {
  expect_in_order(timeline_of_all_ranks(32));
  expect_in_order(timeline_of_all_ranks(32, ", steps: 2"));
  expect_in_order(timeline_of_all_ranks(32, ", faults: [gpu 5 at 20 ms]"));
}

// Cursors of the ranks' streams, however long the step is.
TEST(TimelineEvents, TakeNoMemory) {
  for (const int sequences : {32, 256}) {
    const sim::Timeline timeline = timeline_of_all_ranks(sequences);
    const std::size_t before = memory_in_use();
    std::size_t most = 0, events = 0;
    timeline.events->each([&](const TimelineEvent&) {
      if (++events % 64 == 0) most = std::max(most, memory_in_use());
    });
    EXPECT_LT(most - std::min(most, before), 1024 * timeline.ranks.size()) << events << " events";
  }
}

// Where links list no protocols, Simple is a protocol that nobody knows, unless it is asked for.
TEST(TimelineCollectives, SayTheProtocolWhereTheModelKnowsIt) {
  const auto protocols = [](const std::string& cluster, const std::string& asked) {
    const sim::Job job =
        sim::load_job({"llama3-8b-8-h100",
                       {{"cluster", cluster}, {"batch", "{global: 8, micro: 1, sequence: 1024}"}, {"simulation.protocol", asked}},
                       {}});
    std::set<std::string> said;
    for (const sim::TimelineCollective& collective : sim::simulate(job).timeline.collectives) said.insert(collective.protocol);
    return said;
  };
  EXPECT_TRUE(protocols("dgx-h100-ndr400", "auto").contains("Simple"));
  EXPECT_EQ(protocols("mi300x-8", "auto"), std::set<std::string>{""});
  EXPECT_TRUE(protocols("mi300x-8", "simple").contains("Simple"));
}

}  // namespace
}  // namespace rehearse::tests

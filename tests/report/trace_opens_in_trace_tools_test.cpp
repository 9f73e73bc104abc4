#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "sim/report/kineto.hpp"
#include "sim/report/trace_events.hpp"
#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

using nlohmann::json;

json trace_of(const Timeline& timeline) { return json::parse(written("trace", Report(hand_made_job()).add(&timeline))); }

std::vector<json> events_of(const json& trace, const std::string& ph) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == ph) events.push_back(event);
  }
  return events;
}

// The format counts in microseconds; three decimals make nanoseconds.
long long nanoseconds(const json& microseconds) { return std::llround(microseconds.get<double>() * 1e3); }

std::string label(const json& trace, const std::string& kind, int pid, int tid) {
  for (const json& event : events_of(trace, "M")) {
    if (event.at("name") == kind && event.at("pid") == pid && event.at("tid") == tid) return event.at("args").at("name");
  }
  return "";
}

TEST(Trace, TheHeadIsThatOfAKinetoTrace) {
  const json trace = trace_of(hand_made_timeline());
  EXPECT_EQ(trace.at("schemaVersion"), 1);
  const json& info = trace.at("distributedInfo");
  EXPECT_EQ(info.at("backend"), "nccl");
  EXPECT_EQ(info.at("rank"), 0);
  EXPECT_EQ(info.at("world_size"), 4);
  EXPECT_EQ(info.at("pg_count"), 2);
  EXPECT_EQ(info.at("pg_config").at(0),
            json({{"pg_name", "0"}, {"pg_desc", "tp"}, {"backend_config", "cuda:nccl"}, {"pg_size", 2}, {"ranks", {2, 3}}}));
  EXPECT_EQ(trace.at("deviceProperties").at(0).at("name"), "a100");
  EXPECT_EQ(trace.at("deviceProperties").at(0).at("totalGlobalMem"), 80000000000);
}

TEST(Trace, TracksCarryTheNamesOfRanksAndStreams) {
  const json trace = trace_of(hand_made_timeline());
  EXPECT_EQ(label(trace, "process_name", 0, 0), "rank 0 (stage 0, node 0, x2)");
  EXPECT_EQ(label(trace, "process_name", 2, 0), "rank 2 (stage 1, node 1)");
  EXPECT_EQ(label(trace, "thread_name", 0, 1), "compute");
  EXPECT_EQ(label(trace, "thread_name", 0, 4), "d2h");
  EXPECT_EQ(label(trace, "thread_name", 2, 4), "") << "a stream without events gets no track";
}

TEST(Trace, EventsSayWhatTheyAre) {
  const json forward = events_of(trace_of(hand_made_timeline()), "X").at(0);
  EXPECT_EQ(forward.at("name"), "F0");
  EXPECT_EQ(forward.at("cat"), "kernel");
  EXPECT_EQ(forward.at("pid"), 0);
  EXPECT_EQ(forward.at("tid"), 1);
  EXPECT_EQ(nanoseconds(forward.at("ts")), 0);
  EXPECT_EQ(nanoseconds(forward.at("dur")), 1000000 - 1);
  EXPECT_EQ(forward.at("args").at("device"), 0);
  EXPECT_EQ(forward.at("args").at("phase"), "compute");
  EXPECT_EQ(forward.at("args").at("micro-batch"), 0);
  EXPECT_EQ(forward.at("args").at("layer"), 3);
  EXPECT_FALSE(forward.at("args").contains("chunk"));
}

TEST(Trace, TimesKeepTheirNanoseconds) {
  const json last = events_of(trace_of(hand_made_timeline()), "X").back();
  EXPECT_EQ(nanoseconds(last.at("ts")), 1500000);
  EXPECT_EQ(nanoseconds(last.at("dur")), 1000000 - 1);  // 2.5000004 ms end at 2,500,000.4 ns
}

TEST(Trace, CollectivesLookLikeNcclKernels) {
  const json gather = events_of(trace_of(hand_made_timeline()), "X").at(3);
  EXPECT_EQ(gather.at("name"), "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  const json& args = gather.at("args");
  EXPECT_EQ(args.at("operation"), "attention all-gather");
  EXPECT_EQ(args.at("Collective name"), "_allgather_base");
  EXPECT_EQ(args.at("In msg nelems"), 512);    // 1024 bytes of bf16
  EXPECT_EQ(args.at("Out msg nelems"), 1024);  // from 2 ranks
  EXPECT_EQ(args.at("Group size"), 2);
  EXPECT_EQ(args.at("dtype"), "BFloat16");
  EXPECT_EQ(args.at("Process Group Name"), "0");
  EXPECT_EQ(args.at("Process Group Description"), "tp");
  EXPECT_EQ(args.at("Process Group Ranks"), "[2, 3]");
  EXPECT_EQ(args.at("stream"), 2);
}

TEST(Trace, CopiesToTheHostAreCopies) {
  const json offload = events_of(trace_of(hand_made_timeline()), "X").at(2);
  EXPECT_EQ(offload.at("cat"), "gpu_memcpy");
  EXPECT_EQ(offload.at("name"), "Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(offload.at("args").at("operation"), "offload \"F0\"");
  EXPECT_EQ(offload.at("args").at("bytes"), 2000000);
  EXPECT_EQ(offload.at("args").at("memory bandwidth (GB/s)"), 2);  // 2 MB in 1 ms
}

TEST(Trace, ArrowsComeInPairsInsideTheirSlices) {
  const json trace = trace_of(hand_made_timeline());
  const auto starts = events_of(trace, "s");
  const auto ends = events_of(trace, "f");
  const auto slices = events_of(trace, "X");
  ASSERT_EQ(starts.size(), 1U);
  ASSERT_EQ(ends.size(), 1U);
  for (const std::string key : {"id", "cat", "name"}) EXPECT_EQ(starts[0].at(key), ends[0].at(key));
  EXPECT_EQ(ends[0].at("bp"), "e");
  const auto inside = [](const json& arrow, const json& slice) {
    const long long from = nanoseconds(slice.at("ts"));
    const long long at = nanoseconds(arrow.at("ts"));
    return arrow.at("pid") == slice.at("pid") && arrow.at("tid") == slice.at("tid") && from <= at &&
           at < from + nanoseconds(slice.at("dur"));
  };
  EXPECT_TRUE(inside(starts[0], slices[1]));
  EXPECT_TRUE(inside(ends[0], slices[3]));
  EXPECT_LE(nanoseconds(starts[0].at("ts")), nanoseconds(ends[0].at("ts")));
}

// Back-to-back operations of 1/3 microsecond: start and end fall between nanoseconds.
Timeline back_to_back(int count) {
  Timeline timeline;
  timeline.streams = {"compute"};
  timeline.ranks = {{}};
  const auto events = std::make_shared<ListedEvents>();
  for (int i = 0; i < count; ++i) {
    TimelineEvent event;
    event.name = "op";
    event.start_s = i * 1e-6 / 3;
    event.end_s = (i + 1) * 1e-6 / 3;
    events->list.push_back(event);
  }
  timeline.events = events;
  return timeline;
}

// Readers take ts from the first event of a thread or of the file and add dur, as doubles: without the nanosecond some find 10^-11 of
// overlap.
TEST(Trace, EventsOfATrackNeverOverlapWhenAddedUpAsDoublesFromAnyOrigin) {
  const auto events = events_of(trace_of(back_to_back(10000)), "X");
  ASSERT_EQ(events.size(), 10000U);
  int without = 0;
  for (const std::size_t origin : {0, 1, 17, 4711}) {
    const double first = events[origin].at("ts").get<double>();
    for (std::size_t i = origin + 1; i < events.size(); ++i) {
      const json& before = events[i - 1];
      EXPECT_EQ(nanoseconds(events[i].at("ts")) - nanoseconds(before.at("ts")) - nanoseconds(before.at("dur")), 1) << i;
      const double start = before.at("ts").get<double>() - first, duration = before.at("dur").get<double>(),
                   next = events[i].at("ts").get<double>() - first;
      EXPECT_LE(start + duration, next) << i;
      without += start + (duration * 1000 + 1) / 1000 > next ? 1 : 0;
    }
  }
  EXPECT_GT(without, 0) << "else this test tests nothing";
}

TEST(Trace, OperationsHaveNamesAloneWhenAskedFor) {
  const Timeline timeline = hand_made_timeline();
  const json trace = json::parse(written("trace", Report(hand_made_job()).add(&timeline).own(TraceStyle{.with_args = false})));
  for (const json& slice : events_of(trace, "X")) EXPECT_FALSE(slice.contains("args"));
}

TEST(Trace, IsWholeBeyondTheSizeOfTheWriteBuffer) {
  constexpr int count = 20000;  // some 3 MB, the buffer holds 1 MiB
  EXPECT_EQ(events_of(trace_of(back_to_back(count)), "X").size(), static_cast<std::size_t>(count));
}

TEST(Trace, KernelNamesAreThoseOfNccl) {
  const auto name = [](std::string collective, std::string dtype, double bytes = 8, std::string algorithm = "ring",
                       std::string protocol = "") {
    return kernel_name({.name = std::move(collective),
                        .group = "dp",
                        .dtype = std::move(dtype),
                        .bytes = bytes,
                        .group_size = 2,
                        .group_ranks = {},
                        .algorithm = std::move(algorithm),
                        .protocol = std::move(protocol)});
  };
  EXPECT_EQ(name("allreduce", "BFloat16"), "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("allreduce", "BFloat16", 1e6, "tree"), "ncclDevKernel_AllReduce_Sum_bf16_TREE_SIMPLE(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("allreduce", "Float", 8, "nvls"), "ncclDevKernel_AllReduce_Sum_f32_NVLS_SIMPLE(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("_reduce_scatter_base", "Float"), "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("broadcast", "Half"), "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  // Where the model knows the protocol, that one, whatever the size.
  EXPECT_EQ(name("broadcast", "Half", 8, "ring", "Simple"), "ncclDevKernel_Broadcast_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("broadcast", "Half", 1e6, "ring", "LL128"), "ncclDevKernel_Broadcast_RING_LL128(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("send", "BFloat16"), "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(name("all_to_allv", "BFloat16"), "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)");
}

TEST(Trace, LongGroupsAreCutAfterThirtyRanksAsKinetoDoes) {
  std::vector<int> ranks(31);
  std::iota(ranks.begin(), ranks.end(), 0);
  const TimelineCollective collective{
      .name = "allreduce", .group = "dp", .dtype = "Float", .bytes = 40, .group_size = 31, .group_ranks = ranks};
  const json args = json::parse(fmt::format("{{{}}}", kernel_args(collective, 0)));
  EXPECT_TRUE(args.at("Process Group Ranks").get<std::string>().ends_with(", 28, 29, ...]"));
  EXPECT_EQ(args.at("In msg nelems"), 10);
  EXPECT_EQ(args.at("Out msg nelems"), 10);
}

}  // namespace
}  // namespace rehearse::sim

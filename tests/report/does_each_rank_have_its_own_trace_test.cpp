#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "sim/report/gzip.hpp"
#include "sim/report/host_launches.hpp"
#include "sim/report/rank_traces.hpp"
#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

using nlohmann::json;

long long ns_of(const json& microseconds) { return std::llround(microseconds.get<double>() * 1e3); }

std::vector<json> slices(const json& trace, const std::string& category) {
  std::vector<json> found;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == category) found.push_back(event);
  }
  return found;
}

json rank_trace(const Timeline& timeline, std::size_t rank) {
  const JobSummary job = hand_made_job();
  std::ostringstream out;
  RankTraces(job, timeline).write(rank, out);
  return json::parse(out.str());
}

TEST(RankTrace, HasItsOwnRankAndGroupsInTheHead) {
  const Timeline timeline = hand_made_timeline();
  const JobSummary job = hand_made_job();
  std::ostringstream out;
  RankTraces(job, timeline).write(1, out);
  EXPECT_NE(out.str().find(R"("rank": 2,)"), std::string::npos) << "HolisticTraceAnalysis wants white space behind the colon";
  const json trace = json::parse(out.str());
  EXPECT_EQ(trace.at("distributedInfo").at("pg_count"), 2);  // tp 2-3 and the pair 0-2
  EXPECT_EQ(rank_trace(timeline, 0).at("distributedInfo").at("pg_count"), 1);
}

TEST(RankTrace, FilesAreNamedByRank) {
  const Timeline timeline = hand_made_timeline();
  const JobSummary job = hand_made_job();
  const RankTraces traces(job, timeline);
  EXPECT_EQ(traces.files(false).at(1).name, "rank2.json");
  EXPECT_EQ(traces.files(true).at(1).name, "rank2.json.gz");
}

TEST(RankTrace, EveryOperationIsLaunchedBeforeItBegins) {
  const Timeline timeline = hand_made_timeline();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const json trace = rank_trace(timeline, rank);
    std::map<int, json> launches;
    for (const json& launch : slices(trace, "cuda_runtime")) launches[launch.at("args").at("correlation")] = launch;
    std::size_t operations = 0;
    for (const std::string category : {"kernel", "gpu_memcpy"}) {
      for (const json& operation : slices(trace, category)) {
        const json& launch = launches.at(operation.at("args").at("correlation"));
        EXPECT_LE(ns_of(launch.at("ts")) + ns_of(launch.at("dur")), ns_of(operation.at("ts")));
        EXPECT_EQ(ns_of(launch.at("dur")), 2000 - 3) << "the driver's part of 8 us, and a nanosecond for each that it ends with";
        EXPECT_EQ(launch.at("name"), category == "kernel" ? "cudaLaunchKernel" : "cudaMemcpyAsync");
        ++operations;
      }
    }
    EXPECT_EQ(operations, launches.size());
    EXPECT_EQ(slices(trace, "cpu_op").size(), launches.size());
  }
}

// Rank 0 launches F0 in 8 us from the beginning on: all GPUs' operations are 8 us later than on the timeline, on the other rank too.
TEST(RankTrace, OperationsKeepTheirDistances) {
  const Timeline timeline = hand_made_timeline();
  EXPECT_EQ(ns_of(slices(rank_trace(timeline, 0), "kernel").at(0).at("ts")), 8000);
  EXPECT_EQ(ns_of(slices(rank_trace(timeline, 1), "kernel").at(1).at("ts")), 8000 + 1500000);
}

TEST(RankTrace, StepsAreOnTheHostAndOnTheGpu) {
  Timeline timeline = hand_made_timeline();
  timeline.steps_s = {0, 1.1e-3, 2.5000004e-3};
  const json trace = rank_trace(timeline, 1);
  for (const std::string category : {"user_annotation", "gpu_user_annotation"}) {
    const auto steps = slices(trace, category);
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0].at("name"), "ProfilerStep#0");
    EXPECT_EQ(steps[1].at("name"), "ProfilerStep#1");
    EXPECT_LE(steps[0].at("ts").get<double>() + steps[0].at("dur").get<double>(), steps[1].at("ts").get<double>());
  }
  for (const json& launch : slices(trace, "cuda_runtime")) EXPECT_GE(ns_of(launch.at("ts")), 1100000) << "both operations are of step 1";
}

TEST(RankTrace, CollectivesOfAGroupAreCounted) {
  const auto events = hand_made_events();
  events->list.push_back(events->list[3]);
  events->list.back().start_s = 2e-3;
  events->list.back().end_s = 2.1e-3;
  std::vector<int> turns;
  for (const json& kernel : slices(rank_trace(hand_made_timeline(events), 1), "kernel")) {
    if (kernel.at("args").contains("Seq")) turns.push_back(kernel.at("args").at("Seq"));
  }
  EXPECT_EQ(turns, (std::vector<int>{1, 2}));
}

// For random operations: in order, apart, within the step, none later than its operation moved by the lead; and the lead is the least one:
// some operation begins just when it has been launched.
TEST(HostLaunches, OfRandomOperationsObeyTheRules) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<long long> starts(1 + random() % 50);
    for (long long& start : starts) start = 1000 + static_cast<long long>(random() % 100000);
    std::ranges::sort(starts);
    const HostLaunches launches = host_launches(starts, 1 + static_cast<long long>(random() % 5000), 1000, 101000);
    long long least = starts.front();
    for (std::size_t i = 0; i < starts.size(); ++i) {
      EXPECT_GE(launches.starts_ns[i], i == 0 ? 1000 : launches.starts_ns[i - 1] + launches.each_ns);
      const long long end = launches.starts_ns[i] + launches.each_ns;
      EXPECT_LE(end, 101000);
      EXPECT_LE(end, starts[i] + launches.lead_ns);
      least = std::min(least, starts[i] + launches.lead_ns - end);
    }
    EXPECT_TRUE(launches.lead_ns == 0 || least == 0);
  }
}

std::string unpacked(const std::string& packed) {
  z_stream zlib{};
  EXPECT_EQ(inflateInit2(&zlib, 15 + 16), Z_OK);
  std::string out(1 << 22, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  zlib.avail_in = static_cast<uInt>(packed.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - zlib.avail_out);
  inflateEnd(&zlib);
  return out;
}

TEST(Gzip, UnpacksToWhatWasWritten) {
  for (const std::size_t bytes : {0UL, 1UL, 300000UL, 3000000UL}) {
    std::mt19937 random(static_cast<unsigned>(bytes));
    std::string text(bytes, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 26);
    std::ostringstream out;
    {
      GzipStream gzip(out);
      gzip << text;
      gzip.finish();
      EXPECT_TRUE(gzip.good());
    }
    EXPECT_EQ(unpacked(out.str()), text);
  }
}

TEST(Gzip, ADiskThatIsFullIsNoticed) {
  std::ostringstream out;
  GzipStream gzip(out);
  gzip << "text";
  out.setstate(std::ios::badbit);
  gzip.finish();
  EXPECT_FALSE(gzip.good());
}

}  // namespace
}  // namespace rehearse::sim

// A million operations of every kind as a trace: seconds of the processor, and no memory but the timeline's.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <ostream>
#include <streambuf>

#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

// Counts what is written, and looks at each piece how much memory is in use.
class Watcher final : public std::streambuf {
 public:
  std::size_t bytes = 0, most_memory = 0;

 protected:
  std::streamsize xsputn(const char* /*text*/, std::streamsize count) override {
    bytes += static_cast<std::size_t>(count);
    const auto use = ::mallinfo2();
    most_memory = std::max(most_memory, use.uordblks + use.hblkhd);
    return count;
  }
  int_type overflow(int_type c) override {
    ++bytes;
    return c;
  }
};

// The hand-made step again and again, one after the other.
Timeline long_timeline(int operations) {
  Timeline timeline = hand_made_timeline();
  const std::vector<TimelineEvent> step = timeline.events;
  const double step_s = timeline.steps_s.back();
  timeline.events.reserve(static_cast<std::size_t>(operations));
  for (int i = 1; static_cast<int>(timeline.events.size()) < operations; ++i) {
    for (TimelineEvent event : step) {
      event.start_s += i * step_s;
      event.end_s += i * step_s;
      timeline.events.push_back(event);
    }
  }
  return timeline;
}

struct Cost {
  double seconds = 0;
  std::size_t bytes = 0, memory = 0;
};

Cost cost_of(int operations) {
  const Timeline timeline = long_timeline(operations);
  Report report(hand_made_job());
  report.add(&timeline);
  const auto before = ::mallinfo2();
  Watcher watcher;
  std::ostream out(&watcher);
  const std::clock_t start = std::clock();
  ReporterRegistry::get("trace").write(report, out);
  return {static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, watcher.bytes,
          watcher.most_memory - std::min(watcher.most_memory, before.uordblks + before.hblkhd)};
}

TEST(LargeTrace, OfAMillionOperationsTakesSecondsAndAsMuchMemoryAsASmallOne) {
  const Cost small = cost_of(10'000), large = cost_of(1'000'000);
  EXPECT_GT(large.bytes, 90 * small.bytes);
  EXPECT_LT(large.seconds, 3);
  EXPECT_LT(large.memory, std::size_t{4} << 20U) << "a buffer";
  RecordProperty("seconds", std::to_string(large.seconds));
  RecordProperty("bytes", std::to_string(large.bytes));
}

}  // namespace
}  // namespace rehearse::sim

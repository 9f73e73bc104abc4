// A million operations of every kind as a trace: seconds of the processor, and no memory.
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

// The hand-made step again and again, one after the other, until there are so many operations.
class Repeated final : public TimelineEvents {
 public:
  explicit Repeated(int operations) : operations_(operations) {}
  void each(const Visit& visit) const override {
    const Timeline timeline = hand_made_timeline();
    int visited = 0;
    for (int i = 0; visited < operations_; ++i) {
      timeline.events->each([&](TimelineEvent event) {
        event.start_s += i * timeline.steps_s.back();
        event.end_s += i * timeline.steps_s.back();
        visit(event);
        ++visited;
      });
    }
  }
  void each_of(std::uint32_t rank, const Visit& visit) const override { hand_made_events()->each_of(rank, visit); }
  void each_arrow(const VisitArrow& visit) const override { hand_made_events()->each_arrow(visit); }
  [[nodiscard]] std::vector<MemorySample> memory_of(std::uint32_t /*rank*/) const override { return {}; }

 private:
  int operations_;
};

struct Cost {
  double seconds = 0;
  std::size_t bytes = 0, memory = 0;
};

Cost cost_of(int operations) {
  const Timeline timeline = hand_made_timeline(std::make_shared<Repeated>(operations));
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

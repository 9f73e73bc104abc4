// Work on several threads: each takes part, and what one throws reaches the caller when all have ended.
#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <barrier>
#include <stdexcept>

#include "config/threads.hpp"

namespace rehearse::config {
namespace {

TEST(Threads, AreAllAtWorkAtOnce) {
  constexpr int threads = 5;
  std::barrier all_here(threads);  // nobody passes before all have come
  std::atomic<int> passed = 0;
  on_threads(threads, [&] {
    all_here.arrive_and_wait();
    ++passed;
  });
  EXPECT_EQ(passed, threads);
}

TEST(Threads, ThrowOnWhenAllHaveEnded) {
  std::atomic<int> number = 0, ended = 0;
  const auto work = [&] {
    const int own = number++;
    ++ended;
    if (own == 1) throw std::runtime_error("the second");
  };
  EXPECT_THROW(on_threads(3, work), std::runtime_error);
  EXPECT_EQ(ended, 3);
}

// It is moved to another processor at first, not for ever.
TEST(Threads, MayRunWhereTheirCreatorMay) {
  cpu_set_t creators, own;
  ASSERT_EQ(sched_getaffinity(0, sizeof creators, &creators), 0);
  std::atomic<bool> asked = false;
  {
    const std::jthread thread = beside([&] {
      while (!asked) std::this_thread::yield();
      EXPECT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
    });
    asked = true;
  }
  EXPECT_TRUE(CPU_EQUAL(&creators, &own));
}

}  // namespace
}  // namespace rehearse::config

#include "sim/engine/child_process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <numeric>
#include <stdexcept>
#include <string>

namespace rehearse::sim {
namespace {

bool no_child_is_left() { return ::waitpid(-1, nullptr, WNOHANG) < 0; }

// An answer of 160 kB does not fit into a pipe of 64 KiB: children end only when all pipes are read as they fill.
TEST(ChildProcess, every_work_answers_once_and_processes_are_bounded) {
  for (const int processes : {1, 2, 7}) {
    std::vector<int> answers(50);
    int begun = 0;
    int ended = 0;
    int most = 0;
    run_in_children(
        answers.size(), processes,
        [&](std::size_t i) -> Work {
          most = std::max(most, ++begun - ended);
          return [i] {
            std::vector<double> numbers(20'000);
            std::iota(numbers.begin(), numbers.end(), static_cast<double>(i));
            return numbers;
          };
        },
        [&](std::size_t i, const std::vector<double>& numbers) {
          ++ended;
          ++answers[i];
          ASSERT_EQ(numbers.size(), 20'000U);
          EXPECT_EQ(numbers.front(), static_cast<double>(i));
          EXPECT_EQ(numbers.back(), static_cast<double>(i + 19'999));
        });
    EXPECT_EQ(answers, std::vector<int>(50, 1));
    EXPECT_EQ(most, processes);
    EXPECT_TRUE(no_child_is_left());
  }
}

TEST(ChildProcess, no_work_at_all) {
  run_in_children(
      0, 2, [](std::size_t) -> Work { throw std::logic_error("asked"); }, [](std::size_t, const std::vector<double>&) {});
}

std::string message_of(const Work& work) {
  try {
    run_in_children(
        3, 2, [&](std::size_t) { return work; }, [](std::size_t, const std::vector<double>&) {});
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

TEST(ChildProcess, what_a_child_throws_is_thrown_here) {
  EXPECT_EQ(message_of([]() -> std::vector<double> { throw std::runtime_error("spare none"); }), "spare none");
  EXPECT_TRUE(no_child_is_left());
}

TEST(ChildProcess, a_child_that_dies_is_noticed) {
  EXPECT_EQ(message_of([]() -> std::vector<double> { ::_exit(0); }), "a simulation process died");
  EXPECT_EQ(message_of([]() -> std::vector<double> {
              ::raise(SIGKILL);
              return {};
            }),
            "a simulation process died");
  EXPECT_TRUE(no_child_is_left());
}

// One child fails while another would run for an hour.
TEST(ChildProcess, the_others_are_ended_when_one_fails) {
  const auto work_of = [](std::size_t i) -> Work {
    return [i]() -> std::vector<double> {
      if (i == 1) throw std::runtime_error("spare none");
      ::sleep(3600);
      return {};
    };
  };
  EXPECT_THROW(run_in_children(2, 2, work_of, [](std::size_t, const std::vector<double>&) {}), std::runtime_error);
  EXPECT_TRUE(no_child_is_left());
}

}  // namespace
}  // namespace rehearse::sim

// Random jobs with random histories: whatever happens, the account adds up to the wall clock to the nanosecond.
#include <gtest/gtest.h>

#include "tests/wholejob/runs.hpp"

namespace rehearse::sim {
namespace {

struct Law {
  Random random;
  std::string pick(const std::vector<std::string>& from) {
    return from[static_cast<std::size_t>(random.below(static_cast<int>(from.size())))];
  }
  std::string seconds(double mean) { return fmt::format("{} s", random.exponential(mean)); }
};

std::string random_checkpoint(Law& law) {
  std::string text =
      fmt::format("{{interval: {}, save_time: {}, load_time: {}", 1 + law.random.below(30), law.seconds(15), law.seconds(10));
  if (law.random.below(2) == 0) text += fmt::format(", mode: async, stall: {}, slowdown: {}", law.seconds(1), 1 + law.random.uniform() / 5);
  if (law.random.below(3) == 0) text += ", to: memory";
  return text + "}";
}

std::string random_faults(Law& law) {
  return fmt::format(
      "{{failures: {{source: poisson, rate: {} /h, nodes: {}, recovery: {{exponential: {}}}}},"
      " wear: {{source: weibull, rate: {} /h, shape: {}, level: pod}},"
      " slow: {{source: poisson, rate: {} /h, component: {}, kind: slow, slowdown: {}, duration: {{exponential: {}}}}},"
      " flaps: {{source: flapping, component: link, slowdown: 2, period: {} s, down: {} s}}}}",
      law.random.uniform() / 20, 1 + law.random.below(3), law.seconds(200), law.random.uniform() / 40 + 1e-3, 0.5 + law.random.uniform(),
      law.random.uniform(), law.pick({"gpu", "nic"}), 1 + law.random.uniform(), law.seconds(600), 300 + law.random.below(900),
      1 + law.random.below(200));
}

std::string random_sections(Law& law) {
  const std::string length =
      law.random.below(2) == 0 ? fmt::format("steps: {}", 1 + law.random.below(1000)) : "time: " + law.seconds(20000);
  return fmt::format("training: {{{}, init: {}, data: {}}}\ncheckpoint: {}\nfaults: {}\n", length, law.seconds(60), law.seconds(5),
                     random_checkpoint(law), random_faults(law)) +
         fmt::format("recovery: {{policy: {}, spares: {}, repair: {{lognormal: {}, sigma: 1}}, detection: {}, when_empty: {}}}\n",
                     law.pick({"restart", "replace", "shrink", "hot-spare"}), law.random.below(3), law.seconds(4000), law.seconds(30),
                     law.pick({"wait", "shrink"}));
}

void expect_exact(const WholeJobPlan& plan, const RunResult& result) {
  EXPECT_EQ(result.account.total(), result.wall);
  for (const Ns ns : result.account.ns) EXPECT_GE(ns, 0);
  // Every step that counts is booked once, at the healthy step's time.
  EXPECT_EQ(result.account[Cause::trained], result.steps * plan.training.nominal_step);
  if (plan.limit != never) {
    EXPECT_EQ(result.wall, plan.limit);
  } else if (result.finished == 1) {
    EXPECT_EQ(result.steps, plan.training.steps);
  } else {
    EXPECT_EQ(result.wall, plan.give_up);
  }
}

// The sum of all steps that were trained, kept or rolled back, and of what each took, is seen from outside too: the history's own count of
// rolled back steps is the result's.
void expect_history_agrees(const RunResult& result, const History& history) {
  std::int64_t lost = 0, failures = 0;
  Ns last = 0;
  for (const HistoryEntry& entry : history) {
    EXPECT_GE(entry.at, last);
    last = entry.at;
    if (entry.event == "failure") {
      ++failures;
      lost += entry.lost_steps;
    }
  }
  EXPECT_EQ(failures, result.all_failures());
  EXPECT_LE(lost, result.lost_steps);  // the rest was rolled back to take nodes in again
  EXPECT_EQ(last, result.wall);
}

class DoesEveryNanosecondCountOnce : public testing::TestWithParam<int> {};

TEST_P(DoesEveryNanosecondCountOnce, in_random_histories) {
  constexpr int jobs = 25, histories = 20;
  for (int i = 0; i < jobs; ++i) {
    Law law{Random(static_cast<std::uint64_t>(GetParam()), static_cast<std::uint64_t>(i))};
    const std::string sections = random_sections(law);
    SCOPED_TRACE(sections);
    const Job job = tests::whole_job(sections);
    const WholeJobPlan plan = plan_whole_job(job, 1 + 20 * law.random.uniform(), "given");
    for (int seed = 0; seed < histories; ++seed) {
      History history;
      const RunResult result = tests::run_alone(plan, static_cast<std::uint64_t>(seed), &history);
      expect_exact(plan, result);
      expect_history_agrees(result, history);
    }
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, DoesEveryNanosecondCountOnce, testing::Range(0, 8));

TEST(DoesEveryNanosecondCountOnce, through_a_pipe) {
  const tests::TenSecondJob ten(
      "training: {steps: 100}\ncheckpoint: {interval: 7, save_time: 3 s, load_time: 1 s}\n"
      "faults: {all: {source: poisson, rate: 2 /h}}\n");
  const RunResult result = tests::run_alone(ten.plan, 1);
  const RunResult again = from_numbers(to_numbers(result));
  EXPECT_EQ(again.wall, result.wall);
  EXPECT_EQ(again.account.ns, result.account.ns);
  EXPECT_EQ(again.failures, result.failures);
  EXPECT_GT(result.all_failures(), 0);
}

}  // namespace
}  // namespace rehearse::sim

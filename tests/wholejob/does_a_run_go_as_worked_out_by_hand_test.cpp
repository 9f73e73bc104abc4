// Small histories whose every second is worked out above the assert. Steps of 10 s, a checkpoint every 5 steps takes 2 s, loading 3 s;
// process, pod and job level take 20, 50 and 100 s.
#include <gtest/gtest.h>

#include "tests/wholejob/runs.hpp"

namespace rehearse::sim {
namespace {

using tests::booked_s;

constexpr const char* usual_checkpoint = "checkpoint: {interval: 5, save_time: 2 s, load_time: 3 s}\n";

std::string scripted(const std::string& faults, const std::string& recovery = "policy: replace",
                     const std::string& checkpoint = usual_checkpoint, const std::string& length = "steps: 20") {
  return fmt::format(
      "training: {{{}, init: 7 s}}\n{}faults: {{script: {{source: script, faults: [{}]}}}}\n"
      "recovery: {{{}, process: 20 s, pod: 50 s, job: 100 s}}\n",
      length, checkpoint, faults, recovery);
}

RunResult run(const std::string& sections) { return tests::run_alone(tests::TenSecondJob(sections).plan, 1); }

// 7 + 20 x 10 + 4 x 2.
TEST(DoesARunGoAsWorkedOutByHand, without_faults) {
  const RunResult result = run(scripted(""));
  EXPECT_EQ(result.wall, to_ns(215));
  EXPECT_EQ(result.saves, 4);
}

// Checkpoints end at 59 (5 steps) and 111 (10 steps). At 100 there are 41 s since the first: 4 steps and 1 s are lost. Detection 4 s,
// process level 20 s, load 3 s. What remains: 15 steps and 3 saves from 127 on.
TEST(DoesARunGoAsWorkedOutByHand, a_process_fails) {
  const RunResult result = run(scripted("{at: 100 s, level: process}", "policy: replace, detection: 4 s"));
  EXPECT_EQ(result.wall, to_ns(127 + 150 + 6));
  EXPECT_EQ(booked_s(result, Cause::rollback), 41);
  EXPECT_EQ(booked_s(result, Cause::detection), 4);
  EXPECT_EQ(booked_s(result, Cause::restart), 20);
  EXPECT_EQ(booked_s(result, Cause::load), 3);
  EXPECT_EQ(result.lost_steps, 4);
}

// At 3 s of the start's 7: it begins anew behind the recovery, and there is nothing to load.
TEST(DoesARunGoAsWorkedOutByHand, a_failure_while_starting) {
  const RunResult result = run(scripted("{at: 3 s, level: process}"));
  EXPECT_EQ(result.wall, to_ns(3 + 20 + 7 + 200 + 8));
  EXPECT_EQ(booked_s(result, Cause::init), 3 + 7);
  EXPECT_EQ(booked_s(result, Cause::restart), 20);
  EXPECT_EQ(booked_s(result, Cause::load), 0);
}

// At 58 the first checkpoint has been saving for 1 s: it is not complete, and training starts again from nothing, with nothing to load.
TEST(DoesARunGoAsWorkedOutByHand, a_failure_while_saving) {
  const RunResult result = run(scripted("{at: 58 s, level: pod}"));
  EXPECT_EQ(result.lost_steps, 5);
  EXPECT_EQ(booked_s(result, Cause::rollback), 51);
  EXPECT_EQ(booked_s(result, Cause::load), 0);
  EXPECT_EQ(result.wall, to_ns(58 + 50 + 200 + 8));
}

// The second failure comes 10 s into the recovery from the first, whose 40 s that are left outlast its own 20 s.
TEST(DoesARunGoAsWorkedOutByHand, a_failure_while_recovering) {
  const RunResult result = run(scripted("{at: 58 s, level: pod}, {at: 68 s, level: process}"));
  EXPECT_EQ(booked_s(result, Cause::restart), 50);
  EXPECT_EQ(result.all_failures(), 2);
}

TEST(DoesARunGoAsWorkedOutByHand, a_policy_decides_the_time) {
  const std::string pod = "{at: 100 s, level: pod, node: 3}";
  const auto restart_s = [&](const std::string& recovery) { return booked_s(run(scripted(pod, recovery)), Cause::restart); };
  EXPECT_EQ(restart_s("policy: replace"), 50);
  EXPECT_EQ(restart_s("policy: restart"), 100);
  EXPECT_EQ(restart_s("policy: hot-spare, spares: 1, repair: 1 h"), 20);
  EXPECT_EQ(restart_s("policy: hot-spare, spares: 1, repair: 1 h, swap: 6 s"), 6);
  EXPECT_EQ(restart_s("policy: hot-spare, spares: 0, repair: 1 min"), 50);  // none left: waits, then starts a pod
  EXPECT_EQ(booked_s(run(scripted("{at: 100 s, level: pod, recovery: 33 s}")), Cause::restart), 33);
}

// One spare, two nodes lost at 100 s: the first of them is back after 5 min.
TEST(DoesARunGoAsWorkedOutByHand, the_pool_runs_empty) {
  const RunResult result = run(scripted("{at: 100 s, level: pod, nodes: 2}", "policy: replace, spares: 1, repair: 5 min"));
  EXPECT_EQ(result.waits, 1);
  EXPECT_EQ(booked_s(result, Cause::repair), 300);
  EXPECT_EQ(booked_s(result, Cause::restart), 50);
}

// Node 3 holds stage 0 of replica 3: three replicas share the global batch of 48, 16 micro-batches each instead of 12. The node is back
// at 100 + 150 s, and taken in at the next checkpoint.
TEST(DoesARunGoAsWorkedOutByHand, the_job_shrinks_and_grows) {
  const tests::TenSecondJob ten(scripted("{at: 100 s, level: pod, node: 3}", "policy: shrink, repair: 150 s"));
  StepTimes steps(ten.job, 10);
  const double smaller_s = to_s(steps.at({.replicas_lost = 1}));
  EXPECT_GT(smaller_s, 10);
  EXPECT_LT(smaller_s, 10 * 16.0 / 12);  // the pipeline's bubble and the optimizer do not grow with the micro-batches
  History history;
  const RunResult result = tests::run_alone(ten.plan, 1, &history);
  EXPECT_EQ(result.resized, 2);
  EXPECT_EQ(booked_s(result, Cause::restart), 40);  // left out, then taken in
  EXPECT_EQ(booked_s(result, Cause::rollback), 41);
  // From 123 s on, steps and saves; the first checkpoint after 250 s is where it grows: 15 steps done if 10 more fit before, ...
  const double per_checkpoint_s = 5 * smaller_s + 2;
  const int checkpoints = static_cast<int>((250 - 123) / per_checkpoint_s) + 1;
  EXPECT_NEAR(booked_s(result, Cause::degraded), 5 * checkpoints * (smaller_s - 10), 1e-6);
}

// A failure of a node whose replica is left out is not felt; one of another replica is.
TEST(DoesARunGoAsWorkedOutByHand, idle_nodes_fail_unnoticed) {
  const std::string faults = "{at: 100 s, level: pod, node: 3}, {at: 140 s, level: pod, node: 7}, {at: 150 s, level: process, node: 1}";
  const RunResult result = run(scripted(faults, "policy: shrink, repair: 1 day"));
  EXPECT_EQ(result.not_felt, 1);
  EXPECT_EQ(result.all_failures(), 2);
}

// Blocked for 1 s per checkpoint; the write takes 15 s during which steps take 1.2 times as long: 12.5 s of work in 15 s.
TEST(DoesARunGoAsWorkedOutByHand, asynchronous_checkpoints) {
  const char* async = "checkpoint: {interval: 5, mode: async, stall: 1 s, save_time: 15 s, slowdown: 1.2, load_time: 3 s}\n";
  const RunResult result = run(scripted("", "policy: replace", async));
  EXPECT_EQ(booked_s(result, Cause::trained), 200);
  EXPECT_NEAR(booked_s(result, Cause::degraded), 3 * 2.5, 1e-6);  // ns rounding; three writes fall into training
  EXPECT_EQ(booked_s(result, Cause::saving), 4 * 1 + 15);         // the job ends when its last checkpoint is complete
}

// The write of the first checkpoint (58 to 73 s) is not complete at 70 s.
TEST(DoesARunGoAsWorkedOutByHand, a_failure_during_a_background_write) {
  const char* async = "checkpoint: {interval: 5, mode: async, stall: 1 s, save_time: 15 s, load_time: 3 s}\n";
  EXPECT_EQ(run(scripted("{at: 70 s, level: process}", "policy: replace", async)).lost_steps, 6);
  EXPECT_EQ(run(scripted("{at: 74 s, level: process}", "policy: replace", async)).lost_steps, 1);
}

// Kept in the memory of two nodes: a process or one node may fail, two nodes take it along, and then the backup of step 10 is loaded.
TEST(DoesARunGoAsWorkedOutByHand, checkpoints_in_memory) {
  const char* memory =
      "checkpoint: {interval: 5, save_time: 2 s, load_time: 3 s, to: memory, copies: 2,"
      " backup: {interval: 10, save_time: 8 s, load_time: 9 s}}\n";
  // 7 + 50 + 2 + 50 + 10 = 119: 10 steps, both kept; 171: 15 steps in memory; at 190 16 steps and 9 s of the next were done.
  const auto at_190 = [&](const std::string& what) { return run(scripted("{at: 190 s, " + what + "}", "policy: replace", memory)); };
  const RunResult process = at_190("level: process"), node = at_190("level: pod"), nodes = at_190("level: pod, nodes: 2"),
                  all = at_190("level: job");
  EXPECT_EQ(process.lost_steps, 1);
  EXPECT_EQ(node.lost_steps, 1);
  EXPECT_EQ(booked_s(node, Cause::load), 3);
  EXPECT_EQ(nodes.lost_steps, 6);
  EXPECT_EQ(booked_s(nodes, Cause::load), 9);
  EXPECT_EQ(all.lost_steps, 6);
}

// The time is up 100 s after the start: 5 steps, a save, 4 steps more and 1 s of a step that does not count.
TEST(DoesARunGoAsWorkedOutByHand, the_time_is_up) {
  const RunResult result = run(scripted("", "policy: replace", usual_checkpoint, "time: 100 s"));
  EXPECT_EQ(result.steps, 9);
  EXPECT_EQ(booked_s(result, Cause::unfinished), 1);
  EXPECT_EQ(result.wall, to_ns(100));
}

// Half a step at full speed takes 5 s, the other half at half speed 10 s.
TEST(DoesARunGoAsWorkedOutByHand, a_step_becomes_slow_half_way) {
  Training training({.steps = 1, .nominal_step = to_ns(10), .interval = 1, .save = {}});
  EXPECT_EQ(training.advance(to_ns(5)), to_ns(5));
  training.set_step(to_ns(20));
  EXPECT_EQ(training.advance(to_ns(100)), to_ns(10));
  EXPECT_TRUE(training.finished());
  EXPECT_EQ(training.account()[Cause::degraded], to_ns(5));
}

}  // namespace
}  // namespace rehearse::sim

// Steps of a cluster that is not well.
#include <gtest/gtest.h>

#include "places.hpp"
#include "sim/analytic/predict.hpp"
#include "tests/wholejob/runs.hpp"

namespace rehearse::sim {
namespace {

Job job_of_ten_steps() { return tests::whole_job("training: {steps: 10}\n"); }

// One slow stage holds up the pipeline by (f - 1) times its own work, and that is at most what slowing every GPU down would cost.
TEST(WhatDoesASlowClusterCost, a_straggler) {
  const Job healthy = job_of_ten_steps();
  const StepResult step = predict(healthy);
  const double own = step.ranks[0].phases[Phase::compute] + step.ranks[0].phases[Phase::recompute] + step.ranks[0].phases[Phase::optimizer];
  const double slow = predicted_step_s(healthy, {.slow = {.gpus = {{3, 1.3}}}});
  EXPECT_NEAR(slow, step.step_s + 0.3 * own, 1e-12 * slow);
  EXPECT_GT(slow, step.step_s);
  EXPECT_LE(slow, 1.3 * step.step_s);
  // Two stragglers in one stage cost what the slower of them costs; stragglers in two stages what the worse stage does.
  EXPECT_EQ(predicted_step_s(healthy, {.slow = {.gpus = {{3, 1.3}, {40, 1.01}}}}), slow);
}

// Ports at half speed are the job on a cluster with ports of half the bandwidth.
TEST(WhatDoesASlowClusterCost, slow_ports) {
  const Job healthy = job_of_ten_steps();
  Job half = healthy;
  half.system.cluster.nic.bandwidth_bytes_per_s /= 2;
  EXPECT_EQ(predicted_step_s(healthy, {.slow = {.ports = {{5, 2.0}}}}), predict(half).step_s);
  EXPECT_GT(predicted_step_s(healthy, {.slow = {.ports = {{5, 2.0}}}}), predicted_step_s(healthy, {}));
}

// Trunks that take 4/3 as long are an oversubscription of 4/3.
TEST(WhatDoesASlowClusterCost, a_lost_spine) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  const Job healthy = load_job({"llama3-70b-64-h100", {}, {}});
  Job narrow = healthy;
  narrow.system.cluster.network.oversubscription *= 4.0 / 3;
  narrow.system.cluster.network.trunk.bandwidth_bytes_per_s /= 4.0 / 3;
  EXPECT_EQ(predicted_step_s(healthy, {.slow = {.trunks = 4.0 / 3}}), predict(narrow).step_s);
}

// 3 of 4 replicas: 48 sequences are 16 micro-batches each; 2 of 4: 24.
TEST(WhatDoesASlowClusterCost, fewer_replicas) {
  const Job healthy = job_of_ten_steps();
  const Job three = tests::small_job(48, "{tp: 8, pp: 2, dp: 3}", "{global: 48, micro: 1, sequence: 128}");
  EXPECT_DOUBLE_EQ(predicted_step_s(healthy, {.replicas_lost = 1}), predict(three).step_s);
  EXPECT_THROW(static_cast<void>(predicted_step_s(healthy, {.replicas_lost = 4})), config::InputError);
}

// Given steps are stretched by the predicted ratio; each state is worked out once; nothing is faster than health.
TEST(WhatDoesASlowClusterCost, relative_to_the_given_step) {
  const Job healthy = job_of_ten_steps();
  StepTimes steps(healthy, 10);
  const ClusterState slow{.slow = {.gpus = {{40, 2.0}}, .ports = {{0, 1.5}}}};
  const double ratio = predicted_step_s(healthy, slow) / predicted_step_s(healthy, {});
  EXPECT_EQ(steps.at(slow), to_ns(10 * ratio));
  EXPECT_EQ(steps.at(slow), to_ns(10 * ratio));
  EXPECT_EQ(steps.states(), 1U);
  EXPECT_EQ(steps.at({}), to_ns(10));
  EXPECT_EQ(steps.at({.replicas_lost = 4}), 0);
}

// Node 6 holds stage 1 of replica 2: slow until its replica is left out.
TEST(WhatDoesASlowClusterCost, where_the_slow_gpu_is) {
  const Job healthy = job_of_ten_steps();
  const NodeMap map(healthy.workload.parallel, healthy.system.places());
  EXPECT_EQ(map.replicas(6), std::set<int>{2});
  Slowness slowness;
  Fault fault;
  fault.component = Component::gpu;
  fault.kind = FaultKind::slow;
  fault.node = 6;
  fault.slowdown = 1.3;
  fault.duration = to_ns(60);
  slowness.begin(fault);
  EXPECT_EQ(slowness.state(map, {}).slow.gpus, (std::map<int, double>{{48, 1.3}}));  // GPU 0 of node 6
  EXPECT_TRUE(slowness.state(map, {2}).slow.gpus.empty());
  // Without replica 0 there are three; replica 2 is the second of them, and nodes 3 to 5 hold stage 1.
  EXPECT_EQ(slowness.state(map, {0}).slow.gpus, (std::map<int, double>{{32, 1.3}}));
  EXPECT_EQ(slowness.state(map, {0}).replicas_lost, 1);
  EXPECT_EQ(slowness.next_end(), to_ns(60));
  EXPECT_EQ(slowness.end_by(to_ns(60)), 1);
  EXPECT_TRUE(slowness.state(map, {}).healthy());
}

// On SimGrid each state is a simulation of its own: of a slow GPU the job feels no more than the formula's bound, and GPUs that are alike
// cost the same.
TEST(WhatDoesASlowClusterCost, simulated) {
  const Job healthy = job_of_ten_steps();
  StepTimes steps(healthy, 10, StepMethod::simulation);
  const ClusterState slow{.slow = {.gpus = {{3, 1.3}}}};
  const double ratio = simulated_step_s(healthy, slow) / simulated_step_s(healthy, {});
  EXPECT_EQ(steps.at(slow), to_ns(10 * ratio));
  EXPECT_GT(ratio, 1);
  EXPECT_LE(ratio, predicted_step_s(healthy, slow) / predicted_step_s(healthy, {}) * 1.02);  // the two step models agree to 2 %
  EXPECT_EQ(steps.at({.slow = {.gpus = {{12, 1.3}}}}), steps.at(slow));
  EXPECT_EQ(steps.states(), 1U);
  EXPECT_GT(steps.at({.slow = {.ports = {{0, 2.0}}}}), to_ns(10));
  EXPECT_GT(steps.at({.replicas_lost = 1}), to_ns(10));
}

// 64 replicas share the optimizer's state (ZeRO-1) and fit; one alone does not, and the job does not shrink to it.
TEST(WhatDoesASlowClusterCost, fewer_replicas_that_do_not_fit) {
  const Job healthy =
      tests::small_job(64, "{tp: 1, pp: 1, dp: 64}", "{global: 64, micro: 1, sequence: 128}", "optimizer: {sharding: zero1}\n", 8,
                       400);  // 5 billion parameters: 6 bytes each on every GPU, 12 shared
  EXPECT_TRUE(shrunken(healthy, 32).job.has_value());
  const ShrunkenJob one = shrunken(healthy, 63);
  EXPECT_FALSE(one.job.has_value());
  EXPECT_EQ(one.why_not, "1 replicas do not fit into the memory of their GPUs");
  StepTimes steps(healthy, 10);
  EXPECT_EQ(steps.at({.replicas_lost = 63}), 0);
  EXPECT_EQ(steps.why_not({.replicas_lost = 63}), one.why_not);
}

}  // namespace
}  // namespace rehearse::sim

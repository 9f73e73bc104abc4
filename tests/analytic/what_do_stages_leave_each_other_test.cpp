// Stages that share NICs or host memories end at different times: the formula lets each have what the others leave, as the timeline does.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "../engine/jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/analytic/stage_sharing.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

std::vector<double> ends(const std::vector<sim::StageWork>& works, const std::vector<double>& users) {
  std::vector<double> end_s;
  sim::share_among_stages(works, users, end_s);
  return end_s;
}

// One turn each: when it begins, seconds alone, seconds beside the other.
sim::StageWork once(double begin_s, double alone_s, double shared_s) { return {.begin_s = begin_s, .turns = {{{alone_s, shared_s}}}}; }

TEST(StagesShare, WhatIsThereAmongThoseAtWork) {
  const std::vector<double> two{1, 1, 1, 1};
  // Both to the end: the shorter half its time, the longer what is left of the sum.
  EXPECT_EQ(ends({once(0, 9, 18), once(0, 1, 2)}, two), (std::vector<double>{10, 2}));
  // 1 s alone for half of 2 s, then both at half speed: 2 s for the other half; the second has done half by then, and has 1 s to go alone.
  EXPECT_EQ(ends({once(0, 2, 4), once(1, 2, 4)}, two), (std::vector<double>{3, 4}));
  EXPECT_EQ(ends({once(-5, 2, 4), once(1, 2, 4)}, two), (std::vector<double>{-3, 3})) << "one after the other";
  EXPECT_EQ(ends({once(0, 0, 0), once(1, 2, 4)}, two), (std::vector<double>{0, 3})) << "nothing to do";
  EXPECT_EQ(ends({once(0, 2, 2), once(0, 2, 2)}, {1, 0, 0, 1}), (std::vector<double>{2, 2})) << "nothing shared";
  // Alone until 2, a pause until 5, and from then beside the other's one turn until that has done its half of 4 s alone.
  EXPECT_EQ(ends({{.begin_s = 0, .turns = {{{2, 4}, {8, 16}}}, .pause_s = 3}, once(3, 4, 8)}, two), (std::vector<double>{15, 9}));
}

// Two stages side by side on nodes of 8 GPUs with two NICs: the second ends a backward earlier, and the embedding makes them uneven.
TEST(StagesShare, NicsAtTheEndOfAStep) {
  for (const char* sharding : {"none", "zero1"}) {
    const sim::Job job = small_job(32, "{tp: 1, pp: 2, dp: 16, order: pp-tp-cp-ep-dp}", "{global: 64, micro: 1, sequence: 2048}",
                                   fmt::format("optimizer: {{sharding: {}}}\noverlap: {{pp: true}}", sharding), 2);
    const double simulated = sim::simulate_in_child(job).step_s;
    EXPECT_NEAR(sim::predict(job).step_s, simulated, 0.02 * simulated) << sharding;
    EXPECT_GT(sim::predict(job, workloads::compile(job.workload), false).step_s, 1.03 * simulated) << sharding;
  }
}

// DualPipe: mirrored stages hold the same weights and reduce them together; the pair at the pipeline's ends has the embedding, and more to
// reduce than the pair in the middle.
TEST(StagesShare, NicsAmongMirroredStages) {
  sim::Job job = small_job(16, "{tp: 1, pp: 4, dp: 4}", "{global: 32, micro: 1, sequence: 1024}",
                           "schedule: dualpipe\noptimizer: {sharding: none}\noverlap: {pp: true}", 1);
  job.workload.model.vocab = 32000;
  const double simulated = sim::simulate_in_child(job).step_s;
  EXPECT_NEAR(sim::predict(job).step_s, simulated, 0.02 * simulated);
  EXPECT_GT(sim::predict(job, workloads::compile(job.workload), false).step_s, 1.2 * simulated);
}

TEST(StagesShare, TheMemoryOfAHost) {
  const sim::Job job = small_job(2, "{tp: 1, pp: 2, dp: 1}", "{global: 2, micro: 1, sequence: 4096}", "optimizer: {device: cpu}");
  const double simulated = sim::simulate_in_child(job).step_s;
  EXPECT_NEAR(sim::predict(job).step_s, simulated, 0.01 * simulated);
}

// Copies of activations for every micro-batch over a link that two stages share: each is at it for a part of the time only. The formula
// counts on the mean of that part, and stages that take turns meet less often still.
TEST(StagesShare, LinksToTheHostForEveryMicrobatch) {
  for (const double bandwidth : {20e9, 40e9}) {
    sim::Job job = small_job(2, "{tp: 1, pp: 2, dp: 1}", "{global: 16, micro: 1, sequence: 4096}", "offload: {activations: true}");
    job.system.cluster.gpus_per_host_link = 2;
    job.system.cluster.host.bandwidth_bytes_per_s = bandwidth;
    const double simulated = sim::simulate_in_child(job).step_s, predicted = sim::predict(job).step_s;
    const double crowded = sim::predict(job, workloads::compile(job.workload), false).step_s;
    EXPECT_LT(std::abs(predicted - simulated), 0.6 * (crowded - simulated)) << bandwidth;
  }
}

// Gathers and reductions of ZeRO-3 over NICs that two stages share.
TEST(StagesShare, NicsForEveryMicrobatch) {
  for (const char* overlap :
       {"{pp: true, dp_gradients: false, dp_parameters: false}", "{pp: true, dp_gradients: true, dp_parameters: true}"}) {
    const sim::Job job = small_job(32, "{tp: 1, pp: 2, dp: 16, order: pp-tp-cp-ep-dp}", "{global: 128, micro: 1, sequence: 2048}",
                                   fmt::format("optimizer: {{sharding: zero3}}\noverlap: {}", overlap), 2);
    const double simulated = sim::simulate_in_child(job).step_s, predicted = sim::predict(job).step_s;
    const double crowded = sim::predict(job, workloads::compile(job.workload), false).step_s;
    EXPECT_LT(std::abs(predicted - simulated), 0.8 * (crowded - simulated)) << overlap;
  }
}

// Calls of the units themselves between nodes: ring attention and tensor parallelism of stages that lie side by side, in pipelines that are
// idle for most of their step, and in such that are hardly ever. By the price of all stages at once they are up to 97 % too long; what is
// left (up to 15 %) is that stages take turns or keep step.
TEST(StagesShare, NicsForCallsOfTheirUnits) {
  for (const char* parallel : {"{tp: 1, cp: 4, pp: 4, dp: 1, order: pp-tp-cp-ep-dp}", "{tp: 4, pp: 4, dp: 1, order: pp-tp-cp-ep-dp}"}) {
    for (const int microbatches : {2, 16}) {
      const sim::Job job = small_job(16, parallel, fmt::format("{{global: {}, micro: 1, sequence: 4096}}", microbatches),
                                     "simulation: {collectives: ring}", 1);
      const double simulated = sim::simulate_in_child(job).step_s, predicted = sim::predict(job).step_s;
      const double crowded = sim::predict(job, workloads::compile(job.workload), false).step_s;
      EXPECT_LT(std::abs(predicted - simulated), 0.5 * (crowded - simulated)) << parallel << " " << microbatches;
      EXPECT_NEAR(predicted, simulated, 0.15 * simulated) << parallel << " " << microbatches;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

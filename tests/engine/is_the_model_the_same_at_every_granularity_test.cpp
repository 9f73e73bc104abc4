// Granularity is how the timeline is cut, not what is modelled: random jobs take the same step and hold the same peak of memory cut by
// stage, layer and operator, whatever overlaps, slows down or shares a port.
#include <gtest/gtest.h>

#include <algorithm>

#include "random_jobs.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

// Sums of the same seconds in another order, and SimGrid's precision of 1e-9 s on steps of some 0.1 s.
constexpr double rounding = 1e-9;

struct Cut {
  double step_s = 0;
  std::vector<double> peaks;
};

Cut cut(const std::string& job, const char* granularity) {
  const sim::StepResult result = sim::simulate_in_child(job_of(fmt::format("{}, granularity: {}}}\n", job, granularity)));
  Cut made{result.step_s, {}};
  for (const sim::RankMemory& rank : result.memory.ranks) made.peaks.push_back(rank.peak_bytes());
  return made;
}

void expect_equal_cuts(const std::string& job) {
  const Cut stage = cut(job, "stage"), layer = cut(job, "layer"), op = cut(job, "operator");
  EXPECT_NEAR(layer.step_s, op.step_s, rounding * op.step_s) << job;
  EXPECT_NEAR(stage.step_s, op.step_s, rounding * op.step_s) << job;
  ASSERT_EQ(stage.peaks.size(), op.peaks.size());
  for (std::size_t i = 0; i < op.peaks.size(); ++i) {
    EXPECT_NEAR(layer.peaks[i], op.peaks[i], 1e-12 * op.peaks[i]) << job;
    EXPECT_NEAR(stage.peaks[i], op.peaks[i], 1e-12 * op.peaks[i]) << job;
  }
}

TEST(Granularity, DoesNotChangeTheStepOfRandomJobs) {
  RandomJobs jobs(5);
  for (int compared = 0; compared < 40; ++compared) expect_equal_cuts(jobs.next());
}

// Gathers of parameters that go on beside whole units are exposed where the units' own communication has ended, as they are between single
// operators: booked from their own beginning, they took up to half of it from tensor and context parallelism.
TEST(Granularity, ExposesTheSameCommunication) {
  const std::string job = fmt::format(R"(
model: llama2-7b
cluster:{}
gpus: 64
parallel: {{tp: 2, cp: 2, sp: true, cp_comm: all-gather}}
batch: {{global: 64, micro: 1, sequence: 2048}}
optimizer: {{sharding: zero3}}
overlap: {{dp_gradients: true, dp_parameters: true}}
simulation: {{collectives: closed)",
                                      small_cluster(8, "{tp: {alpha: 1, beta: 1}}", "{size: 2 TiB, bandwidth: 200 GB/s}"));
  const auto phases = [&](const char* granularity) {
    return sim::simulate_in_child(job_of(fmt::format("{}, granularity: {}}}\n", job, granularity))).mean;
  };
  const sim::PhaseTimes op = phases("operator"), layer = phases("layer"), stage = phases("stage");
  for (const workloads::Phase phase : {workloads::Phase::tp, workloads::Phase::cp, workloads::Phase::dp}) {
    EXPECT_GT(op[phase], 0);
    EXPECT_NEAR(layer[phase], op[phase], rounding * op.total());
    EXPECT_NEAR(stage[phase], op[phase], rounding * op.total());
  }
}

// A stack that calls once per tensor makes as many calls, however its layers are cut: 0.83 s, not 0.53 s.
TEST(Granularity, KeepsOneCallPerTensor) {
  expect_equal_cuts(R"(
model: llama2-7b
cluster: dgx-h100-ndr400
gpus: 64
software: megatron-2021
batch: {global: 128, micro: 1, sequence: 1024}
optimizer: {sharding: zero3}
simulation: {collectives: ring)");
}

}  // namespace
}  // namespace rehearse::tests

// Every memory feature, alone and with others, on uniform dense jobs: the simulated step is within 2 % of the analytic one and the peak of
// memory within 1 % (together: 5 %), what is hidden costs nothing, and more contention never shortens a step.
#include <gtest/gtest.h>

#include <random>

#include "../engine/jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

constexpr double alone = 0.02, together = 0.05, memory_bound = 0.01;

void expect_agreement(const sim::Job& job, const std::string& what, double bound = alone) {
  const sim::StepResult analytic = sim::predict(job);
  const sim::StepResult simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.step_s, analytic.step_s, bound * analytic.step_s)
      << what << ": " << 100 * (simulated.step_s / analytic.step_s - 1) << " %";
  EXPECT_NEAR(simulated.mean.total(), simulated.step_s, 1e-9 * simulated.step_s) << what;
  for (const sim::RankMemory& rank : simulated.memory.ranks) {
    const sim::RankMemory& stage = analytic.memory.ranks.at(static_cast<std::size_t>(rank.stage));
    EXPECT_LE(rank.peak_bytes(), stage.peak_bytes() * (1 + 1e-12)) << what << ", stage " << rank.stage;
    // A GPipe stage waits between its last forward and its first backward: the last layer on its way out is gone by then (docs/memory.md).
    const double layer_out =
        job.workload.schedule == "gpipe" && job.workload.offload_activations ? workloads::layer_activation_bytes(job.workload, false) : 0;
    EXPECT_GE(rank.peak_bytes(), stage.peak_bytes() * (1 - memory_bound) - layer_out) << what << ", stage " << rank.stage;
    EXPECT_NEAR(rank.host_bytes, stage.host_bytes, memory_bound * stage.host_bytes) << what << ", stage " << rank.stage;
  }
}

sim::Job with_host_rate(sim::Job job, double bytes_per_s) {
  job.cluster.host.bandwidth_bytes_per_s = bytes_per_s;
  return job;
}

struct Pipeline {
  const char* parallel;
  const char* schedule;
};
constexpr Pipeline pipelines[] = {{"{pp: 1}", "1f1b"},         {"{pp: 4}", "1f1b"},
                                  {"{pp: 4}", "gpipe"},        {"{pp: 4, vpp: 2}", "interleaved-1f1b"},
                                  {"{tp: 2, pp: 4}", "zb-h1"}, {"{pp: 4}", "zb-h2"}};

sim::Job offloading(const Pipeline& pipeline, const std::string& extra = "") {
  const std::string text = fmt::format("schedule: {}\noffload: {{activations: true}}\n{}", pipeline.schedule, extra);
  return small_job(8, pipeline.parallel, "{global: 64, micro: 2, sequence: 4096}", text, 8, 32);
}

// From copies that nothing waits for to such that take longer than a layer's backward.
TEST(EachFeatureAlone, OffloadWithFastAndSlowLinks) {
  for (const Pipeline& pipeline : pipelines) {
    for (const double rate : {400e9, 120e9, 60e9, 30e9}) {
      expect_agreement(with_host_rate(offloading(pipeline), rate),
                       fmt::format("{} {} at {} GB/s", pipeline.schedule, pipeline.parallel, rate / 1e9));
    }
  }
}

TEST(EachFeatureAlone, OffloadWithContention) {
  for (const Pipeline& pipeline : pipelines) {
    for (const double rate : {200e9, 60e9}) {
      sim::Job job = with_host_rate(offloading(pipeline), rate);
      job.gpu.contention["offload"] = {1.2, 1.3};
      expect_agreement(job, fmt::format("{} {} at {} GB/s", pipeline.schedule, pipeline.parallel, rate / 1e9));
    }
  }
}

// Links that GPUs share: as many copies at once as there are sharers, whether they are simulated or folded away.
TEST(EachFeatureAlone, OffloadOverSharedLinks) {
  for (const char* ranks : {"folded", "all"}) {
    sim::Job job = offloading(pipelines[1], fmt::format("simulation: {{ranks: {}}}", ranks));
    job.cluster.gpus_per_host_link = 2;
    expect_agreement(with_host_rate(job, 60e9), ranks);
  }
}

// Copies that take no time, and none that anybody waits for: nothing is exposed, and the step is that of the job without offload.
TEST(EachFeatureAlone, HiddenOffloadCostsNothing) {
  for (const Pipeline& pipeline : pipelines) {
    sim::Job job = with_host_rate(offloading(pipeline), 1e12);
    job.cluster.host.latency_s = 0;
    sim::Job without = job;
    without.workload.offload_activations = false;
    const double step = sim::simulate_in_child(without).step_s;
    const sim::StepResult offloaded = sim::simulate_in_child(job);
    EXPECT_NEAR(offloaded.step_s, step, 1e-9 * step) << pipeline.schedule;
    EXPECT_NEAR(offloaded.mean[sim::Phase::offload], 0, 1e-9 * step) << pipeline.schedule;
    EXPECT_NEAR(sim::predict(job).step_s, sim::predict(without).step_s, 1e-9 * step) << pipeline.schedule;
  }
}

// About two layers' activations stay, as many as there are layers between a forward and its backward on the host.
TEST(EachFeatureAlone, OffloadMovesActivationsToTheHost) {
  const sim::Job job = offloading(pipelines[1]);
  sim::Job without = job;
  without.workload.offload_activations = false;
  const double layer = workloads::layer_activation_bytes(job.workload, false);
  const auto moved = sim::predict(job).memory.ranks, kept = sim::predict(without).memory.ranks;
  for (std::size_t s = 0; s < moved.size(); ++s) {
    EXPECT_LE(moved[s].at_peak[sim::MemoryUse::activations], 3 * layer);
    EXPECT_EQ(kept[s].host_bytes, 0);
    // Of (4 - s) x 8 layers in flight those stay that are at hand, on their way out or on their way in.
    const double in_flight = static_cast<double>(4 - s) * 8;
    EXPECT_GE(moved[s].host_bytes, (in_flight - 3) * layer) << s;
    EXPECT_LE(moved[s].host_bytes, in_flight * layer) << s;
  }
}

TEST(EachFeatureAlone, AHostThatIsTooSmallIsSaid) {
  sim::Job job = offloading(pipelines[1]);
  EXPECT_TRUE(sim::predict(job).memory.host.fits());
  job.cluster.host_memory.bytes = 1e9;
  const sim::MemoryResult memory = sim::predict(job).memory;
  EXPECT_FALSE(memory.fits());
  // Two replicas of four stages on the node's 8 GPUs.
  double expected = 0;
  for (const sim::RankMemory& rank : memory.ranks) expected += 2 * rank.host_bytes;
  EXPECT_NEAR(memory.host.bytes, expected, 1e-12 * expected);
}

// Raising alpha or beta never shortens a step, whichever features are on.
TEST(MoreContention, NeverShortensAStep) {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> coefficient(1, 1.6);
  const char* features[] = {"offload: {activations: true}", "overlap: {tp: true}", "overlap: {dp_gradients: true, dp_parameters: true}",
                            "overlap: {cp: true}"};
  for (int i = 0; i < 24; ++i) {
    const std::string extra = fmt::format("{}\noptimizer: {{sharding: {}}}", features[i % 4], i % 3 == 0 ? "zero1" : "none");
    sim::Job job = small_job(16, "{tp: 2, cp: 2, pp: 2, dp: 2}", "{global: 8, micro: 1, sequence: 4096}", extra);
    job.cluster.host.bandwidth_bytes_per_s = 50e9;
    for (const char* kind : {"tp", "cp", "pp", "dp", "offload"}) job.gpu.contention[kind] = {coefficient(random), coefficient(random)};
    const double before = sim::simulate_in_child(job).step_s, before_by_formula = sim::predict(job).step_s;
    sim::ContentionPair& raised = job.gpu.contention[std::array{"tp", "cp", "pp", "dp", "offload"}[random() % 5]];
    (random() % 2 == 0 ? raised.alpha : raised.beta) += 0.4;
    EXPECT_GE(sim::simulate_in_child(job).step_s, before * (1 - 1e-9)) << extra;
    EXPECT_GE(sim::predict(job).step_s, before_by_formula * (1 - 1e-12)) << extra;
  }
}

}  // namespace
}  // namespace rehearse::tests

// Activations of layers with experts on the host: what each rank's experts got goes there as well, in the formula as on the timeline.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/operators.hpp"

namespace rehearse::tests {
namespace {

sim::Job offloading(const std::string& moe, double bytes_per_s, const std::string& more = "") {
  sim::Job job = expert_job(16, "{pp: 2, dp: 8, ep: 8}", "{global: 64, micro: 1, sequence: 4096}",
                            fmt::format("moe: {{{}}}\noffload: {{activations: true}}\n{}", moe, more), 16);
  job.system.cluster.host.bandwidth_bytes_per_s = bytes_per_s;
  return job;
}

constexpr double offload_time_bound = 0.02, offload_memory_bound = 0.01;  // the project's stated bounds

void expect_offload_agreement(const sim::Job& job, const std::string& what) {
  const sim::StepResult formula = sim::predict(job), simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.step_s, formula.step_s, offload_time_bound * formula.step_s)
      << what << ": " << 100 * (simulated.step_s / formula.step_s - 1);
  for (const sim::RankMemory& rank : simulated.memory.ranks) {
    const sim::RankMemory& stage = formula.memory.ranks.at(static_cast<std::size_t>(rank.stage));
    EXPECT_NEAR(rank.peak_bytes(), stage.peak_bytes(), offload_memory_bound * stage.peak_bytes()) << what;
    EXPECT_NEAR(rank.host_bytes, stage.host_bytes, offload_memory_bound * stage.host_bytes) << what;
  }
}

TEST(OffloadOfExperts, AgreesFromFastToSlowLinks) {
  for (const char* moe : {"routing: balanced", "chunks: 2, chunk_recompute: false", "chunks: 4"}) {
    for (const double rate : {400e9, 60e9, 30e9})
      expect_offload_agreement(offloading(moe, rate), fmt::format("{} at {} GB/s", moe, rate / 1e9));
  }
  expect_offload_agreement(offloading("routing: balanced", 60e9, "recompute: full\n"), "recomputed");
  expect_offload_agreement(offloading("dispatcher: hierarchical", 60e9, "schedule: zb-h1\n"), "zb-h1");
}

// One row of the hidden width in 16 bits for each pair, beside the layers' inputs.
TEST(OffloadOfExperts, TakesOutputsThatAreKept) {
  const sim::Job full = offloading("routing: balanced", 60e9, "recompute: full\n");
  const sim::Job kept = offloading("routing: balanced", 60e9, "recompute: {kept: [expert_fc2]}\n");
  EXPECT_EQ(workloads::received_activation_bytes(full.workload, true), 0);
  EXPECT_DOUBLE_EQ(workloads::received_activation_bytes(kept.workload, true), 2.0 * kept.workload.model.hidden);
  expect_offload_agreement(kept, "kept");
  EXPECT_GT(sim::predict(kept).memory.ranks.front().host_bytes, sim::predict(full).memory.ranks.front().host_bytes);
}

// Three of the eight layers of a stage: three eighths of what eight of them bring to the host.
TEST(OffloadOfExperts, OfTheFirstLayersOnly) {
  sim::Job job = offloading("routing: balanced", 400e9, "schedule: gpipe\n");
  const sim::StepResult all = sim::predict(job);
  job.workload.offload_layers = 3;
  expect_offload_agreement(job, "three layers");
  const sim::StepResult some = sim::predict(job);
  const double most = all.memory.ranks.front().host_bytes, now = some.memory.ranks.front().host_bytes;
  EXPECT_GT(now, 0);
  EXPECT_NEAR(now / most, 3.0 / 8, 0.05);
  EXPECT_GT(some.memory.fullest()->peak_bytes(), all.memory.fullest()->peak_bytes());
  EXPECT_LE(some.step_s, all.step_s);
}

// Half of every layer's activations go to the host, and half of the bytes over the links.
TEST(OffloadOfExperts, OfAShareOfEveryLayer) {
  sim::Job job = offloading("routing: balanced", 60e9, "schedule: gpipe\n");
  const sim::StepResult all = sim::predict(job);
  job.workload.offload_share = 0.5;
  expect_offload_agreement(job, "half");
  const sim::StepResult half = sim::predict(job);
  EXPECT_NEAR(half.memory.ranks.front().host_bytes, all.memory.ranks.front().host_bytes / 2, 1);
  EXPECT_GT(half.memory.fullest()->peak_bytes(), all.memory.fullest()->peak_bytes());
  EXPECT_LE(half.step_s, all.step_s);
}

// The hottest rank's copies are the longest: its host holds what its experts got.
TEST(OffloadOfExperts, TakesWhatEachRanksExpertsGot) {
  std::string rows;
  for (int layer = 0; layer < 16; ++layer) {
    for (int i = 0; i < 8; ++i) {
      for (int e = 0; e < 16; ++e) rows += fmt::format("[0, {}, {}, {}, {}],", layer, i, e, e / 2 == 5 ? 4 : 1);
    }
  }
  rows.pop_back();
  const sim::Job job = offloading(fmt::format("routing: {{counts: [{}]}}", rows), 60e9);
  const sim::StepResult simulated = sim::simulate_in_child(job), formula = sim::predict(job);
  EXPECT_NEAR(simulated.step_s, formula.step_s, offload_time_bound * formula.step_s);
  const workloads::ExpertLoads loads(job.workload);
  const double per_pair = workloads::received_activation_bytes(job.workload, false);
  const double layer = workloads::layer_activation_bytes(job.workload, false, workloads::LayerKind::experts);
  for (const sim::RankMemory& rank : simulated.memory.ranks) {
    const double all = layer + per_pair * loads.received(rank.rank % 8, 0, 0);
    // Of eight layers on each of two stages and two or one micro-batches all are on the host but those at hand or on their way.
    const double held = rank.host_bytes / all;
    EXPECT_NEAR(held, std::round(held), 1e-9) << rank.rank;
    EXPECT_GE(held, rank.stage == 0 ? 13 : 5) << rank.rank;
  }
}

TEST(OffloadOfExperts, LowersThePeakByWhatLeaves) {
  sim::Job job = offloading("routing: {zipf: 0.6}", 400e9);
  const double with = sim::predict(job).memory.fullest()->at_peak[sim::MemoryUse::activations];
  job.workload.offload_activations = false;
  const double without = sim::predict(job).memory.fullest()->at_peak[sim::MemoryUse::activations];
  EXPECT_LT(with, 0.4 * without);  // 16 layers and micro-batches in flight on stage 0, of which about three stay
}

}  // namespace
}  // namespace rehearse::tests

// What does it cost a step that memory is full, and do all who tell its time say the same?
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/analytic/predict.hpp"
#include "sim/compare/compare.hpp"
#include "sim/compare/difference.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/allocator_time.hpp"
#include "sim/validate/metric.hpp"

namespace rehearse::tests {
namespace {

using sim::Phase;

// A step of nanotron's sweep that asks for 160 GiB again. gpu: what is changed of its GPU.
sim::Job full_job(const std::string& gpu = "") {
  return sim::read_job(
      config::Node::load_text("model: {layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 14336, tied_embeddings: false,\n"
                              "        activation: swiglu, vocab: 131072, positions: rope, dropout: 0}\n"
                              "cluster: {like: aws-p5-h100, gpu: {like: h100-sxm5-80g" +
                                  gpu +
                                  "}}\n"
                                  "gpus: 128\n"
                                  "parallel: {tp: 16, dp: 8, sp: true}\n"
                                  "batch: {global: 256, micro: 32, sequence: 4096}\n"
                                  "optimizer: {sharding: zero1}\n"
                                  "overlap: {tp: true}\n"
                                  "recompute: none\n"
                                  "software: nanotron\n",
                              "full.yaml"),
      "full");
}

double most_retaken(const sim::StepResult& step) {
  double most = 0;
  for (const sim::RankMemory& rank : step.memory.ranks) most = std::max(most, rank.retaken_bytes);
  return most;
}

// 16 ranks in step, each at 670 GB/s: 16 R / 670e9 seconds for R bytes.
TEST(FullMemory, TakesItsBytesAtTheRateOfTheDriverOnceForEachRankInStep) {
  const sim::Job job = full_job();
  const sim::StepResult alone = sim::predict(job), full = sim::with_allocator(job, alone);
  const double expected_s = 16 * most_retaken(full) / 670e9;
  EXPECT_GT(expected_s, 1);
  EXPECT_NEAR(full.step_s - alone.step_s, expected_s, 1e-12 * full.step_s);
  EXPECT_DOUBLE_EQ(full.mean[Phase::allocator], expected_s);
  EXPECT_NEAR(full.mean.total(), full.step_s, 1e-12 * full.step_s);
  EXPECT_DOUBLE_EQ(full.step_seconds.front(), full.step_s);
  EXPECT_NEAR(full.tokens_per_s, 256 * 4096 / full.step_s, 1e-9 * full.tokens_per_s);
  EXPECT_NEAR(full.mfu / alone.mfu, alone.step_s / full.step_s, 1e-12);
}

TEST(FullMemory, TakesTimeByTheGpusOwnRate) {
  const sim::Job job = full_job(), slow = full_job(", retaking: 67 GB/s");
  EXPECT_NEAR(sim::retaking_s(slow, 1e12), 10 * sim::retaking_s(job, 1e12), 1e-9);
}

// On the way the allocator reserves what the GPU has, never less than the tensors; when backward has ended some of it is the device's
// again, and a source that counts from there on reads what is left.
TEST(FullMemory, IsReservedUntilSegmentsAreGivenBack) {
  const sim::Job job = full_job();
  const sim::StepResult full = sim::with_allocator(job, sim::predict(job));
  const sim::RankMemory& rank = full.memory.ranks.front();
  const double all = rank.capacity_bytes - rank.at_peak[sim::MemoryUse::framework];
  EXPECT_GE(rank.cached_bytes, 0);
  EXPECT_LE(rank.tensor_bytes() + rank.cached_bytes, all);
  EXPECT_GT(rank.tensor_bytes() + rank.cached_bytes,
            0.95 * all);  // blocks of 2 MiB and what no free segment is large enough for are missing
  EXPECT_GT(rank.returned_bytes, 0);
  const auto read = [&](sim::MemoryTime time) {
    const sim::MemoryReading reading{sim::MemoryCounter::reserved, std::nullopt, time};
    return sim::Predicted(job).metrics({{sim::Metric::peak_memory_gib, 1}}, reading).at(sim::Metric::peak_memory_gib) * 1024 * 1024 * 1024;
  };
  EXPECT_NEAR(read(sim::MemoryTime::later), rank.tensor_bytes() + rank.cached_bytes, 1);
  EXPECT_NEAR(read(sim::MemoryTime::update), read(sim::MemoryTime::later) - rank.returned_bytes, 1);
  const sim::Job roomy = full_job(", memory: 400 GiB");
  EXPECT_EQ(sim::with_allocator(roomy, sim::predict(roomy)).memory.ranks.front().returned_bytes, 0);
}

TEST(FullMemory, CostsNothingWhereThereIsEnough) {
  const sim::Job job = full_job(", memory: 400 GiB");
  const sim::StepResult alone = sim::predict(job), with = sim::with_allocator(job, alone);
  EXPECT_EQ(most_retaken(with), 0);
  EXPECT_EQ(with.step_s, alone.step_s);
  EXPECT_EQ(with.mean[Phase::allocator], 0);
}

TEST(FullMemory, CostsFormulaTimelineAndLongestPathTheSame) {
  const sim::Job job = full_job();
  const sim::Comparison comparison = sim::compare(job);
  const double seconds = comparison.analytic.mean[Phase::allocator];
  EXPECT_GT(seconds, 1);
  EXPECT_DOUBLE_EQ(comparison.simulated.mean[Phase::allocator], seconds);
  EXPECT_DOUBLE_EQ(comparison.critical.mean[Phase::allocator], seconds);
  const sim::StepResult alone = sim::predict(job);
  EXPECT_NEAR(comparison.analytic.step_s - alone.step_s, seconds, 1e-12 * comparison.analytic.step_s);
}

TEST(FullMemory, IsInWhatIsComparedWithMeasurements) {
  const sim::Job job = full_job();
  sim::Predicted predicted(job);
  const double step_s = predicted.metrics({{sim::Metric::step_s, 1}}).at(sim::Metric::step_s);
  EXPECT_DOUBLE_EQ(step_s, sim::with_allocator(job, sim::predict(job)).step_s);
  EXPECT_EQ(predicted.step().step_s, sim::predict(job).step_s);
}

// What changes in the allocator's phase between two jobs is put down to the part that changes it.
TEST(FullMemory, IsInWhatPartsOfTwoJobsDoAlone) {
  const sim::Job full = full_job(), roomy = full_job(", memory: 400 GiB");
  const auto side = [](const sim::Job& job) {
    return sim::DifferenceSide{"side", job.resolved.document(),
                               sim::numbers_of(sim::with_allocator(job, sim::predict(job)), job.system.gpus)};
  };
  const sim::Difference difference = sim::difference_of(side(full), side(roomy));
  ASSERT_EQ(difference.parts.size(), 1U);
  EXPECT_LT(difference.parts.front().phases[Phase::allocator], -1);
  EXPECT_NEAR(difference.parts.front().step_s, difference.numbers_b.step_s - difference.numbers_a.step_s, 1e-9);
  const auto change = std::ranges::find(difference.phases, Phase::allocator, &sim::PhaseChange::phase);
  ASSERT_NE(change, difference.phases.end());
  EXPECT_NE(change->reason, "");
}

// Stages wait for the one that retakes most: 16 x 67 GB / 670 GB/s = 1.6 s, of which the other has half a second of its own.
TEST(FullMemory, IsABubbleForStagesThatHaveLessOfIt) {
  const sim::Job job = full_job();
  sim::StepResult step;
  step.step_s = 2;
  step.step_seconds = {2};
  step.ranks = {{.rank = 0, .stage = 0, .ranks = 1, .phases = {}}, {.rank = 1, .stage = 1, .ranks = 1, .phases = {}}};
  for (sim::RankResult& rank : step.ranks) rank.phases[Phase::compute] = 2;
  step.memory.ranks.resize(2);
  step.memory.ranks[0].retaken_bytes = 67e9;
  step.memory.ranks[1].retaken_bytes = 67e9 * 0.5 / 1.6;
  EXPECT_DOUBLE_EQ(sim::add_allocator_time(job, step), 1.6);
  EXPECT_DOUBLE_EQ(step.step_s, 3.6);
  EXPECT_DOUBLE_EQ(step.ranks[0].phases[Phase::allocator], 1.6);
  EXPECT_DOUBLE_EQ(step.ranks[1].phases[Phase::allocator], 0.5);
  EXPECT_DOUBLE_EQ(step.ranks[1].phases[Phase::bubble], 1.1);
  for (const sim::RankResult& rank : step.ranks) EXPECT_DOUBLE_EQ(rank.phases.total(), step.step_s);
}

// Pipelines, replicas and experts' exchanges go on by themselves.
TEST(FullMemory, HoldsUpWhoExchangesWithinLayers) {
  workloads::Parallel parallel;
  parallel.pp = 3;
  parallel.dp = 16;
  parallel.ep = 8;
  EXPECT_EQ(sim::ranks_in_step(parallel), 1);
  parallel.tp = 4;
  parallel.cp = 2;
  EXPECT_EQ(sim::ranks_in_step(parallel), 4 * 2);
}

}  // namespace
}  // namespace rehearse::tests

// The peak that is looked for in the warm-up and one period of a schedule is that of the whole walk over every unit of every micro-batch:
// bytes, operation and micro-batch.
#include <gtest/gtest.h>

#include "sim/memory/peak_slots.hpp"
#include "sim/memory/predicted.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {
namespace {

// A model whose layers can be counted out to any pipeline.
sim::Job small_job_for_pipelines() {
  return job_of(fmt::format(
      "model: {{layers: 8, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: gelu, vocab: 32000, positions: rope}}\n"
      "cluster:{}\ngpus: 1\nparallel: {{tp: 1}}\nbatch: {{global: 8, micro: 1, sequence: 1024}}\nprecision: bf16\n",
      small_cluster(8, "{tp: {alpha: 1, beta: 1}}", "{size: 2 TiB, bandwidth: 200 GB/s}")));
}

void expect_same_peaks(const sim::Job& job, const std::string& what) {
  const workloads::Compiled compiled = workloads::compile(job.workload);
  const sim::MemoryResult bounded = sim::predicted_memory(job, compiled), whole = sim::predicted_memory(job, compiled, false);
  ASSERT_EQ(bounded.ranks.size(), whole.ranks.size()) << what;
  for (std::size_t s = 0; s < whole.ranks.size(); ++s) {
    ASSERT_EQ(bounded.ranks[s].at_peak.bytes, whole.ranks[s].at_peak.bytes) << what << ", stage " << s;
    ASSERT_EQ(bounded.ranks[s].operation, whole.ranks[s].operation) << what << ", stage " << s;
    ASSERT_EQ(bounded.ranks[s].microbatch, whole.ranks[s].microbatch) << what << ", stage " << s;
  }
}

TEST(PeakSlots, FindThePeakOfEveryScheduleAndShape) {
  sim::Job job = small_job_for_pipelines();
  int shapes = 0;
  for (const std::string& schedule : workloads::ScheduleRegistry::names()) {
    for (const int p : {1, 2, 3, 4, 6, 8, 16}) {
      for (const int v : {1, 2, 3, 5, 8}) {
        for (const int m : {1, 2, 3, 8, 16, 32, 48, 128}) {
          job.workload.schedule = schedule;
          job.workload.parallel.pp = job.system.gpus = p;
          job.workload.parallel.vpp = v;
          job.workload.batch.global = m;
          const workloads::PipelineShape shape = workloads::pipeline_shape(job.workload);
          if (!workloads::ScheduleRegistry::get(schedule).refusal(shape).empty()) continue;
          job.workload.model.layers = p * shape.chunks + (m % 3 == 0 ? p : 0);
          ++shapes;
          expect_same_peaks(job, fmt::format("{} p {} v {} m {}", schedule, p, v, m));
        }
      }
    }
  }
  EXPECT_GT(shapes, 300);
}

TEST(PeakSlots, FindThePeakOfRandomJobs) {
  RandomJobs jobs(23);
  for (int i = 0; i < 400; ++i) {
    const std::string text = jobs.next() + "}\n";
    expect_same_peaks(job_of(text), text);
  }
}

// 1F1B's first stage warms up with p forwards and then alternates: more micro-batches add nothing to look at.
TEST(PeakSlots, DoNotGrowWithTheMicroBatches) {
  sim::Job job = small_job_for_pipelines();
  job.workload.parallel.pp = job.system.gpus = 8;
  std::vector<std::size_t> entries;
  for (const int m : {32, 64, 128}) {
    job.workload.batch.global = m;
    entries.push_back(sim::PeakSlots(job.workload, workloads::compile(job.workload), 0).entries().size());
  }
  EXPECT_EQ(entries[0], entries[1]);
  EXPECT_EQ(entries[1], entries[2]);
  EXPECT_LT(entries[0], 20U);
}

}  // namespace
}  // namespace rehearse::tests

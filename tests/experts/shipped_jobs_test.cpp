// Every ready-made job with experts runs: it fits or says what does not, the formula and the timeline agree, folded and fast.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <chrono>

#include "jobs.hpp"
#include "places.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/memory/tune_chunks.hpp"

namespace rehearse::tests {
namespace {

class ShippedExpertJobs : public testing::TestWithParam<const char*> {};

TEST_P(ShippedExpertJobs, RunAndAgreeWithTheirFormula) {
  const sim::Job job = sim::tuned(sim::load_job({std::string(REHEARSE_SOURCE_DIR) + "/workloads/jobs/" + GetParam() + ".yaml", {}, {}}));
  const sim::StepResult analytic = sim::predict(job), simulated = sim::simulate_in_child(job);
  EXPECT_TRUE(simulated.memory.fits());
  // Whole clusters share NICs between exchange, replicas and pipeline, and their reductions run behind uneven stages: a little wider than
  // the 2 % of one feature.
  EXPECT_NEAR(simulated.step_s, analytic.step_s, 0.025 * analytic.step_s) << 100 * (simulated.step_s / analytic.step_s - 1) << " %";
  for (std::size_t stage = 0; stage < analytic.memory.ranks.size(); ++stage) {
    const double formula = analytic.memory.ranks[stage].peak_bytes();
    double timeline = 0;
    for (const sim::RankMemory& rank : simulated.memory.ranks) {
      if (rank.stage == static_cast<int>(stage)) timeline = std::max(timeline, rank.peak_bytes());
    }
    EXPECT_NEAR(timeline, formula, 0.01 * formula) << stage;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedExpertJobs,
                         testing::Values("mixtral-8x7b-64-h100", "mixtral-8x22b-128-h100", "deepseek-v3-2048-h800",
                                         "qwen3-235b-a22b-256-h100", "qwen3-30b-a3b-16-h100", "gpt-oss-120b-64-h100", "kimi-k2-1024-h800"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The bound: p16, e64, layer by layer, in less than 30 s and 4 GB.
TEST(DeepSeekV3, AStepOf2048GpusIsSimulatedQuickly) {
  const sim::Job job = sim::load_job({REHEARSE_SOURCE_DIR "/workloads/jobs/deepseek-v3-2048-h800.yaml", {}, {}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(sim::simulate_in_child(job).step_s, 0);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 30);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss, 4L * 1000 * 1000);  // kB
}

}  // namespace
}  // namespace rehearse::tests

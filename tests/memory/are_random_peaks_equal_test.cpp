// Formula and timeline hold the same peak of memory on random jobs, at every granularity: every schedule, sharding, recomputation, offload,
// context parallelism and experts.
#include <gtest/gtest.h>

#include "sim/engine/simulate.hpp"
#include "sim/memory/predicted.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {
namespace {

constexpr double peak_rounding = 1e-12;  // sums of the same doubles in another order

// A stage's formula stands for the fullest of its ranks.
std::vector<double> fullest_of_stages(const sim::MemoryResult& memory, int stages) {
  std::vector<double> fullest(static_cast<std::size_t>(stages));
  for (const sim::RankMemory& rank : memory.ranks) {
    double& most = fullest[static_cast<std::size_t>(rank.stage)];
    most = std::max(most, rank.peak_bytes());
  }
  return fullest;
}

TEST(RandomPeaks, AreEqualByFormulaAndOnTheTimeline) {
  RandomJobs jobs(17);
  for (int i = 0; i < 300; ++i) {
    const std::string text = jobs.next();
    const char* granularities[] = {"stage", "layer", "operator"};
    const sim::Job job = job_of(fmt::format("{}, granularity: {}}}\n", text, granularities[i % 3]));
    const int stages = job.workload.parallel.pp;
    const std::vector<double> formula = fullest_of_stages(sim::predicted_memory(job), stages);
    const std::vector<double> timeline = fullest_of_stages(sim::critical_path(job).result.memory, stages);
    for (std::size_t s = 0; s < formula.size(); ++s) {
      EXPECT_NEAR(timeline[s], formula[s], peak_rounding * formula[s]) << "stage " << s << " of " << text;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

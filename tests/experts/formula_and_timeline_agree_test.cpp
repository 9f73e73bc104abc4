// Balanced routing: the simulated step is within 2 % of the analytic one and the peaks are equal, for every number of chunks, dispatcher
// and way of spreading the experts.
#include <gtest/gtest.h>

#include <map>

#include "jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

constexpr double time_bound = 0.02;     // the project's stated bounds
constexpr double memory_bound = 1e-12;  // sums of the same doubles in another order

void expect_agreement(const sim::Job& job, const std::string& what) {
  const sim::StepResult analytic = sim::predict(job);
  const sim::StepResult simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.step_s, analytic.step_s, time_bound * analytic.step_s)
      << what << ": " << 100 * (simulated.step_s / analytic.step_s - 1) << " %";
  for (const sim::RankMemory& rank : simulated.memory.ranks) {
    const sim::RankMemory& stage = analytic.memory.ranks.at(static_cast<std::size_t>(rank.stage));
    EXPECT_NEAR(rank.peak_bytes(), stage.peak_bytes(), memory_bound * stage.peak_bytes()) << what << ", stage " << rank.stage;
  }
}

TEST(BalancedExperts, InAnyNumberOfChunksWithAndWithoutRecomputationOfThem) {
  for (const int chunks : {1, 2, 4, 8}) {
    for (const char* again : {"false", "true"}) {
      for (const char* contention : {"{alpha: 1, beta: 1}", "{alpha: 1.2, beta: 1.1}"}) {
        const std::string extra = fmt::format("moe: {{chunks: {}, chunk_recompute: {}}}\n", chunks, again);
        expect_agreement(expert_job(16, "{pp: 2, dp: 8, ep: 8}", "{global: 64, micro: 1, sequence: 4096}", extra, 8, contention),
                         extra + contention);
      }
    }
  }
}

TEST(BalancedExperts, WithEveryDispatcherInOneNodeAndAcrossNodes) {
  for (const char* dispatcher : {"alltoall", "allgather", "hierarchical"}) {
    for (const int ep : {2, 8, 16}) {
      const std::string extra = fmt::format("moe: {{dispatcher: {}, chunks: 2}}\n", dispatcher);
      expect_agreement(expert_job(16, fmt::format("{{dp: 16, ep: {}}}", ep), "{global: 64, micro: 2, sequence: 2048}", extra),
                       fmt::format("{}ep {}", extra, ep));
    }
  }
}

TEST(BalancedExperts, BesideEveryOtherParallelismShardingAndRecomputation) {
  const char* layouts[] = {"{tp: 2, sp: true, dp: 8, ep: 8, etp: 1}",
                           "{tp: 2, sp: true, dp: 8, ep: 4, etp: 2}",
                           "{tp: 4, sp: true, pp: 2, dp: 2, ep: 8, etp: 1}",
                           "{cp: 2, dp: 8, ep: 16}",
                           "{cp: 2, dp: 4, pp: 2, ep: 4}",
                           "{pp: 4, vpp: 2, dp: 4, ep: 4}"};
  for (const char* layout : layouts) {
    for (const char* sharding : {"none", "zero1"}) {
      for (const char* recompute : {"none", "full", "{modules: [layernorm, moe_act]}"}) {
        const std::string extra = fmt::format("recompute: {}\noptimizer: {{sharding: {}}}\n", recompute, sharding);
        expect_agreement(expert_job(16, layout, "{global: 32, micro: 1, sequence: 4096}", extra), layout + (" " + extra));
      }
    }
  }
  expect_agreement(expert_job(16, "{dp: 16, ep: 8}", "{global: 32, micro: 1, sequence: 4096}", "optimizer: {sharding: zero3}\n"), "zero3");
}

// Few tokens: the host sets the pace, unless it replays graphs. Interleaving two micro-batches costs it more.
TEST(BalancedExperts, BoundByTheHostOrReplayedAsGraphs) {
  std::map<std::pair<bool, bool>, double> step_s;
  for (const bool graphs : {false, true}) {
    for (const bool pairs : {false, true}) {
      const std::string extra = fmt::format("cuda_graphs: {}\noverlap: {{ep: {}}}\n", graphs, pairs);
      const sim::Job job = expert_job(8, "{pp: 2, dp: 4, ep: 4}", "{global: 64, micro: 1, sequence: 512}", extra);
      expect_agreement(job, extra);
      step_s[{graphs, pairs}] = sim::predict(job).step_s;
      sim::Job idle_host = job;
      idle_host.system.software.issue_s = 0;
      const double idle_s = sim::predict(idle_host).step_s;
      EXPECT_TRUE(graphs ? idle_s == sim::predict(job).step_s : idle_s < sim::predict(job).step_s);
    }
  }
  EXPECT_GT((step_s[{false, false}]), 2 * (step_s[{true, false}]));
  EXPECT_GT((step_s[{false, true}]), (step_s[{false, false}]));
  EXPECT_LT((step_s[{true, true}]), (step_s[{true, false}]));
}

}  // namespace
}  // namespace rehearse::tests

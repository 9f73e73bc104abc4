// Layers that stay in bf16 beside others in fewer bits: their experts' products, what is sent to these and what both keep.
#include <gtest/gtest.h>

#include <random>

#include "jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/tune/floors.hpp"

namespace rehearse::tests {
namespace {

// Nothing but products and what is around them knows their precision: no cast of weights once a step, no copies of these.
sim::Job of_precision(const std::string& precision, const std::string& moe, const std::string& rest = "",
                      const char* parallel = "{pp: 2, dp: 8, ep: 8}") {
  sim::Job job = expert_job(16, parallel, "{global: 32, micro: 1, sequence: 2048}",
                            fmt::format("moe: {}\nsoftware: {{like: megatron-core, casts_weights: false, memory: {{narrow_copies: false}}, "
                                        "experts: {{low_precision_dispatch: true}}}}\n{}",
                                        moe, rest));
  return sim::with_settings(job, {{"precision", precision}});
}

constexpr const char* all_wide = "{compute: fp8, attention: fp8, bf16_at_start: 3, bf16_at_end: 5}";  // of eight layers

const std::vector<std::string>& ways_to_experts() {
  static const std::vector<std::string> ways{"{dispatcher: alltoall}", "{dispatcher: hierarchical, chunks: 2}",
                                             "{dispatcher: allgather, chunk_recompute: true}",
                                             "{dispatcher: alltoall, routing: {zipf: 0.5}}"};
  return ways;
}

// A job all of whose layers are in bf16 is a job in bf16.
TEST(WideLayersWithExperts, AreAllThatAJobInSixteenBitsIs) {
  for (const std::string& moe : ways_to_experts()) {
    for (const char* recompute : {"recompute: none\n", "recompute: full\n", "recompute: {modules: [layernorm, moe_act]}\n"}) {
      const sim::Job wide = of_precision(all_wide, moe, recompute), plain = of_precision("bf16", moe, recompute);
      const sim::StepResult ours = sim::predict(wide), theirs = sim::predict(plain);
      EXPECT_DOUBLE_EQ(ours.step_s, theirs.step_s) << moe << recompute;
      for (std::size_t i = 0; i < theirs.memory.ranks.size(); ++i)
        EXPECT_DOUBLE_EQ(ours.memory.ranks[i].peak_bytes(), theirs.memory.ranks[i].peak_bytes()) << moe << recompute;
      EXPECT_DOUBLE_EQ(sim::simulate_in_child(wide).step_s, sim::simulate_in_child(plain).step_s) << moe << recompute;
      EXPECT_DOUBLE_EQ(sim::Floors(wide).step_s(wide.workload), sim::Floors(plain).step_s(plain.workload)) << moe << recompute;
    }
  }
}

// Some of them: between the two, the same by formula and timeline, and no floor is above.
TEST(WideLayersWithExperts, AreTheSameByFormulaAndTimeline) {
  std::mt19937 random(5);
  for (int i = 0; i < 24; ++i) {
    const std::string& moe = ways_to_experts()[static_cast<std::size_t>(i) % 3];
    const std::string some = fmt::format("{{compute: fp8, bf16_at_start: {}, bf16_at_end: {}}}", random() % 4, 1 + random() % 3);
    const char* recompute = random() % 2 == 0 ? "recompute: none\n" : "recompute: full\n";
    const char* parallel = random() % 2 == 0 ? "{dp: 16, ep: 16}" : "{pp: 4, vpp: 2, dp: 4, ep: 4}";
    const sim::Job job = of_precision(some, moe, recompute, parallel);
    const sim::StepResult analytic = sim::predict(job), simulated = sim::simulate_in_child(job);
    const std::string what = some + moe + recompute + parallel;
    EXPECT_NEAR(simulated.step_s, analytic.step_s, 0.02 * analytic.step_s) << what;
    for (const sim::RankMemory& rank : simulated.memory.ranks) {
      const double peak = analytic.memory.ranks.at(static_cast<std::size_t>(rank.stage)).peak_bytes();
      EXPECT_NEAR(rank.peak_bytes(), peak, 1e-12 * peak) << what;
    }
    EXPECT_LE(sim::Floors(job).step_s(job.workload), analytic.step_s) << what;
    EXPECT_NE(analytic.step_s, sim::predict(of_precision("fp8", moe, recompute, parallel)).step_s) << what;
  }
}

}  // namespace
}  // namespace rehearse::tests

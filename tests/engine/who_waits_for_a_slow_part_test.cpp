// A slow GPU, port or spine slows exactly who waits for it.
#include <gtest/gtest.h>

#include "places.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::sim {
namespace {

constexpr const char* slow_batch = "{global: 16, micro: 1, sequence: 512}";

StepResult step(const std::string& parallel, const std::string& simulation, int gpus = 16) {
  return simulate_in_child(tests::small_job(gpus, parallel, slow_batch, "simulation: {" + simulation + "}\n"));
}

// Replicas meet once, after everything else: the step grows by what the slow GPU computes longer before that; its update comes after.
TEST(WhoWaitsForASlowPart, all_replicas_for_a_slow_gpu) {
  const StepResult healthy = step("{dp: 16}", "granularity: layer");
  const StepResult slow = step("{dp: 16}", "faults: [gpu 3 slow 1.5]");
  ASSERT_EQ(slow.ranks.size(), 2U);  // the straggler and the 15 others
  EXPECT_EQ(slow.ranks[0].ranks, 15);
  EXPECT_EQ(slow.ranks[1].rank, 3);
  const PhaseTimes& before = healthy.ranks[0].phases;
  const double longer_s = 0.5 * (before[Phase::compute] + before[Phase::recompute] + before[Phase::optimizer]);
  EXPECT_NEAR(slow.step_s, healthy.step_s + longer_s, 1e-9);
  // The others wait where they meet it: for its computation and the stack's time per step, which comes first; not for its update.
  const double stack_s = tests::small_job(16, "{dp: 16}", slow_batch).system.software.step_s;
  EXPECT_NEAR(slow.ranks[0].phases[Phase::waiting], 0.5 * (before[Phase::compute] + stack_s), 1e-9);
  EXPECT_NEAR(slow.ranks[1].phases[Phase::waiting], 0, 1e-12);
}

// The slower of two sets the pace; equal ones in different replicas cost what one costs.
TEST(WhoWaitsForASlowPart, nobody_for_the_less_slow) {
  const double one = step("{dp: 16}", "faults: [gpu 3 slow 1.5]").step_s;
  EXPECT_NEAR(step("{dp: 16}", "faults: [gpu 3 slow 1.5, gpu 7 slow 1.2]").step_s, one, 1e-9);
  EXPECT_NEAR(step("{dp: 16}", "faults: [gpu 3 slow 1.5, gpu 7 slow 1.5]").step_s, one, 1e-9);
}

// A port at half speed: the ring goes at its pace. Ports carry nothing else here: alpha + 2 x bytes / bandwidth.
TEST(WhoWaitsForASlowPart, the_ring_for_a_slow_port) {
  const StepResult healthy = step("{tp: 8, dp: 2}", "granularity: layer");
  for (const char* how : {"collectives: ring", "collectives: closed", "ranks: all", "ranks: all, collectives: step"}) {
    const StepResult reference = step("{tp: 8, dp: 2}", how);
    const StepResult slow = step("{tp: 8, dp: 2}", std::string("faults: [nic 3 slow 2], ") + how);
    EXPECT_NEAR(reference.step_s, healthy.step_s, 1e-9);
    double transfer_s = 0;
    for (const CollectiveResult& call : healthy.collectives) {
      if (call.group == "dp") transfer_s += static_cast<double>(call.calls) * (call.seconds - 2 * 6e-6);  // two rounds of 6 us
    }
    ASSERT_GT(transfer_s, 0);
    EXPECT_NEAR(slow.step_s, healthy.step_s + transfer_s, 1e-9) << how;
  }
}

// All of a rail is what all ports of that rail are.
TEST(WhoWaitsForASlowPart, a_rail_is_its_ports) {
  EXPECT_DOUBLE_EQ(step("{tp: 8, dp: 2}", "faults: [rail 3 slow 2]").step_s,
                   step("{tp: 8, dp: 2}", "faults: [nic 3 slow 2, nic 11 slow 2]").step_s);
  EXPECT_DOUBLE_EQ(step("{tp: 8, dp: 2}", "faults: [node 1 slow 2]").step_s,
                   step("{tp: 8, dp: 2}",
                        "faults: [gpu 8 slow 2, gpu 9 slow 2, gpu 10 slow 2, gpu 11 slow 2, gpu 12 slow 2, gpu 13 slow 2, "
                        "gpu 14 slow 2, gpu 15 slow 2]")
                       .step_s);
}

// Folded or not, in every kind of layout.
TEST(WhoWaitsForASlowPart, folded_as_with_all_ranks) {
  for (const char* parallel : {"{tp: 4, pp: 4}", "{tp: 2, pp: 4, dp: 2}", "{pp: 2, dp: 8}", "{tp: 8, dp: 2}"}) {
    for (const char* fault : {"gpu 5 slow 1.3", "node 1 slow 1.2"}) {
      const double folded = step(parallel, std::string("faults: [") + fault + "]").step_s;
      EXPECT_NEAR(folded, step(parallel, std::string("ranks: all, faults: [") + fault + "]").step_s, 1e-9) << parallel << fault;
      EXPECT_GT(folded, step(parallel, "granularity: layer").step_s);
    }
  }
}

// More is never faster; never more than everything being as slow.
TEST(WhoWaitsForASlowPart, no_less_the_slower_it_is) {
  double last = 0;
  const double healthy = step("{tp: 2, pp: 4, dp: 2}", "granularity: layer").step_s;
  for (const double slowdown : {1.0, 1.1, 1.5, 2.0, 4.0}) {
    const double now = step("{tp: 2, pp: 4, dp: 2}", fmt::format("faults: [gpu 9 slow {}]", slowdown)).step_s;
    EXPECT_GE(now, last);
    EXPECT_LE(now, slowdown * healthy * (1 + 1e-9));
    last = now;
  }
}

// The formula's bound holds up everybody by all of the slow stage's work; on the timeline a part of it fits into the bubble.
TEST(WhoWaitsForASlowPart, critical_path_knows_it_too) {
  const Job job =
      tests::small_job(16, "{tp: 2, pp: 4, dp: 2}", slow_batch, "simulation: {faults: [gpu 9 slow 1.5], collectives: closed}\n");
  EXPECT_NEAR(critical_path(job).result.step_s, simulate_in_child(job).step_s, 1e-9);
}

// Some cp groups lie in a node and some across: what a rank's host queues meets the rank's own calls, whichever rank comes first.
TEST(WhoWaitsForASlowPart, nobody_is_faster_for_a_slow_spine) {
  const std::string path = REHEARSE_SOURCE_DIR "/tests/engine/data/groups-within-and-across-nodes.yaml";
  const auto step_s = [&](const std::vector<std::string>& faults) {
    return simulate_in_child(load_job({path, {{"simulation.collectives", "closed"}, {"cluster.gpu.contention", "{}"}}, {}, faults})).step_s;
  };
  EXPECT_GE(step_s({"spine slow 1.0001"}), step_s({}));
}

}  // namespace
}  // namespace rehearse::sim

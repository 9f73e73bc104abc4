// EP overlap, equation (22): forward of one micro-batch beside backward of another, so that the exchange of each hides behind the
// computation of the other.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "sim/analytic/overlap.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::tests {
namespace {

using sim::PieceTimes;

struct Layout {
  const char *parallel, *schedule;
};

class OverlappedPairs : public testing::TestWithParam<Layout> {};

sim::Job job_of(const Layout& layout, bool overlap, const char* contention = "{alpha: 1, beta: 1}") {
  return expert_job(16, layout.parallel, "{global: 128, micro: 1, sequence: 4096}",
                    fmt::format("schedule: {}\noverlap: {{ep: {}}}\ncuda_graphs: true\n", layout.schedule, overlap), 8, contention);
}

TEST_P(OverlappedPairs, TakeTheTimeAndMemoryOfTheirFormula) {
  for (const char* contention : {"{alpha: 1, beta: 1}", "{alpha: 1.2, beta: 1}"}) {
    const sim::Job job = job_of(GetParam(), true, contention);
    const sim::StepResult analytic = sim::predict(job), simulated = sim::simulate_in_child(job);
    EXPECT_NEAR(simulated.step_s, analytic.step_s, 0.02 * analytic.step_s) << 100 * (simulated.step_s / analytic.step_s - 1) << " %";
    for (const sim::RankMemory& rank : simulated.memory.ranks) {
      const double formula = analytic.memory.ranks.at(static_cast<std::size_t>(rank.stage)).peak_bytes();
      EXPECT_NEAR(rank.peak_bytes(), formula, 1e-12 * formula) << rank.stage;  // sums of the same doubles in another order
    }
  }
}

TEST_P(OverlappedPairs, AreFasterThanSlotsOneByOneAndNoFasterThanTheirComputation) {
  const sim::StepResult beside = sim::simulate_in_child(job_of(GetParam(), true)),
                        after = sim::simulate_in_child(job_of(GetParam(), false));
  EXPECT_LT(beside.step_s, after.step_s);
  EXPECT_GE(beside.step_s, beside.mean[sim::Phase::compute]);
  EXPECT_LT(beside.mean[sim::Phase::ep], after.mean[sim::Phase::ep]);
}

INSTANTIATE_TEST_SUITE_P(All, OverlappedPairs,
                         testing::Values(Layout{"{dp: 16, ep: 16}", "1f1b"}, Layout{"{pp: 2, dp: 8, ep: 8}", "1f1b"},
                                         Layout{"{pp: 4, dp: 4, ep: 4}", "1f1b"},
                                         Layout{"{pp: 2, vpp: 2, dp: 8, ep: 8}", "interleaved-1f1b"},
                                         Layout{"{pp: 4, vpp: 2, dp: 4, ep: 4}", "interleaved-1f1b"},
                                         Layout{"{pp: 4, dp: 4, ep: 4}", "dualpipe"},
                                         Layout{"{tp: 2, sp: true, pp: 2, dp: 4, ep: 8, etp: 1}", "1f1b"},
                                         Layout{"{tp: 2, sp: true, pp: 2, vpp: 2, dp: 4, ep: 4, etp: 2}", "interleaved-1f1b"}),
                         [](const auto& test) { return fmt::format("case{}", test.index); });

// What lies between experts is one piece, whatever collectives are in it: behind them the other slot's exchange hides as without them.
TEST(OverlappedPair, HidesAsMuchWithTensorParallelism) {
  const auto hidden = [](const char* parallel) {
    const Layout layout{parallel, "1f1b"};
    const sim::StepResult beside = sim::predict(job_of(layout, true)), after = sim::predict(job_of(layout, false));
    return 1 - beside.mean[sim::Phase::ep] / after.mean[sim::Phase::ep];
  };
  EXPECT_GT(hidden("{tp: 2, sp: true, pp: 2, dp: 4, ep: 8, etp: 1}"), 0.9 * hidden("{pp: 2, dp: 8, ep: 8}"));
}

// By hand. One unit each: 1 of computation, 2 of dispatch, 3 of experts, 2 of combine, 1 of computation.
// A pair hides exchanges and tensor-parallel calls: what is left of all phases is the step, not more.
TEST(OverlappedPair, PhasesAddUpToTheStep) {
  for (const char* layout : {"{tp: 2, sp: true, dp: 8, ep: 8, etp: 1}", "{tp: 2, sp: true, pp: 2, dp: 4, ep: 8, etp: 1}"}) {
    const sim::StepResult step = sim::predict(expert_job(16, layout, "{global: 64, micro: 1, sequence: 4096}", "overlap: {ep: true}\n"));
    for (const sim::RankResult& rank : step.ranks) {
      EXPECT_NEAR(rank.phases.total(), step.step_s, 1e-9 * step.step_s) << layout << ", stage " << rank.stage;
    }
  }
}

TEST(OverlappedPair, OfOneUnitEachByHand) {
  const std::vector<PieceTimes> unit{{0, 1, 0}, {2, 3, 2}, {0, 1, 0}};
  const std::vector<sim::Pieces> slot{unit};
  // Backward computes 0-1, its dispatch 1-3; forward computes 1-2, its dispatch 3-5; backward's experts 3-6, its combine 6-8; forward's
  // experts 6-9, its combine 9-11; backward's last 9-10, forward's last 11-12.
  EXPECT_EQ(sim::paired(slot, slot, {}).seconds, 12);
  const std::vector<sim::Pieces> nothing;
  EXPECT_EQ(sim::paired(slot, nothing, {}).seconds, 9);
  EXPECT_EQ(sim::paired(nothing, slot, {}).seconds, 9);
}

// 1 of its experts' 3 are weight gradients, which wait until the combine has begun: backward alone computes 0-1, dispatches 1-3, its
// experts 3-5, combines 5-7 beside the weights 5-6, and computes 7-8.
TEST(OverlappedPair, WithDelayedWeightGradientsByHand) {
  const std::vector<PieceTimes> unit{{0, 1, 0}, {2, 3, 2}, {0, 1, 0}}, delays{{0, 1, 0}, {2, 2, 2, 0, 1}, {0, 1, 0}};
  const std::vector<sim::Pieces> forward{unit}, backward{delays}, nothing;
  EXPECT_EQ(sim::paired(nothing, backward, {}).seconds, 8);
  // The other's experts follow the weights, 6-9.
  EXPECT_EQ(sim::paired(forward, backward, {}).seconds, 12);
  EXPECT_EQ(sim::chunked_s({.chunks = 1, .dispatch_s = 2, .work_s = 2, .combine_s = 2, .delayed_s = 1}, {}), 6);
}

TEST(OverlappedPair, DelaysWeightGradientsByFormulaAndTimelineAlike) {
  for (const Layout& layout : {Layout{"{dp: 16, ep: 16}", "1f1b"}, Layout{"{pp: 4, dp: 4, ep: 4}", "1f1b"},
                               Layout{"{pp: 4, vpp: 2, dp: 4, ep: 4}", "interleaved-1f1b"}}) {
    const sim::Job at_once = job_of(layout, true);
    sim::Job delayed = at_once;
    delayed.workload.overlap.delay_wgrad = true;
    const sim::StepResult formula = sim::predict(delayed), simulated = sim::simulate_in_child(delayed);
    EXPECT_NEAR(simulated.step_s, formula.step_s, 0.02 * formula.step_s) << layout.parallel;
    EXPECT_LT(formula.step_s, sim::predict(at_once).step_s);
    EXPECT_LT(simulated.step_s, sim::simulate_in_child(at_once).step_s);
    EXPECT_NEAR(formula.mean[sim::Phase::compute], sim::predict(at_once).mean[sim::Phase::compute], 1e-9 * formula.step_s);
    for (const sim::RankMemory& rank : simulated.memory.ranks) {
      const double peak = formula.memory.ranks.at(static_cast<std::size_t>(rank.stage)).peak_bytes();
      EXPECT_NEAR(rank.peak_bytes(), peak, 1e-12 * peak) << rank.stage;
    }
  }
}

TEST(OverlappedPair, SlotsAreAllThereOnceAndPairsAreOfDifferentMicroBatches) {
  for (const char* schedule : {"1f1b", "interleaved-1f1b"}) {
    sim::Job job = job_of({schedule[0] == '1' ? "{pp: 4, dp: 4, ep: 4}" : "{pp: 4, vpp: 2, dp: 4, ep: 4}", schedule}, true);
    const auto shape = workloads::pipeline_shape(job.workload);
    for (int stage = 0; stage < 4; ++stage) {
      const std::vector<workloads::Slot> slots = workloads::slots_of(job.workload, stage);
      EXPECT_EQ(slots.size(), 2UL * shape.microbatches * shape.chunks);
      int pairs = 0;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!slots[i].paired) continue;
        ++pairs;
        EXPECT_EQ(slots[i].kind, workloads::Slot::Kind::forward);
        ASSERT_EQ(slots[i + 1].kind, workloads::Slot::Kind::backward);
        EXPECT_FALSE(slots[i].microbatch == slots[i + 1].microbatch && slots[i].chunk == slots[i + 1].chunk);
      }
      EXPECT_GT(pairs, shape.microbatches * shape.chunks / 2);
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

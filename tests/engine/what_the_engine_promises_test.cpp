// Phases that add up, the same bytes twice, steps that repeat, and a deadlock that is an error.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/critical_path.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::tests {
namespace {

sim::Job mixed_job() {
  return small_job(32, "{tp: 4, pp: 4, dp: 2, vpp: 2, sp: true}", "{global: 16, micro: 1, sequence: 1024}",
                   "recompute: full\noptimizer: {sharding: zero1}\noverlap: {dp_gradients: true}");
}

TEST(Engine, PhasesOfEveryRankAddUpToTheStep) {
  const sim::StepResult result = sim::simulate_in_child(mixed_job());
  for (const sim::RankResult& rank : result.ranks) EXPECT_NEAR(rank.phases.total(), result.step_s, 1e-9 * result.step_s);
  EXPECT_NEAR(result.mean.total(), result.step_s, 1e-9 * result.step_s);
  EXPECT_GT(result.mean[sim::Phase::recompute], 0);
  EXPECT_GT(result.mean[sim::Phase::tp], 0);
  EXPECT_GT(result.mean[sim::Phase::bubble], 0);
}

TEST(Engine, SameJobSameBytes) {
  const sim::StepResult a = sim::simulate_in_child(mixed_job());
  const sim::StepResult b = sim::simulate_in_child(mixed_job());
  EXPECT_EQ(a.step_s, b.step_s);
  for (std::size_t i = 0; i < a.ranks.size(); ++i) EXPECT_EQ(a.ranks[i].phases.seconds, b.ranks[i].phases.seconds);
}

TEST(Engine, StepsRepeat) {
  sim::Job job = mixed_job();
  job.system.simulation.steps = 3;
  const sim::StepResult result = sim::simulate_in_child(job);
  ASSERT_EQ(result.step_seconds.size(), 3U);
  for (const double step : result.step_seconds) EXPECT_NEAR(step, result.step_seconds.front(), 1e-9 * step);
}

// Granularity is how the timeline is cut, not what is modelled: with nothing overlapped the step is the same.
TEST(Engine, GranularityDoesNotChangeTheStep) {
  sim::Job job = small_job(32, "{tp: 4, pp: 4, dp: 2, sp: true}", "{global: 16, micro: 1, sequence: 1024}");
  job.system.simulation.granularity = sim::Granularity::stage;
  const double stage = sim::simulate_in_child(job).step_s;
  job.system.simulation.granularity = sim::Granularity::layer;
  EXPECT_NEAR(sim::simulate_in_child(job).step_s, stage, 1e-9 * stage);
  job.system.simulation.granularity = sim::Granularity::op;
  EXPECT_NEAR(sim::simulate_in_child(job).step_s, stage, 1e-9 * stage);
}

TEST(Engine, FidelityDoesNotChangeAStepWithoutSharedLinks) {
  sim::Job job = small_job(16, "{tp: 8, pp: 2, dp: 1}", "{global: 8, micro: 1, sequence: 1024}");
  job.system.simulation.collectives = sim::Fidelity::closed;
  const double closed = sim::simulate_in_child(job).step_s;
  for (const auto fidelity : {sim::Fidelity::ring, sim::Fidelity::step, sim::Fidelity::automatic}) {
    job.system.simulation.collectives = fidelity;
    EXPECT_NEAR(sim::simulate_in_child(job).step_s, closed, 1e-7 * closed);
  }
}

// Nothing shared and no coefficients: the timeline is the longest path.
TEST(Engine, EqualsTheCriticalPathWithoutSharedLinks) {
  const sim::Job job = small_job(16, "{tp: 8, pp: 2, dp: 1}", "{global: 8, micro: 1, sequence: 1024}");
  const double path = sim::critical_path(job).result.step_s;
  EXPECT_NEAR(sim::simulate_in_child(job).step_s, path, 1e-9 * path);
}

TEST(Engine, TimelineHasNoOverlapInAStreamAndEndsWithTheStep) {
  const auto numbers = sim::run_in_child([] {
    const sim::Simulation s = sim::simulate(mixed_job());
    double latest = 0, overlaps = 0;
    std::map<std::pair<std::uint32_t, int>, double> end;
    s.timeline.events->each([&](const sim::TimelineEvent& event) {
      double& last = end[{event.rank, event.stream}];
      overlaps += event.start_s < last - 1e-12 ? 1 : 0;
      last = event.end_s;
      latest = std::max(latest, event.end_s);
    });
    double arrows = 0;
    s.timeline.events->each_arrow([&](const sim::TimelineEvent&, const sim::TimelineEvent&) { ++arrows; });
    return std::vector<double>{latest / s.result.step_s, overlaps, arrows};
  });
  EXPECT_NEAR(numbers[0], 1, 1e-12);
  EXPECT_EQ(numbers[1], 0);
  // Arrows: per direction, micro-batch (8 per replica) and class of ranks, p*v - 1 messages cross between stages.
  EXPECT_EQ(numbers[2], 2 * 8 * (4 * 2 - 1));
}

TEST(Engine, ADeadlockedScheduleIsAnError) {
  workloads::StepGraphBuilder builder({{0, 0, 1}, {1, 0, 1}});
  const std::uint32_t work = builder.add_work({});
  const auto add = [&](std::uint32_t rank) {
    return builder.add({workloads::OpKind::compute, workloads::Stream::compute, workloads::Phase::compute, rank, work}, "x");
  };
  const workloads::OpId a = add(0), b = add(1);
  builder.depend(a, b);
  builder.depend(b, a);
  EXPECT_THROW(
      {
        try {
          (void)std::move(builder).freeze();
        } catch (const std::logic_error& e) {
          EXPECT_STREQ(e.what(), "the step graph has a cycle: the schedule deadlocks");
          throw;
        }
      },
      std::logic_error);
}

TEST(Engine, ASecondSimulationInOneProcessGivesTheSame) {
  const sim::Job job = small_job(8, "{tp: 8, pp: 1, dp: 1}", "{global: 1, micro: 1, sequence: 1024}");
  const double first = sim::simulate(job).result.step_s;
  EXPECT_GT(first, 0);
  EXPECT_EQ(sim::simulate(job).result.step_s, first);
}

}  // namespace
}  // namespace rehearse::tests

// One representative per class of ranks gives the step that all ranks give, wherever the job is symmetric.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

class FoldedEqualsAll : public testing::TestWithParam<SmallJob> {};

TEST_P(FoldedEqualsAll, StepAndPhases) {
  sim::Job job = GetParam().job();
  const sim::StepResult folded = sim::simulate_in_child(job);
  job.system.simulation.all_ranks = true;
  const sim::StepResult all = sim::simulate_in_child(job);
  EXPECT_LT(folded.ranks.size(), all.ranks.size());
  EXPECT_NEAR(folded.step_s, all.step_s, 1e-9 * all.step_s);
  for (std::size_t i = 0; i < sim::phase_count; ++i) {
    EXPECT_NEAR(folded.mean.seconds[i], all.mean.seconds[i], 1e-9 * all.step_s) << sim::name_of(static_cast<sim::Phase>(i));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, FoldedEqualsAll,
    testing::Values(
        SmallJob{"data_parallel", 16, "{tp: 1, pp: 1, dp: 16}", "{global: 32, micro: 1, sequence: 1024}"},
        SmallJob{"tensor_parallel", 16, "{tp: 8, pp: 1, dp: 2, sp: true}", "{global: 8, micro: 1, sequence: 1024}"},
        SmallJob{"pipeline", 32, "{tp: 8, pp: 4, dp: 1}", "{global: 8, micro: 1, sequence: 1024}"},
        SmallJob{"pipeline_in_node", 8, "{tp: 2, pp: 4, dp: 1}", "{global: 8, micro: 1, sequence: 1024}"},
        SmallJob{"all_three", 32, "{tp: 4, pp: 2, dp: 4, sp: true}", "{global: 32, micro: 1, sequence: 1024}",
                 "optimizer: {sharding: zero1}"},
        SmallJob{"interleaved", 32, "{tp: 4, pp: 4, dp: 2, vpp: 2}", "{global: 16, micro: 1, sequence: 1024}",
                 "optimizer: {sharding: zero1}\noverlap: {dp_gradients: true, dp_parameters: true}"},
        SmallJob{"blocking_messages", 32, "{tp: 4, pp: 4, dp: 2}", "{global: 16, micro: 1, sequence: 1024}", "overlap: {pp: false}"},
        SmallJob{"context_parallel", 32, "{tp: 2, cp: 4, pp: 2, dp: 2, sp: true}", "{global: 8, micro: 1, sequence: 4096}"},
        SmallJob{"fully_sharded", 16, "{tp: 1, pp: 1, dp: 16}", "{global: 32, micro: 1, sequence: 1024}",
                 "optimizer: {sharding: zero3}\noverlap: {dp_gradients: true, dp_parameters: true}"},
        SmallJob{"two_gpus_per_nic", 16, "{tp: 2, pp: 1, dp: 8}", "{global: 16, micro: 1, sequence: 1024}", "", 4},
        SmallJob{"hierarchical", 16, "{tp: 1, pp: 1, dp: 16}", "{global: 32, micro: 1, sequence: 1024}",
                 "simulation: {algorithm: hierarchical}"},
        SmallJob{"pipeline_first", 16, "{tp: 1, pp: 4, dp: 4, order: tp-cp-ep-pp-dp}", "{global: 16, micro: 1, sequence: 1024}"}),
    [](const auto& info) { return info.param.name; });

// Data-parallel groups of 3 nodes' worth of ranks at tp 2 sit differently on nodes of 8: their ranks fall into several classes, and the
// folded step still equals the whole one.
TEST(FoldedEqualsAllWhere, GroupsStraddleNodes) {
  sim::Job job = small_job(24, "{tp: 2, pp: 4, dp: 3, order: tp-cp-ep-dp-pp}", "{global: 12, micro: 1, sequence: 1024}");
  const sim::StepResult folded = sim::simulate_in_child(job);
  EXPECT_GT(folded.ranks.size(), 4U);  // more classes than stages
  job.system.simulation.all_ranks = true;
  const sim::StepResult all = sim::simulate_in_child(job);
  // Not symmetric: members of one group have ports of different kinds, and the fold charges each the busiest. It must not be optimistic,
  // nor far.
  EXPECT_GE(folded.step_s, all.step_s * (1 - 1e-9));
  EXPECT_LT(folded.step_s, all.step_s * 1.05);
}

}  // namespace
}  // namespace rehearse::tests

// A GPU or a port fails inside a step: what depends on it never ends, everything else does as if nothing had happened.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/engine/aftermath.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/engine/jobs.hpp"
#include "tests/engine/pipelines.hpp"

namespace rehearse::sim {
namespace {

using workloads::OpId;
using workloads::OpKind;

// 1F1B with two stages and two micro-batches, forward 1 s, backward 2 s, free messages:
//   stage 0: F0 0-1, F1 1-2,          B0 4-6,          B1 7-9
//   stage 1:         F0 1-2, B0 2-4, F1 4-5, B1 5-7
FailedStep two_stages(std::uint32_t dead, double at_s) {
  const tests::PricedPipeline pipeline = tests::priced(
      tests::pipeline("1f1b", 2, 1, 2), [](int, bool forward) { return forward ? 1.0 : 2.0; }, 0);
  const std::vector<RankFailure> failures{{false, {dead}, at_s}};
  Job job;
  job.system.simulation.timeout_s = 100;
  job.system.simulation.faults.failures = {{"gpu", false, {static_cast<int>(dead)}, at_s}};
  return after_failure(job.system, pipeline.graph, failures, tests::on_simgrid(pipeline, failures));
}

TEST(WhatDoesAFailureStop, the_second_stage_in_its_second_forward) {
  const Aftermath after = two_stages(1, 4.5).aftermath;
  // Stage 0 has the gradient of micro-batch 0 since 4, works on it until 6 and then waits for that of micro-batch 1.
  EXPECT_EQ(after.ranks[0].end, RankAftermath::End::waiting);
  EXPECT_DOUBLE_EQ(after.ranks[0].last_s, 6);
  EXPECT_EQ(after.ranks[1].end, RankAftermath::End::dead);
  EXPECT_DOUBLE_EQ(after.ranks[1].last_s, 4);
  ASSERT_EQ(after.hung.size(), 1U);
  EXPECT_EQ(after.hung[0].rank, 0);
  EXPECT_DOUBLE_EQ(after.hung[0].since_s, 6);
  EXPECT_TRUE(after.hung[0].operation.starts_with("recv ")) << after.hung[0].operation;
  EXPECT_DOUBLE_EQ(after.detected_s, 106);
  EXPECT_DOUBLE_EQ(after.lost_s, 106);
}

TEST(WhatDoesAFailureStop, the_first_stage_before_anything) {
  const Aftermath after = two_stages(0, 0.5).aftermath;
  EXPECT_DOUBLE_EQ(after.ranks[1].last_s, 0);
  ASSERT_EQ(after.hung.size(), 1U);
  EXPECT_DOUBLE_EQ(after.hung[0].since_s, 0);  // stage 1 has waited for its first message from the start
  EXPECT_DOUBLE_EQ(after.detected_s, 100);
}

// Drawn: what ran at 4.5 s is cut there, nothing of the dead rank lies behind it, nothing lies behind the detection.
TEST(WhatDoesAFailureStop, the_bars_of_the_timeline) {
  const FailedStep failed = two_stages(1, 4.5);
  int cut = 0;
  for (OpId id = 0; id < failed.cut.size(); ++id) {
    cut += static_cast<int>(failed.cut[id]);
    if (failed.cut[id]) {
      EXPECT_DOUBLE_EQ(failed.drawn.arrive_s[id], 4);
      EXPECT_DOUBLE_EQ(failed.drawn.end_s[id], 4.5);
    }
    EXPECT_LE(failed.drawn.end_s[id], 106);
  }
  EXPECT_EQ(cut, 1);
}

TEST(WhatDoesAFailureStop, nothing_after_the_last_need_for_it) {
  const Aftermath after = two_stages(1, 8).aftermath;  // stage 1 has done its part at 7
  EXPECT_FALSE(after.detected);
  EXPECT_TRUE(after.hung.empty());
  EXPECT_EQ(after.ranks[0].end, RankAftermath::End::done);
  EXPECT_DOUBLE_EQ(after.lost_s, 9);
}

TEST(WhatDoesAFailureStop, not_a_step_that_is_over) { EXPECT_THROW(static_cast<void>(two_stages(1, 9.5)), config::InputError); }

// A job taken apart, without contention, every communication with a link of its own: nothing shares anything.
struct Parts {
  Job job;
  workloads::Compiled compiled;
  CommunicationModel model;
  workloads::Folding folding;
  workloads::StepGraph graph;
  Prices prices;
  explicit Parts(Job from)
      : job(std::move(from)),
        compiled(compiled_for_simulation(job)),
        model(job.system.cluster, job.workload, "auto"),
        folding(job.system.simulation.all_ranks ? workloads::unfolded(job.workload)
                                                : fold(job.system, job.workload, compiled, model).ranks),
        graph(workloads::build_step(job.workload, compiled, folding)),
        prices(price_graph(job.system, job.workload, model, graph)) {}

  // When each operation ends.
  [[nodiscard]] std::vector<double> ends(const std::vector<RankFailure>& failures) const {
    return run_in_child([&] {
      Machine machine;
      std::vector<HostIndex> hosts;
      for (std::size_t i = 0; i < graph.ranks.size(); ++i) hosts.push_back(machine.add_host(contention_speeds(job.system.gpu)));
      CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, graph, folding, prices, machine, hosts);
      const CommPlans plans = planner.plans();
      machine.seal();
      return execute({job.system, graph, prices, plans, planner.port_links(), hosts, failures}, machine, {}).front().end_s;
    });
  }
};

// What must not end: all of the dead rank, or over the dead port, that has not ended by then, and what needs that.
std::vector<bool> dependents(const Parts& parts, const RankFailure& failure, const std::vector<double>& healthy_s) {
  const workloads::StepGraph& graph = parts.graph;
  const auto hit_rank = [&](std::uint32_t rank) { return std::ranges::find(failure.ranks, rank) != failure.ranks.end(); };
  std::vector<bool> hit(graph.size());
  std::vector<OpId> open;
  const auto add = [&](OpId id) {
    if (hit[id]) return;
    hit[id] = true;
    open.push_back(id);
  };
  for (OpId id = 0; id < graph.size(); ++id) {
    const workloads::Op op = graph.op(id);
    const bool here = hit_rank(op.rank) || (op.kind == OpKind::p2p && hit_rank(graph.receiver(id)));
    const bool by_port = op.kind != OpKind::compute && parts.prices.calls[op.item].inter_bytes > 0;
    if (here && (!failure.ports || by_port) && healthy_s[id] > failure.at_s) add(id);
  }
  while (!open.empty()) {
    const OpId id = open.back();
    open.pop_back();
    for (const OpId next : graph.successors_of(id)) add(next);
    if (graph.op(id).kind != OpKind::collective) continue;
    for (const OpId member : graph.members(graph.op(id).joint)) add(member);
  }
  return hit;
}

class DoesItStopJustWhatDependsOnIt : public testing::TestWithParam<int> {};

TEST_P(DoesItStopJustWhatDependsOnIt, on_random_pipelines) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::array schedules{"1f1b", "gpipe", "interleaved-1f1b", "zb-h1"};
  const std::string schedule = schedules[static_cast<std::size_t>(below(4))];
  const std::string vpp = schedule == "interleaved-1f1b" ? ", vpp: 2" : "";
  const std::array granularities{"stage", "layer"};
  const int rank = below(16);
  const bool port = below(2) == 0;
  const auto job = [&](double at_s) {
    return tests::small_job(16, "{tp: 2, pp: 4, dp: 2, order: dp-tp-cp-ep-pp" + vpp + "}", "{global: 16, micro: 1, sequence: 128}",
                            fmt::format("schedule: {}\noverlap: {{dp_gradients: {}, dp_parameters: {}}}\noptimizer: {{sharding: zero1}}\n"
                                        "simulation: {{collectives: closed, granularity: {}, ranks: {}, faults: ['{} {} at {} ms']}}\n",
                                        schedule, below(2) == 0, below(2) == 0, granularities[static_cast<std::size_t>(below(2))],
                                        below(2) == 0 ? "all" : "folded", port ? "nic" : "gpu", rank, 1000 * at_s),
                            8, 8);
  };
  const std::mt19937 same = random;
  const Parts timing(job(0));
  const std::vector<double> whole = timing.ends({});
  const double at_s = *std::ranges::max_element(whole) * below(1000) / 1000;
  random = same;
  const Parts parts(job(at_s));
  const RankFailure failure{port, {parts.folding.class_of[static_cast<std::size_t>(rank)]}, at_s};
  ASSERT_EQ(parts.graph.ranks[failure.ranks[0]].multiplicity, 1);  // the failure has a class of its own
  const std::vector<double> healthy_s = parts.ends({});
  const std::vector<double> failed_s = parts.ends({failure});
  const std::vector<bool> hit = dependents(parts, failure, healthy_s);
  for (OpId id = 0; id < hit.size(); ++id) {
    if (hit[id]) {
      EXPECT_EQ(failed_s[id], never_s) << id;
    } else {
      EXPECT_DOUBLE_EQ(failed_s[id], healthy_s[id]) << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DoesItStopJustWhatDependsOnIt, testing::Range(0, 40));

// Folded or not, the same ranks wait from the same time on.
TEST(WhatDoesAFailureStop, folded_as_with_all_ranks) {
  const auto ends = [](const char* ranks) {
    return run_in_child([&] {
      const Job job = tests::small_job(32, "{tp: 4, pp: 2, dp: 4}", "{global: 16, micro: 1, sequence: 512}",
                                       fmt::format("simulation: {{ranks: {}, faults: [gpu 5 at 2 ms], timeout: 1 s}}\n", ranks));
      const Aftermath after = simulate(job).aftermath.value();
      std::vector<double> all(32);
      all.push_back(after.detected_s);
      if (after.ranks.size() == 32) {
        for (int i = 0; i < 32; ++i) all[static_cast<std::size_t>(i)] = after.ranks[static_cast<std::size_t>(i)].last_s;
        return all;
      }
      const CommunicationModel model(job.system.cluster, job.workload, "auto");
      const workloads::Folding folding = fold(job.system, job.workload, compiled_for_simulation(job), model).ranks;
      for (std::size_t i = 0; i < 32; ++i) all[i] = after.ranks[folding.class_of[i]].last_s;
      return all;
    });
  };
  const std::vector<double> folded = ends("folded"), all = ends("all");
  ASSERT_GT(folded.back(), 1);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(folded[i], all[i], 1e-9) << i;
}

}  // namespace
}  // namespace rehearse::sim

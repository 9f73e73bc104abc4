// Computation and communication slow each other down exactly while they overlap.
#include <gtest/gtest.h>

#include <random>

#include "jobs.hpp"
#include "sim/analytic/overlap.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

// One rank that computes `compute_s` while a ring shift of `transfer_s` runs with its neighbour, which does the same.
double overlapped_on_simgrid_s(double compute_s, double transfer_s, const sim::ContentionPair& pair) {
  sim::Job job = small_job(8, "{tp: 1, pp: 1, dp: 8}", "{global: 8, micro: 1, sequence: 1024}");
  job.system.gpu.contention[workloads::Phase::dp] = pair;
  job.system.cluster.intra.latency_s = 0;
  workloads::Folding folding{{{0, 0, 1}, {1, 0, 1}}, {0, 1}};
  workloads::StepGraphBuilder builder(folding.ranks);
  const std::uint32_t group = builder.add_group(workloads::GroupKind::dp_cp, {0, 1}, {0, 1});
  const double bytes = transfer_s * job.system.cluster.intra.effective_bytes_per_s();
  const auto call =
      builder.add_call({"x", workloads::CollectiveKind::send_recv, workloads::GroupKind::dp_cp, bytes, workloads::Pass::forward}, 1, group);
  const std::uint32_t work = builder.add_work({});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    workloads::Op op{workloads::OpKind::compute, workloads::Stream::compute, workloads::Phase::compute, rank, work};
    builder.add(op, "compute");
    workloads::Op send{workloads::OpKind::collective, workloads::Stream::dp, workloads::Phase::dp, rank, call};
    builder.add(send, "send");
  }
  const workloads::StepGraph graph = std::move(builder).freeze();
  return sim::run_in_child([&] {
           const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
           sim::Prices prices = sim::price_graph(job.system, job.workload, model, graph);
           prices.work_s[work] = compute_s;
           sim::Machine machine;
           const std::vector<double> speeds = sim::contention_speeds(job.system.gpu);
           const std::vector<sim::HostIndex> hosts{machine.add_host(speeds), machine.add_host(speeds)};
           sim::CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, graph, folding, prices, machine, hosts);
           const sim::CommPlans plans = planner.plans();
           machine.seal();
           return std::vector<double>{
               sim::execute({job.system, graph, prices, plans, planner.port_links(), hosts}, machine, {}).front().step_s};
         })
      .front();
}

TEST(Contention, TimelineEqualsTheFormulaOfTwoOverlappedActivities) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> seconds(0.01, 0.1), coefficient(1, 1.6);
  for (int i = 0; i < 20; ++i) {
    const double compute = seconds(random), transfer = seconds(random);
    const sim::ContentionPair pair{coefficient(random), coefficient(random)};
    const double expected = sim::overlapped_s(compute, transfer, pair);
    EXPECT_NEAR(overlapped_on_simgrid_s(compute, transfer, pair), expected, 1e-8 * expected) << compute << " " << transfer;
  }
}

TEST(Contention, FormulaWithoutCoefficientsIsTheLongerOne) {
  EXPECT_EQ(sim::overlapped_s(2.0, 3.0, {}), 3.0);
  EXPECT_EQ(sim::overlapped_s(3.0, 2.0, {}), 3.0);
}

// Raising alpha or beta never shortens a step.
TEST(Contention, MoreOfItNeverShortensAStep) {
  double previous = 0;
  for (const double coefficient : {1.0, 1.1, 1.3, 1.8}) {
    sim::Job job = small_job(16, "{tp: 4, pp: 2, dp: 2, sp: true}", "{global: 16, micro: 1, sequence: 1024}",
                             "optimizer: {sharding: zero1}\noverlap: {dp_gradients: true, dp_parameters: true}");
    for (const auto phase : {workloads::Phase::tp, workloads::Phase::pp, workloads::Phase::dp})
      job.system.gpu.contention[phase] = {coefficient, coefficient};
    const double step = sim::simulate_in_child(job).step_s;
    EXPECT_GE(step, previous * (1 - 1e-12)) << coefficient;
    previous = step;
  }
}

}  // namespace
}  // namespace rehearse::tests

#include "tests/engine/collective_alone.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "jobs.hpp"
#include "sim/communication_of.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/executor.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;

std::vector<int> first_ranks(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

sim::CommunicationModel model_of(const sim::Job& job) { return sim::communication_of(job.system, job.workload); }

}  // namespace

sim::Job job_of_one_group(int gpus) {
  sim::Job job =
      small_job(gpus, fmt::format("{{tp: 1, pp: 1, dp: {}}}", gpus), fmt::format("{{global: {}, micro: 1, sequence: 1024}}", gpus));
  job.system.simulation.all_ranks = true;
  return job;
}

double alone_s(const sim::Job& job, CollectiveKind kind, int n, double bytes) {
  std::vector<workloads::SimulatedRank> ranks;
  const std::vector<int> members = first_ranks(n);
  workloads::Folding folding;
  std::vector<std::uint32_t> folded;
  for (int i = 0; i < n; ++i) {
    ranks.push_back({i, 0, 1});
    folding.class_of.push_back(i);
    folded.push_back(i);
  }
  folding.ranks = ranks;
  workloads::StepGraphBuilder builder(ranks);
  const std::uint32_t group = builder.add_group(workloads::GroupKind::dp_cp, members, folded);
  const std::uint32_t call = builder.add_call({"x", kind, workloads::GroupKind::dp_cp, bytes, workloads::Pass::update}, 1, group);
  for (int i = 0; i < n; ++i) {
    workloads::Op op{workloads::OpKind::collective, workloads::Stream::dp, workloads::Phase::dp};
    op.rank = static_cast<std::uint32_t>(i);
    op.item = call;
    builder.add(op, "x");
  }
  const workloads::StepGraph graph = std::move(builder).freeze();
  return sim::run_in_child([&] {
           const sim::CommunicationModel model = model_of(job);
           const sim::Prices prices = sim::price_graph(job.system, job.workload, model, graph);
           sim::Machine machine;
           std::vector<sim::HostIndex> hosts;
           hosts.reserve(static_cast<std::size_t>(n));
           for (int i = 0; i < n; ++i) hosts.push_back(machine.add_host(sim::contention_speeds(job.system.gpu)));
           sim::CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, graph, folding, prices, machine, hosts);
           const sim::CommPlans plans = planner.plans();
           machine.seal();
           return std::vector<double>{
               sim::execute({job.system, graph, prices, plans, planner.port_links(), hosts}, machine, {}).front().step_s};
         })
      .front();
}

double closed_form_s(const sim::Job& job, CollectiveKind kind, int n, double bytes) {
  return model_of(job).price({"x", kind, workloads::GroupKind::dp_cp, bytes, workloads::Pass::update}, first_ranks(n)).seconds();
}

}  // namespace rehearse::tests

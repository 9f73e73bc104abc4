// An exchange executed alone, and what it must take.
#pragma once

#include <algorithm>

#include "sim/cost/communication.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/comm_plan.hpp"
#include "sim/engine/executor.hpp"
#include "workloads/exchange.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::tests {

// One exchange over the first ep group, all members simulated, executed alone.
inline double executed_s(const sim::Job& job, const workloads::Communication& what) {
  const workloads::RankGrid grid(job.workload.parallel);
  const std::vector<int> members = grid.group(workloads::GroupKind::ep, 0);
  const workloads::Folding folding = workloads::unfolded(job.workload);
  workloads::StepGraphBuilder builder(folding.ranks);
  std::vector<std::uint32_t> simulated(members.begin(), members.end());
  std::ranges::sort(simulated);
  const std::uint32_t group = builder.add_group(workloads::GroupKind::ep, members, simulated);
  const std::uint32_t call = builder.add_call(what, 1, group);
  for (const int member : members) {
    workloads::Op op{workloads::OpKind::collective, workloads::Stream::ep_dispatch, workloads::Phase::ep};
    op.rank = static_cast<std::uint32_t>(member);
    op.item = call;
    builder.add(op, "exchange");
  }
  const workloads::StepGraph graph = std::move(builder).freeze();
  const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
  const sim::Prices prices = sim::price_graph(job.system, job.workload, model, graph);
  return sim::run_in_child([&] {
           sim::Machine machine;
           std::vector<sim::HostIndex> hosts;
           for (std::size_t i = 0; i < graph.ranks.size(); ++i) hosts.push_back(machine.add_host(std::vector<double>{1.0}));
           sim::CommPlanner planner(job.system, workloads::rank_grid(job.workload), model, graph, folding, prices, machine, hosts);
           const auto plans = planner.plans();
           machine.seal();
           return std::vector{sim::execute({job.system, graph, prices, plans, planner.port_links(), hosts}, machine, {}).front().step_s};
         })
      .front();
}

// Straight from the definition: every port adds up what passes through it.
inline double busiest_port_s(const sim::Job& job, const workloads::Exchange& exchange, const std::vector<int>& members) {
  const double scale_up = job.system.cluster.intra.effective_bytes_per_s(), nic = job.system.cluster.rail_bytes_per_s();
  double longest = 0;
  bool crosses = false;
  for (std::size_t port = 0; port < members.size(); ++port) {
    double in[2] = {0, 0}, out[2] = {0, 0};
    for (std::size_t other = 0; other < members.size(); ++other) {
      if (other == port) continue;
      const std::size_t far = members[port] / 8 == members[other] / 8 ? 0 : 1;
      crosses = crosses || far == 1;
      out[far] += exchange.bytes(static_cast<int>(port), static_cast<int>(other));
      in[far] += exchange.bytes(static_cast<int>(other), static_cast<int>(port));
    }
    longest = std::max({longest, out[0] / scale_up, in[0] / scale_up, out[1] / nic, in[1] / nic});
  }
  return longest + (crosses ? job.system.cluster.nic.latency_s : job.system.cluster.intra.latency_s);
}

}  // namespace rehearse::tests

// The all-to-all of a byte matrix alone on a non-blocking fabric lasts alpha plus the largest of bytes / bandwidth over all ports.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "jobs.hpp"
#include "sim/cost/communication.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/comm_plan.hpp"
#include "sim/engine/executor.hpp"
#include "workloads/exchange.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::tests {
namespace {

using workloads::Communication;
using workloads::Exchange;
using workloads::GroupKind;

// One exchange over the first ep group, all members simulated, executed alone.
double executed_s(const sim::Job& job, const Communication& what) {
  const workloads::RankGrid grid(job.workload.parallel);
  const std::vector<int> members = grid.group(GroupKind::ep, 0);
  const workloads::Folding folding = workloads::unfolded(job.workload);
  workloads::StepGraphBuilder builder(folding.ranks);
  std::vector<std::uint32_t> simulated(members.begin(), members.end());
  std::ranges::sort(simulated);
  const std::uint32_t group = builder.add_group(GroupKind::ep, members, simulated);
  const std::uint32_t call = builder.add_call(what, 1, group);
  for (const int member : members) {
    workloads::Op op{workloads::OpKind::collective, workloads::Stream::ep_dispatch, workloads::Purpose::ep};
    op.rank = static_cast<std::uint32_t>(member);
    op.item = call;
    builder.add(op, "exchange");
  }
  const workloads::StepGraph graph = std::move(builder).freeze();
  const sim::CommunicationModel model(job.cluster, job.workload, "auto");
  const sim::Prices prices = sim::price_graph(job, model, graph);
  return sim::run_in_child([&] {
           sim::Machine machine;
           std::vector<sim::HostIndex> hosts;
           for (std::size_t i = 0; i < graph.ranks.size(); ++i) hosts.push_back(machine.add_host(std::vector<double>{1.0}));
           sim::CommPlanner planner(job, model, graph, folding, prices, machine, hosts);
           const auto plans = planner.plans();
           machine.seal();
           return std::vector{sim::execute({job, graph, prices, plans, planner.port_links(), hosts}, machine, {}).front().step_s};
         })
      .front();
}

Communication exchange_of(Exchange exchange) {
  return {"exchange",
          workloads::CollectiveKind::all_to_all,
          GroupKind::ep,
          0,
          workloads::Pass::forward,
          std::make_shared<const Exchange>(std::move(exchange))};
}

// Straight from the definition: every port adds up what passes through it.
double busiest_port_s(const sim::Job& job, const Exchange& exchange, const std::vector<int>& members) {
  const double scale_up = job.cluster.intra.effective_bytes_per_s(), nic = job.cluster.rail_bytes_per_s();
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
  return longest + (crosses ? job.cluster.nic.latency_s : job.cluster.intra.latency_s);
}

sim::Job job_with(int gpus, int ep, const char* collectives) {
  return expert_job(gpus, fmt::format("{{dp: {}, ep: {}}}", gpus, ep), fmt::format("{{global: {}, micro: 1, sequence: 512}}", gpus),
                    fmt::format("simulation: {{collectives: {}, ranks: all}}\n", collectives));
}

constexpr double rounding = 1e-6;  // SimGrid counts whole payload units

TEST(ExchangeAlone, TakesAlphaAndItsBusiestPortForAnyMatrix) {
  std::mt19937 random(3);
  for (const auto& [gpus, ep] : {std::pair{8, 4}, {8, 8}, {16, 16}}) {
    const sim::Job job = job_with(gpus, ep, "ring");
    const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(GroupKind::ep, 0);
    for (int i = 0; i < 5; ++i) {
      Exchange exchange;
      exchange.full = true;
      exchange.bytes_per_pair = 4096;
      exchange.reversed = i % 2 == 1;
      for (int k = 0; k < ep * ep; ++k) exchange.pairs.push_back(static_cast<double>(random() % 5000));
      const double expected = busiest_port_s(job, exchange, members);
      const Communication what = exchange_of(exchange);
      const sim::CommunicationModel model(job.cluster, job.workload, "auto");
      EXPECT_NEAR(model.price(what, members).seconds(), expected, 1e-12 * expected);
      EXPECT_NEAR(executed_s(job, what), expected, rounding * expected) << ep;
    }
  }
}

// Messages between all pairs, over the fabric's routes, share the same ports: no slower than the busiest port, and on one switch no faster.
TEST(ExchangeAlone, PairByPairIsBoundByTheSamePorts) {
  std::mt19937 random(5);
  const sim::Job job = job_with(8, 8, "step");
  const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(GroupKind::ep, 0);
  for (int i = 0; i < 5; ++i) {
    Exchange exchange;
    exchange.bytes_per_pair = 4096;
    for (int k = 0; k < 8; ++k) exchange.pairs.push_back(1000 + static_cast<double>(random() % 5000));
    const double expected = busiest_port_s(job, exchange, members);
    // One rank gets more than any sends: its ingress is busy from first to last, since its flows share it evenly.
    EXPECT_NEAR(executed_s(job, exchange_of(exchange)), expected, rounding * expected);
  }
}

TEST(ExchangeAlone, AlikeSendersAreTheFullMatrixOfTheirRows) {
  std::mt19937 random(7);
  for (const int n : {2, 4, 8, 16}) {
    Exchange alike;
    alike.bytes_per_pair = 3;
    for (int i = 0; i < n; ++i) alike.pairs.push_back(static_cast<double>(random() % 1000));
    Exchange full = alike;
    full.full = true;
    full.pairs.clear();
    for (int i = 0; i < n; ++i) full.pairs.insert(full.pairs.end(), alike.pairs.begin(), alike.pairs.end());
    workloads::GroupShape group{.size = n, .domain = {}};
    for (int i = 0; i < n; ++i) group.domain.push_back(i * 3 / n);  // uneven domains too
    const workloads::PortLoads a = port_loads(alike, group), b = port_loads(full, group);
    for (int i = 0; i < n; ++i) {
      EXPECT_NEAR(a.intra_out[i], b.intra_out[i], 1e-9);
      EXPECT_NEAR(a.intra_in[i], b.intra_in[i], 1e-9);
      EXPECT_NEAR(a.inter_out[i], b.inter_out[i], 1e-9);
      EXPECT_NEAR(a.inter_in[i], b.inter_in[i], 1e-9);
    }
  }
}

// Tokens that choose k of E experts at random, one by one: how often do they enter a domain and a rank?
TEST(ExchangeHierarchical, CountsTokensOncePerDomainAndRankAsDrawn) {
  constexpr int ranks = 16, per_domain = 4, experts = 64, top_k = 8, tokens = 20000;
  Exchange exchange;
  exchange.pairs.assign(ranks, static_cast<double>(tokens) * top_k / ranks);
  exchange.bytes_per_pair = 1;
  exchange.hierarchical = true;
  exchange.top_k = top_k;
  exchange.experts = experts;
  workloads::GroupShape group{.size = ranks, .domain = {}};
  for (int i = 0; i < ranks; ++i) group.domain.push_back(i / per_domain);
  std::mt19937 random(1);
  std::vector<int> all(experts);
  for (int e = 0; e < experts; ++e) all[e] = e;
  double entered = 0, copies = 0;  // other domains than the first, and ranks of one domain
  for (int t = 0; t < tokens; ++t) {
    for (int i = 0; i < top_k; ++i) std::swap(all[i], all[i + random() % (experts - i)]);
    bool domain[ranks / per_domain] = {}, rank[ranks] = {};
    for (int i = 0; i < top_k; ++i) {
      rank[all[i] * ranks / experts] = true;
      domain[all[i] * ranks / experts / per_domain] = true;
    }
    for (int d = 1; d < ranks / per_domain; ++d) entered += domain[d];
    copies += rank[5];
  }
  const workloads::PortLoads loads = port_loads(exchange, group);
  // 4 standard deviations of a binomial count.
  const double deviation = 4 * std::sqrt(3.0 * tokens);
  EXPECT_NEAR(loads.inter_out[0], entered, deviation);
  EXPECT_NEAR(loads.inter_in[0], loads.inter_out[0], 1e-6);
  EXPECT_NEAR(loads.intra_in[5] / (ranks - ranks / per_domain), copies, 4 * std::sqrt(static_cast<double>(tokens)));
  exchange.domains_per_token = 2;
  const workloads::PortLoads limited = port_loads(exchange, group);
  EXPECT_LT(limited.inter_out[0], loads.inter_out[0]);
  EXPECT_LE(limited.inter_out[0], tokens * 2.0 * 3 / 4);  // two of four domains, of which one in four is its own
}

}  // namespace
}  // namespace rehearse::tests

// The all-to-all of a byte matrix alone on a non-blocking fabric lasts alpha plus the largest of bytes / bandwidth over all ports.
#include <gtest/gtest.h>

#include <random>

#include "alone.hpp"
#include "jobs.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::tests {
namespace {

using workloads::Communication;
using workloads::Exchange;
using workloads::GroupKind;

Communication exchange_of(Exchange exchange) {
  return {"exchange",
          workloads::CollectiveKind::all_to_all,
          GroupKind::ep,
          0,
          workloads::Pass::forward,
          std::make_shared<const Exchange>(std::move(exchange))};
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
      exchange.bytes_per_pair = 4096;
      exchange.reversed = i % 2 == 1;
      std::vector<double> pairs;
      for (int k = 0; k < ep * ep; ++k) pairs.push_back(static_cast<double>(random() % 5000));
      exchange.by_sender = std::make_shared<const std::vector<double>>(pairs);
      const double expected = busiest_port_s(job, exchange, members);
      const Communication what = exchange_of(exchange);
      const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
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

// A network that gives exchanges 0.6 of its rate, by flows and message by message: what the NICs carry takes 1/0.6 times as long.
TEST(ExchangeAlone, TakesLongerWhereTheNetworkGivesItLess) {
  for (const char* collectives : {"ring", "step"}) {
    sim::Job job = job_with(16, 16, collectives);
    const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(GroupKind::ep, 0);
    Exchange exchange;
    exchange.bytes_per_pair = 4096;
    exchange.pairs.assign(16, 4000);
    const double alpha_s = job.system.cluster.nic.latency_s, full_s = executed_s(job, exchange_of(exchange)) - alpha_s;
    job.system.cluster.nic.exchange_share = 0.6;
    const Communication what = exchange_of(exchange);
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    EXPECT_NEAR(model.price(what, members).seconds(), alpha_s + full_s / 0.6, 1e-6 * full_s);
    EXPECT_NEAR(executed_s(job, what), alpha_s + full_s / 0.6, rounding * full_s / 0.6) << collectives;
  }
}

// A switch that gives a library's all-to-all 0.8 of its rate; kernels that send by themselves do not mind.
TEST(ExchangeAlone, TakesLongerWhereTheSwitchGivesItLess) {
  for (const char* collectives : {"ring", "step"}) {
    sim::Job job = job_with(8, 8, collectives);
    const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(GroupKind::ep, 0);
    Exchange exchange;
    exchange.bytes_per_pair = 4096;
    exchange.top_k = exchange.experts = 8;
    exchange.pairs.assign(8, 4000);
    Exchange by_kernels = exchange;
    by_kernels.hierarchical = true;
    const double alpha_s = job.system.cluster.intra.latency_s, full_s = executed_s(job, exchange_of(exchange)) - alpha_s;
    const double kernels_s = executed_s(job, exchange_of(by_kernels));
    job.system.cluster.intra.exchange_share = 0.8;
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    EXPECT_NEAR(model.price(exchange_of(exchange), members).seconds(), alpha_s + full_s / 0.8, 1e-6 * full_s);
    EXPECT_NEAR(executed_s(job, exchange_of(exchange)), alpha_s + full_s / 0.8, rounding * full_s / 0.8) << collectives;
    EXPECT_DOUBLE_EQ(executed_s(job, exchange_of(by_kernels)), kernels_s);
    job.system.cluster.intra.exchange_latency_s = 5 * alpha_s;
    const double later_s = 5 * alpha_s + full_s / 0.8;
    EXPECT_NEAR(sim::CommunicationModel(job.system.cluster, job.workload, "auto").price(exchange_of(exchange), members).seconds(), later_s,
                1e-6 * later_s);
    EXPECT_NEAR(executed_s(job, exchange_of(exchange)), later_s, rounding * later_s) << collectives;
    EXPECT_DOUBLE_EQ(executed_s(job, exchange_of(by_kernels)), kernels_s);
  }
}

TEST(ExchangeAlone, AlikeSendersAreTheFullMatrixOfTheirRows) {
  std::mt19937 random(7);
  for (const int n : {2, 4, 8, 16}) {
    Exchange alike;
    alike.bytes_per_pair = 3;
    for (int i = 0; i < n; ++i) alike.pairs.push_back(static_cast<double>(random() % 1000));
    Exchange full = alike;
    std::vector<double> rows;
    for (int i = 0; i < n; ++i) rows.insert(rows.end(), alike.pairs.begin(), alike.pairs.end());
    full.by_sender = std::make_shared<const std::vector<double>>(rows);
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

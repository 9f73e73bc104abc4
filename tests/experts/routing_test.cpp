// Where tokens go: every way of routing gives shares that add up, repeat, and are as uneven as asked for; capacity drops what is beyond.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>

#include "jobs.hpp"
#include "sim/analytic/expert_prices.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/cost/queue.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/routing.hpp"

namespace rehearse::tests {
namespace {

using workloads::ExpertLoads;
using workloads::ExpertPlan;
using workloads::RoutingRegistry;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Routing, SharesAddUpAndRepeat) {
  for (const char* name : {"balanced", "zipf", "dirichlet"}) {
    for (const double skew : {0.05, 0.6, 3.0}) {
      ExpertPlan plan;
      plan.skew = skew;
      const workloads::Routing& routing = RoutingRegistry::get(name);
      const std::vector<double> shares = routing.shares(plan, 256, {0, 7, 3});
      EXPECT_NEAR(sum(shares), 1, 1e-12) << name;
      EXPECT_EQ(shares, routing.shares(plan, 256, {0, 7, 3})) << name;
      if (routing.even()) continue;
      EXPECT_NE(shares, routing.shares(plan, 256, {0, 7, 4})) << name;
      EXPECT_NE(shares, routing.shares(plan, 256, {0, 8, 3})) << name;
      EXPECT_NE(shares, routing.shares(plan, 256, {1, 7, 3})) << name;
      plan.seed = 2;
      EXPECT_NE(shares, routing.shares(plan, 256, {0, 7, 3})) << name;
    }
  }
}

TEST(Routing, ZipfFallsWithRank) {
  ExpertPlan plan;
  plan.skew = 0.6;
  std::vector<double> shares = RoutingRegistry::get("zipf").shares(plan, 64, {});
  std::ranges::sort(shares, std::greater<>{});
  for (std::size_t r = 1; r < shares.size(); ++r) EXPECT_NEAR(shares[r] / shares[0], std::pow(static_cast<double>(r + 1), -0.6), 1e-12);
}

// E sum(f p) with p = f, in the mean, and the Gini coefficient by which the losses of `router` were found: of independent Gamma(c) variates
// Gamma(c + 1/2) / (sqrt(pi) Gamma(c + 1)), 0.105 and 0.150 of the two checkpoints.
TEST(Routing, LoadBalancingLossIsThatOfItsName) {
  constexpr int experts = 64, draws = 2000;
  for (const double loss : {1.034, 1.071, 1.43}) {
    ExpertPlan plan;
    plan.skew = loss;
    double losses = 0;
    for (int i = 0; i < draws; ++i) {
      for (const double share : RoutingRegistry::get("load_balancing_loss").shares(plan, experts, {0, 0, i}))
        losses += experts * share * share;
    }
    EXPECT_NEAR(losses / draws - 1, loss - 1, 0.03 * (loss - 1)) << loss;  // 128,000 shares: less than 1 % of noise
  }
  const auto gini = [](double loss) {
    const double c = 1 / (loss - 1);  // of many experts
    return std::exp(std::lgamma(c + 0.5) - std::lgamma(c + 1)) / std::sqrt(std::numbers::pi);
  };
  EXPECT_NEAR(gini(1.034), 0.105, 0.002);
  EXPECT_NEAR(gini(1.071), 0.150, 0.002);
}

// By the name of what balances a router, and by the loss that it has, a job routes alike; a loss that no two experts have is refused.
TEST(Routing, RoutersAreLosses) {
  const auto plan_of = [](const std::string& routing) {
    return expert_job(8, "{dp: 8, ep: 4}", "{global: 16, micro: 1, sequence: 1024}", fmt::format("moe: {{routing: {}}}\n", routing))
        .workload.experts;
  };
  const ExpertPlan named = plan_of("{router: bias}"), logged = plan_of("{load_balancing_loss: 1.071}");
  EXPECT_EQ(named.routing, logged.routing);
  EXPECT_EQ(named.skew, logged.skew);
  EXPECT_LT(plan_of("{router: aux-loss}").skew, named.skew);
  EXPECT_GT(plan_of("{router: unbalanced}").skew, named.skew);
  for (const char* wrong : {"{router: sinkhorn}", "{load_balancing_loss: 1}", "{load_balancing_loss: 2}", "{router: bias, zipf: 1}"})
    EXPECT_THROW(static_cast<void>(plan_of(wrong)), config::InputError) << wrong;
}

// Of a symmetric Dirichlet(c) over E: mean 1/E, variance (E - 1) / (E^2 (E c + 1)).
TEST(Routing, DirichletHasItsVariance) {
  constexpr int experts = 16, draws = 4000;
  for (const double c : {0.3, 1.0, 5.0}) {
    ExpertPlan plan;
    plan.skew = c;
    double squares = 0;
    for (int i = 0; i < draws; ++i) {
      for (const double share : RoutingRegistry::get("dirichlet").shares(plan, experts, {0, 0, i})) {
        squares += (share - 1.0 / experts) * (share - 1.0 / experts);
      }
    }
    const double expected = (experts - 1) / (static_cast<double>(experts) * experts * (experts * c + 1));
    EXPECT_NEAR(squares / (draws * experts), expected, 0.05 * expected) << c;  // 64,000 samples: about 1 % of noise
  }
}

TEST(ExpertLoad, KeepsEveryPairUnlessCapacityDropsIt) {
  for (const char* routing : {"balanced", "{zipf: 0.8}", "{dirichlet: 0.2, seed: 5}", "{load_balancing_loss: 1.3}"}) {
    for (const double capacity : {0.0, 1.0, 1.25, 2.0}) {
      const std::string limit = capacity > 0 ? fmt::format("{}", capacity) : "none";
      const sim::Job job = expert_job(8, "{dp: 8, ep: 4}", "{global: 16, micro: 1, sequence: 1024}",
                                      fmt::format("moe: {{routing: {}, capacity_factor: {}}}\n", routing, limit));
      const ExpertLoads loads(job.workload);
      const double pairs = 1024.0 * 2 * 4;
      for (int layer = 0; layer < 8; ++layer) {
        const workloads::LayerLoad& load = loads.at(layer, 1);
        EXPECT_NEAR(sum(load.tokens) + load.dropped, pairs, 1e-6) << routing;
        if (capacity > 0) {
          EXPECT_LE(*std::ranges::max_element(load.tokens), capacity * pairs / 16 * (1 + 1e-12));
        }
        EXPECT_LE(*std::ranges::max_element(load.tokens), pairs / 2 * (1 + 1e-12));  // a token chooses an expert once
      }
    }
  }
}

// The formula prices the rank that gets most alone: none of the others takes longer.
TEST(ExpertLoad, TheHottestRankTakesLongest) {
  for (const char* extra : {"moe: {routing: {zipf: 0.8}}\n", "moe: {routing: {dirichlet: 0.2}, chunks: 2}\n",
                            "moe: {routing: {zipf: 0.8}}\nrecompute: {modules: [moe_act]}\n"}) {
    const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 32, micro: 1, sequence: 1024}", extra);
    const workloads::Compiled compiled = workloads::compile(job.workload);
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    sim::PriceBook prices(model, compiled.grid, compiled.shape.stages);
    sim::ExpertPrices experts(job.system, job.workload, prices);
    const auto seconds_of = [&](const workloads::ExpertWork& work) {
      double seconds = 0;
      for (const workloads::Operator& op : workloads::operators_of(job.workload, work))
        seconds += sim::operator_seconds(job.system.gpu, job.system.software, op);
      return seconds;
    };
    for (const workloads::RoutedExperts& what :
         {workloads::RoutedExperts{}, workloads::RoutedExperts{workloads::Pass::backward_input, true}}) {
      const std::vector<sim::ChunkTimes>& chunks = experts.chunks(what, 2, 0);
      ASSERT_EQ(chunks.size(), 4U);
      for (int i = 0; i < 4; ++i) {
        double work_s = 0, again_s = 0;
        for (int rank = 0; rank < 8; ++rank) {
          workloads::ExpertWork work = experts.layer().work(what, rank, 2, i);
          work_s = std::max(work_s, seconds_of(work));
          work.again = experts.layer().again(what);
          if (work.again) again_s = std::max(again_s, seconds_of(work));
        }
        EXPECT_NEAR(chunks[static_cast<std::size_t>(i)].work_s, work_s, 1e-12 * work_s) << extra;
        EXPECT_NEAR(chunks[static_cast<std::size_t>(i)].recompute_s, again_s, 1e-12 * again_s) << extra;
      }
    }
  }
}

// Every sender fills up what it sends to an expert, to a multiple or to its capacity, and what travels is as much.
TEST(ExpertLoad, IsFilledUp) {
  const auto job = [](const std::string& routing, const std::string& pad) {
    return expert_job(8, "{dp: 8, ep: 4}", "{global: 16, micro: 1, sequence: 1000}",
                      fmt::format("moe: {{routing: {}, capacity_factor: 1.5, pad_to: {}}}\n", routing, pad));
  };
  const double own = 1000.0 * 2 / 16;  // pairs of a sender with an expert, in the mean
  for (const char* routing : {"balanced", "{zipf: 0.8}", "{zipf: 0.8, senders: sampled}"}) {
    const sim::Job to_capacity = job(routing, "capacity"), to_multiple = job(routing, "64"), none = job(routing, "none");
    const ExpertLoads full(to_capacity.workload), rounded(to_multiple.workload), as_they_come(none.workload);
    for (int e = 0; e < 16; ++e) {
      EXPECT_NEAR(full.at(3, 1).tokens[e], 4 * 1.5 * own, 1e-9) << routing;
      const double rows = rounded.at(3, 1).tokens[e], before = as_they_come.at(3, 1).tokens[e];
      EXPECT_NEAR(std::remainder(rows, 64), 0, 1e-9) << routing;
      EXPECT_GE(rows, before);
      EXPECT_LT(rows, before + 4 * 64);
    }
  }
  EXPECT_EQ(ExpertLoads(job("balanced", "64").workload).sent_by_each(), 16 * 128);
  EXPECT_EQ(ExpertLoads(job("balanced", "capacity").workload).sent_by_each(), 1.5 * 2000);
}

TEST(ExpertLoad, OfCountsIsWhatWasCounted) {
  std::string rows;
  for (int layer = 0; layer < 8; ++layer) {
    for (int i = 0; i < 2; ++i) {
      for (int e = 0; e < 16; ++e) rows += fmt::format("0,{},{},{},{}\n", layer, i, e, 10 + (e + layer + i) % 5);
    }
  }
  const std::string path = testing::TempDir() + "counts.csv";
  std::ofstream(path) << "step,layer,microbatch,expert,tokens\n" << rows;
  const sim::Job job =
      expert_job(8, "{dp: 8, ep: 8}", "{global: 16, micro: 1, sequence: 1024}", fmt::format("moe: {{routing: {{trace: {}}}}}\n", path));
  const ExpertLoads loads(job.workload);
  for (int layer = 0; layer < 8; ++layer) {
    double total = 0;
    for (int e = 0; e < 16; ++e) total += 10 + (e + layer + 1) % 5;
    for (int e = 0; e < 16; ++e) EXPECT_NEAR(loads.at(layer, 1).tokens[e], 1024.0 * 2 * 8 * (10 + (e + layer + 1) % 5) / total, 1e-6);
  }
  // The resolved job carries the counts themselves.
  const sim::Job again = sim::read_job(config::Node::load_text(job.resolved.to_yaml(), "again"), "again");
  EXPECT_EQ(again.resolved.to_yaml(), job.resolved.to_yaml());
}

// A job with one layer on one stage, all on one node: forward and backward of the hot rank and the exchanges' hot port are the step.
TEST(Imbalance, StepAndPeakGrowWithTheHottestRankAndItIsNamed) {
  std::string rows;
  const int hot = 5;
  double last_step = 0, last_peak = 0;
  for (const int factor : {1, 2, 4}) {
    rows.clear();
    for (int layer = 0; layer < 2; ++layer) {
      for (int e = 0; e < 16; ++e) rows += fmt::format("[0, {}, 0, {}, {}],", layer, e, e / 2 == hot ? factor : 1);
    }
    rows.pop_back();
    const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 4096}",
                                    fmt::format("moe: {{routing: {{counts: [{}]}}}}\n", rows), 2);
    const sim::StepResult simulated = sim::simulate_in_child(job), analytic = sim::predict(job);
    EXPECT_NEAR(simulated.step_s, analytic.step_s, 0.02 * analytic.step_s) << factor;
    const double hot_peak = simulated.memory.fullest()->peak_bytes();
    EXPECT_NEAR(hot_peak, analytic.memory.fullest()->peak_bytes(), 0.01 * hot_peak) << factor;
    ASSERT_TRUE(simulated.experts);
    if (factor > 1) {
      EXPECT_EQ(simulated.memory.fullest()->rank, hot);
      EXPECT_EQ(simulated.experts->rank, hot);
      EXPECT_NEAR(simulated.experts->tokens / simulated.experts->mean_tokens, factor * 8.0 / (7 + factor), 1e-9);
      EXPECT_GT(simulated.step_s, last_step);
      EXPECT_GT(hot_peak, last_peak);
    }
    last_step = simulated.step_s;
    last_peak = hot_peak;
  }
}

TEST(Imbalance, FoldedEqualsAllRanks) {
  for (const char* routing : {"balanced", "{zipf: 0.8}"}) {
    const auto step = [&](const char* ranks) {
      return sim::simulate_in_child(expert_job(16, "{pp: 2, dp: 8, ep: 4}", "{global: 32, micro: 1, sequence: 1024}",
                                               fmt::format("moe: {{routing: {}, chunks: 2}}\nsimulation: {{ranks: {}}}\n", routing, ranks),
                                               4));
    };
    const sim::StepResult folded = step("folded"), all = step("all");
    EXPECT_NEAR(folded.step_s, all.step_s, 1e-9 * all.step_s) << routing;
    EXPECT_LT(folded.ranks.size(), all.ranks.size()) << routing;
    EXPECT_EQ(folded.memory.fullest()->peak_bytes(), all.memory.fullest()->peak_bytes()) << routing;
  }
}

TEST(Routing, TheSameSeedGivesTheSameStep) {
  const auto step = [](int seed) {
    return sim::predict(expert_job(8, "{dp: 8, ep: 8}", "{global: 16, micro: 1, sequence: 1024}",
                                   fmt::format("moe: {{routing: {{dirichlet: 0.3, seed: {}}}}}\n", seed)))
        .step_s;
  };
  EXPECT_EQ(step(1), step(1));
  EXPECT_NE(step(1), step(2));
}

}  // namespace
}  // namespace rehearse::tests

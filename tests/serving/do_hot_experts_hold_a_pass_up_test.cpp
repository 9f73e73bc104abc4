// Where some experts are asked for more often than others the busiest rank decides, and redundant experts take it down.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "config/data_dir.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/serving_result.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/routing.hpp"
#include "workloads/serving/expert_ranks.hpp"

namespace rehearse::tests {
namespace {

using workloads::ExpertPlan;
using workloads::ExpertRanks;
using workloads::InstancePlan;

InstancePlan routed_plan(const char* routing, double skew, int ep, int redundant = 0) {
  InstancePlan plan;
  plan.model = workloads::read_model(config::Node::load_file(config::data_file("workloads/models", "qwen3-235b-a22b")), "qwen3-235b-a22b");
  plan.dp = plan.ep = ep;
  plan.redundant = redundant;
  ExpertPlan how;
  how.routing = routing;
  how.skew = skew;
  plan.routing = std::make_shared<const ExpertPlan>(how);
  return plan;
}

// All experts alike: the mean and sqrt(2 mean ln E) of pairs, and so much of the experts hit; what passes without a routing are priced by.
// Between eighths of a doubling of tokens it is a line.
TEST(HotExperts, that_are_none_leave_chance_alone) {
  for (const int ep : {1, 2, 8, 32}) {
    for (const double tokens : {1.0, 7.0, 64.0, 1000.0}) {
      const workloads::BusiestRank rank = ExpertRanks(routed_plan("zipf", 0, ep)).busiest(tokens);
      const double mean = tokens * 8 / ep, p = 1 - std::pow(1 - 8.0 / 128, tokens), held = 128.0 / ep;
      const double pairs = std::min(tokens * 8, mean + std::sqrt(2 * mean * std::log(ep)));
      const double hit = std::min(held, held * p + std::sqrt(2 * held * p * (1 - p) * std::log(ep)));
      EXPECT_NEAR(rank.pairs * tokens * 8 / pairs, 1, 0.003) << ep << ' ' << tokens;
      EXPECT_NEAR(rank.hit / hit, 1, 0.01) << ep << ' ' << tokens;
    }
  }
}

// Copies of one token all take the same 8 experts, however many they are: popularity that falls with the rank's 100th power. The ninth has
// (8/9)^100 of what the eighth has, 8e-6, so that of 4,096 tokens one takes it with a chance of 3 %.
TEST(HotExperts, are_as_few_as_a_token_has_where_all_are_its_copies) {
  for (const double tokens : {1.0, 64.0, 4096.0}) {
    const workloads::BusiestRank rank = ExpertRanks(routed_plan("zipf", 100, 1)).busiest(tokens);
    EXPECT_NEAR(rank.hit, 8, 1e-5 * tokens) << tokens;
    EXPECT_NEAR(rank.pairs, 1, 1e-9) << tokens;
  }
}

// Tokens drawn one by one, each to 8 different experts by their popularity. A sum of many draws is near the normal one that the sum of
// tails takes; of experts hit, whose number is bounded, up to a seventh is missing.
TEST(HotExperts, are_hit_as_tokens_drawn_one_by_one_hit_them) {
  for (const double skew : {0.3, 0.8}) {
    for (const int tokens : {32, 512}) {
      const InstancePlan plan = routed_plan("zipf", skew, 8);
      std::mt19937_64 random(7);
      double pairs = 0, hits = 0;
      constexpr int rounds = 20;
      for (int layer = 0; layer < rounds; ++layer) {
        std::vector<double> shares = workloads::RoutingRegistry::get("zipf").shares(*plan.routing, 128, {.step = 0, .layer = layer});
        workloads::choose_once(shares, 1.0 / 8);
        std::vector<int> got(128);
        for (int token = 0; token < tokens; ++token) {
          for (int e = 0; e < 128; ++e) got[e] += std::bernoulli_distribution(std::min(1.0, 8 * shares[e]))(random) ? 1 : 0;
        }
        double most = 0, most_hit = 0;
        for (int rank = 0; rank < 8; ++rank) {
          double sum = 0, hit = 0;
          for (int e = rank * 16; e < rank * 16 + 16; ++e) {
            sum += got[e];
            hit += got[e] > 0 ? 1 : 0;
          }
          most = std::max(most, sum);
          most_hit = std::max(most_hit, hit);
        }
        pairs += most / rounds;
        hits += most_hit / rounds;
      }
      const workloads::BusiestRank rank = ExpertRanks(plan).busiest(tokens);
      EXPECT_NEAR(rank.pairs * tokens * 8 / pairs, 1, 0.1) << skew << ' ' << tokens;
      EXPECT_NEAR(rank.hit / hits, 1, 0.15) << skew << ' ' << tokens;
    }
  }
}

// A token comes to an expert once.
TEST(HotExperts, get_no_more_than_all_tokens) {
  for (const double tokens : {2.0, 64.0, 1000.0})
    EXPECT_LE(ExpertRanks(routed_plan("zipf", 2, 128)).busiest(tokens).pairs * 8, 1 + 1e-9) << tokens;
}

// Shares add up, copies never make the busiest rank busier, and with one for every rank it comes near the mean.
TEST(HotExperts, are_evened_out_by_copies) {
  double before = 1e9;
  for (const int redundant : {0, 8, 32, 128}) {
    const ExpertRanks ranks(routed_plan("zipf", 0.8, 8, redundant));
    double sum = 0;
    for (const double share : ranks.pairs()) sum += share;
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_LE(ranks.imbalance(), before);
    before = ranks.imbalance();
  }
  EXPECT_GT(ExpertRanks(routed_plan("zipf", 0.8, 8)).imbalance(), 1.5);
  EXPECT_LT(before, 1.01);
}

// By hand: shares 4, 2, 1, 1 of 8 on two ranks. In their order 6 to 2. Both copies go to expert 0 (2 a copy, as expert 1, then 4/3). The
// largest first to the rank with the least: 2 | 4/3, 4/3; 2, 4/3 | 4/3, 4/3; then a one to each side, to the second (8/3) first.
TEST(HotExperts, get_the_copies_that_the_balancer_gives_them) {
  InstancePlan plan = routed_plan("zipf", 0, 2, 2);
  plan.model.moe->experts = 4;
  plan.model.moe->top_k = 1;
  ExpertPlan how;
  how.routing = "counts";
  for (int layer = 0; layer < plan.model.layers; ++layer) {
    int expert = 0;
    for (const double tokens : {4.0, 2.0, 1.0, 1.0}) how.counts.push_back({0, layer, 0, expert++, tokens});
  }
  plan.routing = std::make_shared<const ExpertPlan>(how);
  EXPECT_NEAR(ExpertRanks(plan).imbalance(), (2 + 4.0 / 3 + 1) / 4, 1e-12);
  plan.redundant = 0;
  EXPECT_NEAR(ExpertRanks(plan).imbalance(), 1.5, 1e-12);
}

constexpr const char* wide =
    "model: qwen3-235b-a22b\n"
    "cluster: h800-deepseek\n"
    "software: sglang\n"
    "serving:\n"
    "  pools: {all: {role: both, parallel: {tp: 1, dp: 16, ep: 16}, precision: {compute: fp8, weights: fp8, kv: bf16},\n"
    "                moe: {dispatcher: hierarchical, redundant: 0}, limits: {tokens: 8192}}}\n"
    "  load: {arrivals: {poisson: 0.3 /s}, input: 16000, output: 100, requests: 400}\n";

struct BothAnswers {
  sim::ServingResult formula, run;
  std::vector<std::string> notes;
};
BothAnswers wide_answers(const std::string& text) {
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = sim::deploy(job);
  const sim::ServingSetup setup = sim::setup_of(job, deployment);
  return {predict_serving(job, deployment, 16000).result, sim::result_of(job, setup, simulate_serving(setup)), job.notes};
}

std::string with_redundant(const std::string& number) {
  std::string text = wide;
  return text.replace(text.find("redundant: 0") + 11, 1, number);
}

TEST(HotExperts, take_longer_by_both_methods_and_less_with_copies) {
  const BothAnswers even = wide_answers(wide), hot = wide_answers(std::string(wide) + "moe: {routing: {zipf: 0.8}}\n"),
                    copied = wide_answers(with_redundant("32") + "moe: {routing: {zipf: 0.8}}\n");
  EXPECT_GT(hot.run.tpot.mean_s, 1.02 * even.run.tpot.mean_s);
  EXPECT_GT(hot.run.ttft.mean_s, 1.05 * even.run.ttft.mean_s);
  EXPECT_LT(copied.run.ttft.mean_s, hot.run.ttft.mean_s);
  EXPECT_LT(copied.run.tpot.mean_s, hot.run.tpot.mean_s);
  for (const BothAnswers* one : {&even, &hot, &copied}) {
    // Long prompts of 16 attention replicas: 0.5 to 2 and 4 to 9 % too short, without a routing as with one.
    EXPECT_NEAR(one->formula.ttft.mean_s / one->run.ttft.mean_s, 1, 0.03);
    EXPECT_NEAR(one->formula.tpot.mean_s / one->run.tpot.mean_s, 1, 0.1);
  }
  ASSERT_EQ(hot.notes.size(), even.notes.size() + 1);
  EXPECT_NE(hot.notes.back().find("the busiest of 16 ranks gets"), std::string::npos) << hot.notes.back();
}

std::string wide_refusal(const std::string& more, const std::string& model = "qwen3-235b-a22b") {
  std::string text = wide;
  text.replace(text.find("qwen3-235b-a22b"), 15, model);
  try {
    static_cast<void>(sim::read_serving_job(config::Node::load_text(text + more, "job.yaml"), "job"));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HotExperts, are_refused_where_they_cannot_be) {
  const auto expect = [](const std::string& message, const char* place, const char* why) {
    EXPECT_NE(message.find(place), std::string::npos) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  EXPECT_EQ(wide_refusal("moe: {routing: balanced}\n"), "accepted");
  expect(wide_refusal("moe: {routing: {zipf: 0.5}}\n", "llama3-70b"), "job.yaml:", "moe is for models with experts");
  expect(wide_refusal("moe: {dispatcher: alltoall}\n"), "job.yaml:8:7", "dispatcher belongs to a pool");
  expect(wide_refusal("moe: {chunks: 2}\n"), "job.yaml:8:7", "unknown key 'chunks'");
  expect(wide_refusal("moe: {routing: {zipf: 0.5, senders: own}}\n"), "job.yaml:8:", "send alike");
  expect(wide_refusal("moe: {routing: {counts: [[0, 0, 0, 128, 5]]}}\n"), "job.yaml:8:", "the counts name expert 128; there are 128");
  expect(wide_refusal("moe: {routing: {counts: [[1, 0, 0, 0, 5]]}}\n"), "job.yaml:8:", "the counts name step 1; there are 1");
  expect(wide_refusal("moe: {routing: {counts: [[0, 0, 0, 0, 5]]}}\n"), "job.yaml:8:", "no tokens for step 0, layer 1");
}

}  // namespace
}  // namespace rehearse::tests

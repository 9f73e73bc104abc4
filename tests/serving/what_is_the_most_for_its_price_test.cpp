// The deployment that carries the most requests for its price, and the plans that differ in number formats and in where experts stand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/kind/job_kind.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/serving_report.hpp"
#include "sim/serving/tune.hpp"
#include "sim/serving/tune_candidates.hpp"
#include "tests/serving/every_deployment.hpp"

namespace rehearse::tests {
namespace {

std::string priced_job(const std::string& tune, const std::string& model = "llama3-8b") {
  return fmt::format(
      "model: {}\ncluster: {{parts: {{rich: {{cluster: dgx-h100-ndr400, nodes: 1}}, wide: {{cluster: h20-roce-4x400, nodes: 1}}}}, "
      "between: {{bandwidth: 400 Gbps}}}}\nsoftware: vllm\nserving:\n"
      "  pools:\n    prefill: {{role: prefill, part: rich}}\n    decode: {{role: decode, part: wide}}\n"
      "  load: {{arrivals: {{poisson: 9 /s}}, input: 1500, output: 120, requests: 400}}\n  slo: {{ttft: 300 ms, tpot: 15 ms}}\n"
      "tune: {{price: {{rich: 3 /h, wide: 1 /h}}, {}}}\n",
      model, tune);
}

sim::ServingJob priced(const std::string& tune, const std::string& model = "llama3-8b") {
  return sim::read_serving_job(config::Node::load_text(priced_job(tune, model), "job.yaml"), "job");
}

sim::ServingTuning tuned_for(const std::string& tune, const std::string& model = "llama3-8b") {
  return tune_serving(priced(tune, model), [](double) {});
}

// The highest rate at which `predict` says that a deployment keeps the promise, to a thousandth; 0 where it is below `least`.
double rate_by_predict(const sim::ServingJob& job, const std::vector<sim::Pool>& pools, double least = 1e-3) {
  sim::TunedDeployment one;
  one.pools = pools;
  const auto keeps = [&](double rate) {
    const sim::ServingJob plan = with_pools(job, one, rate);
    const sim::Deployment deployment = deploy(plan);
    return deployment.misfit.empty() && predicted_promise(plan, deployment).keeps(job.promise);
  };
  if (!keeps(least)) return 0;
  double low = least, high = 1e3;
  while (high > low * 1.001) {
    const double middle = std::sqrt(low * high);
    (keeps(middle) ? low : high) = middle;
  }
  return low;
}

// Every number of instances of both sides, together and apart, is asked for its rate.
TEST(TheMostForItsPrice, is_what_asking_every_deployment_finds) {
  for (const char* inventory : {"{rich: 2, wide: 4}", "{rich: 4, wide: 2}", "{rich: 3, wide: 0}"}) {
    const sim::ServingJob job = priced(fmt::format("inventory: {}, tp: [1], confirm: 0, goal: goodput-per-cost", inventory));
    sim::ServingTuning counts;
    const sim::TuneSides sides(job, counts);
    double most = 0;
    const auto ask = [&](const std::vector<sim::Pool>& pools, double cost) {
      most = std::max(most, rate_by_predict(job, pools, std::max(1e-3, most * cost)) / cost);
    };
    for_every_deployment(sides, ask);
    const sim::ServingTuning tuning = tune_serving(job, [](double) {});
    ASSERT_FALSE(tuning.best.empty());
    const sim::TunedDeployment& best = tuning.best.front();
    EXPECT_NEAR(best.rate_per_s / best.cost_per_s, most, 0.01 * most) << inventory;
    EXPECT_NEAR(best.rate_per_s, rate_by_predict(job, best.pools), 0.002 * best.rate_per_s);
    for (std::size_t i = 1; i < tuning.best.size(); ++i)
      EXPECT_LE(tuning.best[i].rate_per_s / tuning.best[i].cost_per_s, best.rate_per_s / best.cost_per_s);
  }
}

// Simulated, each at its own highest rate; the job that is written is for the chosen one's.
TEST(TheMostForItsPrice, is_chosen_by_simulation) {
  sim::KindRequest request;
  request.name = "job";
  request.document = config::Node::load_text(priced_job("inventory: {rich: 2, wide: 4}, tp: [1], goal: goodput-per-cost"), "job.yaml");
  request.options = {{"top", {"2"}}};
  request.progress = [](double) {};
  const sim::KindAnswer answer = sim::JobKindRegistry::get("serving").answer("tune", request);
  const auto& report = answer.report.get<sim::ServingReport>();
  ASSERT_TRUE(report.tuning->chosen);
  const sim::TunedDeployment& chosen = report.tuning->best[*report.tuning->chosen];
  int simulated = 0;
  for (const sim::TunedDeployment& one : report.tuning->best) {
    if (!one.simulated) continue;
    ++simulated;
    EXPECT_LE(one.simulated->goodput_per_s / one.cost_per_s, chosen.simulated->goodput_per_s / chosen.cost_per_s);
  }
  EXPECT_GE(simulated, 2);
  const sim::ServingJob plan = sim::read_serving_job(config::Node::load_text(report.plan_yaml, "plan.yaml"), "plan");
  EXPECT_NEAR(plan.load.arrivals.rate_per_s, chosen.simulated->goodput_per_s, 1e-6 * chosen.simulated->goodput_per_s);
  EXPECT_EQ(plan.gpus(), chosen.gpus);
}

// One search over two formats finds what two searches of one each find.
TEST(NumberFormats, are_searched_like_any_other_key) {
  const std::string narrow = "{compute: fp8, weights: fp8, kv: fp8}", wide = "{compute: bf16, weights: bf16, kv: bf16}",
                    more = "inventory: {rich: 8, wide: 8}, tp: [1, 2], confirm: 0, keep: 1, ";
  const sim::ServingTuning both = tuned_for(more + "precision: [" + narrow + ", " + wide + "]"),
                           one = tuned_for(more + "precision: " + narrow), other = tuned_for(more + "precision: [" + wide + "]");
  EXPECT_EQ(both.plans, one.plans + other.plans);
  EXPECT_EQ(both.best.front().cost_per_s, std::min(one.best.front().cost_per_s, other.best.front().cost_per_s));
  EXPECT_LT(one.best.front().cost_per_s, other.best.front().cost_per_s);
  for (const sim::Pool& pool : both.best.front().pools) EXPECT_EQ(pool.wanted, workloads::DType::fp8);
}

// Experts spread over all of four ranks, or each cut in four: with one attention replica both may be.
TEST(WhereExpertsStand, is_searched_like_any_other_key) {
  const std::string more = "inventory: {rich: 8, wide: 8}, tp: [4], confirm: 0, keep: 1, ";
  const sim::ServingTuning both = tuned_for(more + "ep: [1, 4]", "qwen3-30b-a3b"), whole = tuned_for(more + "ep: 1", "qwen3-30b-a3b"),
                           spread = tuned_for(more + "ep: [4]", "qwen3-30b-a3b"), none = tuned_for(more + "ep: [3]", "qwen3-30b-a3b");
  EXPECT_EQ(both.plans, whole.plans + spread.plans);
  EXPECT_EQ(both.refused, 0);
  EXPECT_EQ(none.refused, none.plans);
  EXPECT_TRUE(none.best.empty());
  EXPECT_EQ(both.best.front().cost_per_s, std::min(whole.best.front().cost_per_s, spread.best.front().cost_per_s));
  for (const sim::Pool& pool : spread.best.front().pools) EXPECT_EQ(pool.plan.ep, 4);
}

TEST(WhatTuneSearches, is_refused_at_its_place) {
  const auto refusal = [](const std::string& tune) {
    try {
      static_cast<void>(priced(tune));
    } catch (const config::InputError& error) {
      return std::string(error.what());
    }
    return std::string("fine");
  };
  const auto expect = [&](const std::string& tune, const std::string& why) {
    EXPECT_NE(refusal(tune).find(why), std::string::npos) << refusal(tune);
    EXPECT_EQ(refusal(tune).find("job.yaml:10:"), 0U) << refusal(tune);
  };
  expect("goal: [goodput-per-cost, cost]", "goodput-per-cost is a goal alone");
  expect("precision: []", "a list of values to try is wanted");
  expect("precision: [{compute: fp8}, {compute: fp8}]", "named twice");
  expect("precision: [{compute: fp9}]", "fp9");
  expect("precision: fp8", "");
  expect("ep: [0]", "must be between 1 and");
}

}  // namespace
}  // namespace rehearse::tests

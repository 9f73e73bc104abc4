// What gives way when a cache has no page left: tokens computed again, pages that go to the host and come back, or nobody. By hand, and
// for static batches where caches are handed over.
#include <gtest/gtest.h>

#include <cmath>

#include "config/node.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::tests {
namespace {

using sim::Overflow;
using sim::ServingRun;
using sim::ServingSetup;

constexpr double overflow_eps = 1e-12;

// Two requests of 3 + 5 tokens at once, pages of one token, ten of them; a prompt token and a decode pass take a millisecond.
ServingSetup tight(Overflow overflow) {
  sim::InstanceRules rules;
  rules.overflow = overflow;
  rules.pages = 10;
  rules.page = 1;
  rules.swap_page_s = 0.01;
  ServingSetup setup;
  setup.pools = {{"pool", rules, std::make_shared<ConstantPrice>(1e-3, 1e-3), 1}};
  setup.requests = {{0, {3, 5}}, {0, {3, 5}}};
  return setup;
}

// Both prompts take 6 ms and 6 pages, two passes the other 4. The younger one goes, with 5 stored tokens and 3 shown: 5 pages in 50 ms.
// The older one shows its last two by 60 ms. Then 5 pages come back in 50 ms, and two passes end it at 112 ms.
TEST(Swapping, takes_the_pages_there_and_back) {
  const ServingRun run = simulate_serving(tight(Overflow::swap));
  EXPECT_NEAR(run.requests[0].last_s, 0.060, overflow_eps);
  EXPECT_NEAR(run.requests[1].last_s, 0.112, overflow_eps);
  EXPECT_EQ(run.requests[1].preemptions, 1);
  const sim::InstanceUse& use = run.pools[0].instances[0];
  EXPECT_EQ(use.swapped_pages, 5);
  EXPECT_NEAR(use.swap_s, 0.1, overflow_eps);
  EXPECT_EQ(use.recomputed_tokens, 0);
  EXPECT_EQ(use.prompt_tokens, 6);
  EXPECT_NEAR(run.pools[0].gaps.largest_s(), 0.112 - 0.001 - 0.008, overflow_eps);  // from its third token to its fourth
  EXPECT_EQ(run.pages_left[0], 0);
}

// Computed again instead: 3 + 3 tokens in 6 ms behind the older one's end at 10 ms yield the fourth token, a pass the fifth.
TEST(Recomputing, takes_the_tokens_again) {
  const ServingRun run = simulate_serving(tight(Overflow::recompute));
  EXPECT_NEAR(run.requests[0].last_s, 0.010, overflow_eps);
  EXPECT_NEAR(run.requests[1].last_s, 0.017, overflow_eps);
  EXPECT_EQ(run.pools[0].instances[0].recomputed_tokens, 6);
}

// Only what fits to its last token is admitted: one behind the other, 3 + 4 ms each.
TEST(Reserving, lets_the_second_one_wait) {
  const ServingRun run = simulate_serving(tight(Overflow::reserve));
  EXPECT_NEAR(run.requests[0].last_s, 0.007, overflow_eps);
  EXPECT_NEAR(run.requests[1].last_s, 0.014, overflow_eps);
  EXPECT_EQ(run.requests[1].preemptions, 0);
}

// A host without room for its five pages: its tokens are computed again.
TEST(Swapping, recomputes_what_the_host_cannot_hold) {
  ServingSetup setup = tight(Overflow::swap);
  setup.pools[0].rules.swap_pages = 4;
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[1].last_s, 0.017, overflow_eps);
  EXPECT_EQ(run.pools[0].instances[0].swapped_pages, 0);
}

sim::ServingJob overflow_job(const std::string& pool, const std::string& cluster = "dgx-h100-ndr400") {
  return sim::read_serving_job(
      config::Node::load_text("model: llama3-8b\ncluster: " + cluster + "\nsoftware: vllm\nserving:\n  pools:\n    all: {role: both, " +
                                  pool + "}\n  load: {arrivals: {closed: 40}, input: 1000, output: 500, requests: 120}\n",
                              "job.yaml"),
      "job");
}

// A page of 16 tokens, 131,072 bytes each, over a host link of its own: as fast as the cluster's file says. Halves on two GPUs go at once.
TEST(Swapping, is_as_fast_as_the_host_link) {
  for (const int tp : {1, 2}) {
    const sim::ServingJob job = overflow_job("overflow: swap, parallel: {tp: " + std::to_string(tp) + "}");
    const topology::ClusterSpec& cluster = job.parts[0].cluster;
    const sim::Deployment deployment = deploy(job);
    const int sharing = std::min(tp, cluster.gpus_per_host_link);
    EXPECT_NEAR(deployment.pools[0].rules.swap_page_s, 16 * 131'072.0 / tp * sharing / cluster.host.effective_bytes_per_s(), 1e-15);
  }
}

// Forty clients with 1,500 tokens each and a cache of 40,000: what is moved is moved both ways, and nothing is computed twice.
TEST(Swapping, of_a_job_moves_every_page_back) {
  const sim::ServingJob job = overflow_job("overflow: swap, kv_tokens: 40000");
  const sim::Deployment deployment = deploy(job);
  const ServingSetup setup = setup_of(job, deployment);
  const ServingRun run = simulate_serving(setup);
  const sim::ServingResult result = result_of(job, setup, run);
  EXPECT_EQ(result.finished, result.counted);
  EXPECT_GT(result.pools[0].preemptions, 0);
  EXPECT_EQ(result.pools[0].recomputed_tokens, 0);
  const sim::InstanceUse& use = run.pools[0].instances[0];
  EXPECT_NEAR(use.swap_s, 2 * static_cast<double>(use.swapped_pages) * deployment.pools[0].rules.swap_page_s, 1e-9);
  EXPECT_NEAR(result.pools[0].swapped_bytes, static_cast<double>(use.swapped_pages) * 16 * 131'072, 1);
}

sim::PoolSetup static_decoding(int pages) {
  sim::InstanceRules rules;
  rules.role = sim::Role::decode;
  rules.batching = sim::Batching::fixed;
  rules.pages = pages;
  rules.page = 1;
  return {"decode", rules, std::make_shared<ConstantPrice>(1e-3, 1e-3), 1};
}

// The first one begins alone; who comes within its 10 passes makes the next batch, however short the answers before it.
TEST(AStaticBatch, of_caches_is_decoded_to_its_end) {
  ServingSetup setup;
  setup.pools = {static_decoding(1000)};
  setup.requests = {{0, {5, 10}}, {0.002, {5, 4}}, {0.003, {5, 8}}, {0.011, {5, 1}}};
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 0.010, overflow_eps);
  EXPECT_NEAR(run.requests[1].last_s, 0.014, overflow_eps);
  EXPECT_NEAR(run.requests[2].last_s, 0.018, overflow_eps);
  EXPECT_NEAR(run.requests[3].last_s, 0.019, overflow_eps);
}

// By formula: batches of a Poisson number, half of one to wait for; equal answers within 3 %, uniform ones within 6 %.
TEST(AStaticBatch, waits_by_formula_as_simulated) {
  for (const auto& [output, within] : {std::pair("100", 0.03), std::pair("{uniform: [50, 150]}", 0.06)}) {
    for (const double rate : {0.3, 2.0, 10.0}) {
      const sim::ServingJob job = sim::read_serving_job(
          config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  isolate: decode\n  pools:\n"
                                  "    decode: {role: decode, batching: static}\n  load: {arrivals: {poisson: " +
                                      std::to_string(rate) + " /s}, input: 1000, output: " + output + ", requests: 20000}\n",
                                  "job.yaml"),
          "job");
      const sim::Deployment deployment = deploy(job);
      const ServingSetup setup = setup_of(job, deployment);
      const sim::ServingResult formula = predict_serving(job, deployment, 1000).result,
                               simulated = result_of(job, setup, simulate_serving(setup));
      EXPECT_NEAR(formula.tpot.mean_s / simulated.tpot.mean_s, 1, within) << output << ' ' << rate;
      EXPECT_NEAR(formula.ttft.mean_s / simulated.ttft.mean_s, 1, 2 * within) << output << ' ' << rate;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

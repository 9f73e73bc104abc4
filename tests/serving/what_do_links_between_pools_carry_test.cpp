// What the links between two pools carry by formula.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/promised_times.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::tests {
namespace {

// Requests take the attention replicas of an instance in turn: as many links as by instances of one each.
TEST(TheBusiestLink, is_no_busier_for_replicas_than_for_instances) {
  const auto busiest_s = [](const std::string& prompts, const std::string& answers) {
    const sim::ServingJob job = sim::read_serving_job(
        config::Node::load_text(
            fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n    p: {{role: prefill, {}}}\n"
                        "    d: {{role: decode, {}}}\n  load: {{arrivals: {{poisson: 80 /s}}, input: 4000, output: 50, requests: 100}}\n",
                        prompts, answers),
            "job.yaml"),
        "job");
    return sim::NetworkTransfers(job).busiest(4000).seconds;
  };
  for (const int number : {2, 4, 8}) {
    const std::string replicas = fmt::format("parallel: {{dp: {}}}", number), instances = fmt::format("instances: {}", number);
    EXPECT_NEAR(busiest_s(replicas, instances) / busiest_s(instances, instances), 1, 1e-9) << number;
    EXPECT_NEAR(busiest_s(instances, replicas) / busiest_s(instances, instances), 1, 1e-9) << number;
  }
  // Of many instances the first ones are looked at, and the others have their share of what goes to one alone.
  EXPECT_LT(busiest_s("parallel: {dp: 4}", "instances: 32"), 1.01 * busiest_s("instances: 4", "instances: 8"));
}

sim::ServingPrediction predicted(const sim::ServingJob& job, sim::ServingResult& simulated) {
  const sim::Deployment deployment = deploy(job);
  const sim::ServingSetup setup = setup_of(job, deployment);
  simulated = result_of(job, setup, simulate_serving(setup));
  return predict_serving(job, deployment, job.load.input.low);
}

// One prompt's cache fills the instance until it is handed over, 0.33 s over 10 Gbit/s: 2.54 requests/s, where computing alone carries 19.
// First tokens within 5 %; a quarter more than is carried leaves as fast as it is carried, within 2 %.
TEST(CachesAtTheSender, keep_the_next_prompts_waiting) {
  const auto job = [](double rate) {
    return sim::read_serving_job(
        config::Node::load_text(
            fmt::format("model: llama3-8b\ncluster:\n  parts: {{a: {{cluster: dgx-h100-ndr400, nodes: 1}}, b: {{cluster: dgx-h100-ndr400, "
                        "nodes: 1}}}}\n  between: {{bandwidth: 10 Gbps, latency: 8 us}}\nsoftware: vllm\nserving:\n  pools:\n"
                        "    p: {{role: prefill, part: a, kv_tokens: 3000}}\n    d: {{role: decode, part: b}}\n"
                        "  load: {{arrivals: {{poisson: {} /s}}, input: 2048, output: 20, requests: 20000}}\n",
                        rate),
            "job.yaml"),
        "job");
  };
  sim::ServingResult simulated;
  for (const double rate : {0.5, 1.0, 2.0}) {
    const sim::ServingPrediction formula = predicted(job(rate), simulated);
    EXPECT_NEAR(formula.result.ttft.mean_s / simulated.ttft.mean_s, 1, 0.05) << rate;
  }
  const sim::ServingPrediction formula = predicted(job(3.2), simulated);
  EXPECT_NE(formula.overloaded.find("with caches that are not handed over yet"), std::string::npos) << formula.overloaded;
  EXPECT_NE(formula.overloaded.find("it carries 2.54"), std::string::npos) << formula.overloaded;
  EXPECT_NEAR(simulated.requests_per_s / 2.544, 1, 0.02);
}

// tune predicts what predict does of the deployment: here the caches of 8,000 tokens that wait for 24 Gbit/s keep others out.
TEST(CachesAtTheSender, keep_the_next_prompts_waiting_in_tune_too) {
  sim::ServingJob job = sim::read_serving_job(
      config::Node::load_text(
          "model: llama3-70b\ncluster:\n  parts: {rich: {cluster: dgx-h100-ndr400, nodes: 1}, wide: {cluster: h20-roce-4x400, nodes: 2}}\n"
          "  between: {bandwidth: 24 Gbps, latency: 8 us}\nsoftware: vllm\nserving:\n  pools:\n"
          "    prefill: {role: prefill, part: rich, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: bf16}, kv_tokens: "
          "9000}\n"
          "    decode: {role: decode, part: wide, instances: 2, parallel: {tp: 4}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
          "  load: {arrivals: {poisson: 0.3 /s}, input: 8000, output: 50, requests: 1000}\n  slo: {ttft: 60 s, tpot: 100 ms}\n"
          "tune: {inventory: {rich: 8, wide: 16}, price: {rich: 3 /h, wide: 1 /h}, confirm: 0, keep: 30}\n",
          "job.yaml"),
      "job");
  const sim::ServingTuning tuning = tune_serving(job, [](double) {});
  int apart = 0;
  for (const sim::TunedDeployment& one : tuning.best) {
    const sim::ServingJob chosen = with_pools(job, one, 0.3);
    if (!chosen.apart()) continue;
    const sim::PromisedTimes times = predicted_promise(chosen, deploy(chosen));
    EXPECT_NEAR(one.ttft_s / times.ttft_s, 1, 1e-9) << one.kind;
    ++apart;
  }
  EXPECT_GT(apart, 0);
}

// Forty instances of a small model hold millions of caches: none waits, and nobody counts them one by one.
TEST(CachesAtTheSender, keep_nobody_waiting_where_there_is_much_room) {
  const sim::ServingJob job =
      sim::read_serving_job(config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
                                                    "    p: {role: prefill, instances: 40}\n    d: {role: decode, instances: 8}\n"
                                                    "  load: {arrivals: {poisson: 10 /s}, input: 16, output: 20, requests: 1000}\n",
                                                    "job.yaml"),
                            "job");
  const sim::Deployment deployment = deploy(job);
  const sim::LoadMoments load = promised_moments(job);
  sim::PoolDeployment pool = deployment.pools.front();
  pool.rules.pages = std::int64_t{1} << 40U;
  sim::PoolState state{.ttft_s = 1, .prefill_s = 1};
  EXPECT_EQ(put_held(state, sim::PoolFormula(pool, load), load, 10, 1), 0);
  EXPECT_EQ(state.ttft_s, 1);
}

}  // namespace
}  // namespace rehearse::tests

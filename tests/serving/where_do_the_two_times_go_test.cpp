// The time to first token and the time per token by what they go to, and the time that it takes to make caches fit, by both methods.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/stage_differences.hpp"
#include "sim/serving/time_splits.hpp"

namespace rehearse::tests {
namespace {

using sim::PassMix;

struct BothWays {
  sim::ServingJob job;
  sim::ServingResult formula, run;
};

BothWays both_ways(const std::string& text) {
  sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = sim::deploy(job);
  const sim::ServingSetup setup = sim::setup_of(job, deployment);
  const sim::ServingPrediction prediction = predict_serving(job, deployment, job.load.input.low);
  EXPECT_EQ(prediction.overloaded, "");
  BothWays out{job, prediction.result, sim::result_of(job, setup, simulate_serving(setup))};
  put_predicted_splits(out.formula, job, deployment);
  return out;
}

std::string sides_of(const std::string& prefill, const std::string& decode, const std::string& more = "") {
  return fmt::format(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
      "    p: {{role: prefill, parallel: {{tp: 2}}, {}}}\n    d: {{role: decode, parallel: {{tp: 2}}, {}}}\n{}"
      "  load: {{arrivals: {{poisson: 4 /s}}, input: 4000, output: 60, requests: 1500}}\n",
      prefill, decode, more);
}
std::string one_pool(const std::string& software, const std::string& keys) {
  return fmt::format(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n  pools:\n    all: {{role: both, {}}}\n"
      "  load: {{arrivals: {{poisson: 3 /s}}, input: 3000, output: 60, requests: 1500}}\n",
      software, keys);
}

void expect_whole(const sim::ServingResult& result) {
  EXPECT_NEAR(result.ttft_split.sum() / result.ttft.mean_s, 1, 1e-9) << result.method;
  EXPECT_NEAR(result.tpot_split.sum() / result.tpot.mean_s, 1, 1e-9) << result.method;
  for (const PassMix::Named& one : PassMix::parts()) {
    EXPECT_GE(result.ttft_split.*one.part, 0) << one.name;
    EXPECT_GE(result.tpot_split.*one.part, 0) << one.name;
  }
}

// They add up, and each part is the same by both methods within a twentieth of the whole: of equal prompts at random, apart and together.
TEST(TheTwoTimes, go_to_the_same_by_both_methods) {
  const std::string bf16 = "precision: {compute: bf16, weights: bf16, kv: bf16}";
  for (const std::string& text :
       {sides_of(bf16, bf16), sides_of(bf16, bf16, "  transfer: {first_token: prefill}\n"), one_pool("vllm", bf16),
        one_pool("vllm", bf16 + ", parallel: {tp: 4}"), one_pool("sglang", bf16 + ", instances: 2")}) {
    const BothWays both = both_ways(text);
    expect_whole(both.formula);
    expect_whole(both.run);
    for (const PassMix::Named& one : PassMix::parts()) {
      EXPECT_NEAR(both.formula.ttft_split.*one.part, both.run.ttft_split.*one.part, 0.05 * both.run.ttft.mean_s) << one.name << '\n'
                                                                                                                 << text;
      EXPECT_NEAR(both.formula.tpot_split.*one.part, both.run.tpot_split.*one.part, 0.05 * both.run.tpot.mean_s) << one.name << '\n'
                                                                                                                 << text;
    }
  }
}

// One GPU has no one to talk to; four have.
TEST(TheTwoTimes, go_to_communication_where_there_is_any) {
  EXPECT_EQ(both_ways(one_pool("vllm", "instances: 1")).run.tpot_split.communication, 0);
  const BothWays four = both_ways(one_pool("vllm", "parallel: {tp: 4}"));
  EXPECT_GT(four.run.tpot_split.communication, 0.05 * four.run.tpot.mean_s);
  EXPECT_GT(four.run.ttft_split.communication, 0.02 * four.run.ttft.mean_s);
}

// Pairs of query and key grow with the square of a prompt: of unlike ones attention takes more than that of a mean one.
TEST(TheTwoTimes, go_to_the_same_of_unlike_prompts) {
  std::string text = sides_of("instances: 1", "instances: 1");
  text.replace(text.find("input: 4000"), 11, "input: {lognormal: {median: 1020, p90: 4000}, max: 14050}");
  const BothWays both = both_ways(text);
  EXPECT_NEAR(both.formula.ttft_split.cache / both.run.ttft_split.cache, 1, 0.15);
}

// Whoever decodes while prompts alone are computed waits.
TEST(TheTwoTimes, go_to_waiting_where_prompts_go_first) {
  const BothWays first = both_ways(one_pool("sglang", "instances: 1")), mixed = both_ways(one_pool("vllm", "instances: 1"));
  EXPECT_GT(first.run.tpot_split.waiting, 0.1 * first.run.tpot.mean_s);
  EXPECT_LT(mixed.run.tpot_split.waiting, 0.02 * mixed.run.tpot.mean_s);
}

// 16 bits are made 8 before they leave: b + b' of each GPU's share at the rate of its memory; where the sides are alike nothing is.
TEST(MakingACacheFit, is_a_stage_of_its_own) {
  const std::string bf16 = "precision: {compute: bf16, weights: bf16, kv: bf16}",
                    fp8 = "precision: {compute: bf16, weights: bf16, kv: fp8}";
  const BothWays alike = both_ways(sides_of(bf16, bf16));
  EXPECT_EQ(alike.run.stages.at("aligning"), 0);
  EXPECT_EQ(alike.formula.stages.at("aligning"), 0);
  for (const char* mode : {"after-prefill", "chunkwise"}) {
    const BothWays both = both_ways(sides_of(bf16 + ", limits: {tokens: 2048}", fp8 + ", kv: {layout: hnd, page: 16}",
                                             fmt::format("  transfer: {{mode: {}}}\n", mode)));
    const double run_s = both.run.stages.at("aligning"), formula_s = both.formula.stages.at("aligning");
    EXPECT_GT(run_s, 0) << mode;
    EXPECT_NEAR(formula_s / run_s, 1, 0.02) << mode;
    EXPECT_NEAR(both.run.kv_transfer_s, run_s + both.run.stages.at("transferring"), 1e-12);
    double stages = 0;
    for (const auto& [name, seconds] : both.run.stages) stages += seconds;
    EXPECT_NEAR(stages / both.run.e2e.mean_s, 1, 1e-9);
  }
  const BothWays whole = both_ways(sides_of(bf16, fp8));
  const sim::NetworkTransfers transfers(whole.job);
  EXPECT_NEAR(whole.run.stages.at("aligning"), 4000 * transfers.lanes().front().aligning_s_per_token(), 1e-9);
}

TEST(MakingACacheFit, stands_among_the_differences) {
  const std::string bf16 = "precision: {compute: bf16, weights: bf16, kv: bf16}",
                    fp8 = "precision: {compute: bf16, weights: bf16, kv: fp8}";
  const BothWays both = both_ways(sides_of(bf16, fp8));
  std::vector<std::string> names;
  for (const sim::StageDifference& one : stage_differences(both.job, deploy(both.job), both.formula, both.run)) names.push_back(one.name);
  for (const char* name : {"aligning", "first token: weights", "first token: waiting", "per token: cache", "per token: communication"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
}

}  // namespace
}  // namespace rehearse::tests

// What explain says of a choice is what a job with that choice does.
#include <gtest/gtest.h>

#include <set>

#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/explain.hpp"

namespace rehearse::tests {
namespace {

using config::Node;
using sim::ServingEffect;

constexpr const char* two_sides =
    "model: llama3-8b\n"
    "cluster: dgx-h100-ndr400\n"
    "software: vllm\n"
    "serving:\n"
    "  pools:\n"
    "    prefill: {role: prefill, instances: 2, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
    "    decode: {role: decode, instances: 2, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: fp8}}\n"
    "  load: {arrivals: {poisson: 8 /s}, input: 2000, output: 60, requests: 300}\n"
    "  slo: {ttft: 1 s, tpot: 50 ms}\n";

std::vector<ServingEffect> effects_of(const std::string& text) {
  const Node document = Node::load_text(text, "job.yaml");
  return sim::serving_effects(document, sim::read_serving_job(document, "job"), false, [](double) {});
}

const ServingEffect& effect(const std::vector<ServingEffect>& effects, const std::string& key, const std::string& value) {
  for (const ServingEffect& one : effects) {
    if (one.key == key && one.value == value) return one;
  }
  throw std::runtime_error("no effect " + key + ": " + value);
}

sim::ServingResult result_with(const std::string& text, const std::string& path, const std::string& value) {
  Node document = Node::load_text(text, "job.yaml");
  if (!path.empty()) document.set(path, value);
  const sim::ServingJob job = sim::read_serving_job(document, "job");
  const sim::Deployment deployment = sim::deploy(job);
  const sim::ServingSetup setup = sim::setup_of(job, deployment);
  return sim::result_of(job, setup, simulate_serving(setup));
}

TEST(EachChoice, is_what_the_job_with_it_does) {
  const auto effects = effects_of(two_sides);
  for (const auto& [key, value] : {std::pair("prefill.chunked_prefill", "false"), std::pair("decode.graphs", "false"),
                                   std::pair("decode.precision.kv", "bf16"), std::pair("prefill.kv.page", "64")}) {
    const ServingEffect& one = effect(effects, key, value);
    ASSERT_TRUE(one.simulated) << key;
    const sim::ServingResult expected = result_with(two_sides, std::string("serving.pools.") + key, value);
    EXPECT_EQ(one.simulated->ttft.mean_s, expected.ttft.mean_s) << key;
    EXPECT_EQ(one.simulated->tpot.mean_s, expected.tpot.mean_s) << key;
  }
  for (const auto& [key, value] :
       {std::pair("transfer.path", "host-staged"), std::pair("transfer.mode", "chunkwise"), std::pair("router.prefill", "round-robin")}) {
    const sim::ServingResult expected = result_with(two_sides, std::string("serving.") + key, value);
    EXPECT_EQ(effect(effects, key, value).simulated->e2e.mean_s, expected.e2e.mean_s) << key;
  }
}

// The first token by who computes the prompt leaves out the hand-over and the first pass; half the cache is half the bytes.
TEST(EachChoice, moves_what_it_should) {
  const auto effects = effects_of(two_sides);
  const sim::ServingResult now = result_with(two_sides, "", "");
  EXPECT_LT(effect(effects, "transfer.first_token", "prefill").simulated->ttft.mean_s, now.ttft.mean_s - now.kv_transfer_s);
  EXPECT_NEAR(effect(effects, "decode.precision.kv", "bf16").simulated->kv_transfer_bytes, 2 * now.kv_transfer_bytes, 1);
  EXPECT_GT(effect(effects, "decode.parallel.tp", "1 (4 instances)").simulated->tpot.mean_s, now.tpot.mean_s);
  EXPECT_LT(effect(effects, "decode.parallel.tp", "4 (1 instances)").simulated->tpot.mean_s, now.tpot.mean_s);
}

TEST(EachChoice, is_another_one_and_asked_once) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const ServingEffect& one : effects_of(two_sides)) {
    EXPECT_TRUE(seen.emplace(one.key, one.value).second) << one.key << ": " << one.value;
    EXPECT_NE(one.simulated.has_value(), !one.refused.empty()) << one.key;
  }
  for (const auto& now :
       {std::pair("decode.precision.kv", "fp8"), std::pair("transfer.path", "gpu-direct"), std::pair("router.decode", "least-kv"),
        std::pair("prefill.batching", "continuous"), std::pair("decode.graphs", "true")}) {
    EXPECT_FALSE(seen.contains({now.first, now.second})) << now.first;
  }
}

// Of weights in 8 bits whose attention has 16 the switch is the job that says nothing of attention; where the job says what is usual, or
// nothing, there is none.
TEST(EachChoice, has_attention_as_it_usually_is) {
  const auto with = [](const char* precision) {
    std::string text = two_sides;
    const std::string of_decode = "compute: bf16, weights: bf16, kv: fp8";
    text.replace(text.find(of_decode), of_decode.size(), precision);
    return text;
  };
  const auto effects = effects_of(with("compute: fp8, weights: fp8, kv: fp8, attention: bf16"));
  const std::string usual = with("compute: fp8, weights: fp8, kv: fp8");
  EXPECT_EQ(effect(effects, "decode.precision.attention", "fp8").simulated->tpot.mean_s, result_with(usual, "", "").tpot.mean_s);
  for (const std::string& text : {usual, with("compute: fp8, weights: fp8, kv: fp8, attention: fp8")}) {
    for (const ServingEffect& one : effects_of(text)) EXPECT_NE(one.key, "decode.precision.attention");
  }
}

// The two sides on the same GPUs, whichever way they are cut.
TEST(EachChoice, keeps_the_gpus) {
  const auto apart = effects_of(two_sides);
  for (const char* as : {"4 instances as prefill", "4 instances as decode"}) {
    ASSERT_TRUE(effect(apart, "together", as).simulated);
    EXPECT_EQ(effect(apart, "together", as).simulated->pools.front().gpus, 8);
  }
  std::string text = small_job;
  text.replace(text.find("instances: 1"), 12, "instances: 4");
  const auto together = effects_of(text);
  for (const char* cut : {"1 prefill, 3 decode", "2 prefill, 2 decode", "3 prefill, 1 decode"}) {
    const ServingEffect& one = effect(together, "apart", cut);
    ASSERT_TRUE(one.simulated);
    EXPECT_EQ(one.simulated->pools[0].gpus + one.simulated->pools[1].gpus, 4);
  }
}

TEST(EachChoice, that_cannot_be_says_why) {
  std::string text = two_sides;
  text.replace(text.find("instances: 2, parallel: {tp: 2}"), 31, "instances: 2, parallel: {tp: 32}");
  const auto effects = effects_of(text);
  const ServingEffect& one = effect(effects, "prefill.parallel.tp", "64 (1 instances)");
  EXPECT_FALSE(one.simulated);
  EXPECT_NE(one.refused.find("32 attention heads cannot be divided evenly over tp 64"), std::string::npos) << one.refused;
}

std::vector<ServingEffect> methods_of(const std::string& text, const std::string& list) {
  const Node document = Node::load_text(text, "job.yaml");
  return sim::serving_methods(document, sim::read_serving_job(document, "job"), list, [](double) {});
}

// What somebody writes who knows no methods: the job itself, and another job with one pool.
TEST(ApartOrTogether, is_two_jobs_on_the_same_gpus) {
  const auto methods = methods_of(two_sides, "apart,together");
  ASSERT_EQ(methods.size(), 3U);
  EXPECT_EQ(methods[0].key, "apart");
  EXPECT_EQ(methods[0].simulated->ttft.mean_s, result_with(two_sides, "", "").ttft.mean_s);
  std::string one_pool = two_sides;
  const std::size_t begin = one_pool.find("    prefill:"), end = one_pool.find("  load:");
  one_pool.replace(begin, end - begin,
                   "    both: {role: both, instances: 4, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: fp8}}\n");
  const sim::ServingResult expected = result_with(one_pool, "", "");
  EXPECT_EQ(methods[2].key, "together");
  EXPECT_EQ(methods[2].value, "4 instances as decode");
  EXPECT_EQ(methods[2].simulated->ttft.mean_s, expected.ttft.mean_s);
  EXPECT_EQ(methods[2].simulated->e2e.mean_s, expected.e2e.mean_s);
  for (const ServingEffect& method : methods) EXPECT_EQ(method.simulated->gpus(), 8);
}

// The rate that keeps the promise does so, and one that is 2 % higher does not: goodput is found to 1 %.
TEST(ApartOrTogether, says_the_highest_rate_of_each) {
  for (const ServingEffect& method : methods_of(two_sides, "together,apart")) {
    if (method.key != "apart") continue;
    Node document = Node::load_text(two_sides, "job.yaml");
    for (const auto& [times, kept] : {std::pair(1.0, true), std::pair(1.02, false)}) {
      document.set("serving.load.arrivals.poisson", std::to_string(method.simulated->goodput_per_s * times) + " /s");
      const sim::ServingJob job = sim::read_serving_job(document, "job");
      const sim::Deployment deployment = sim::deploy(job);
      const sim::ServingSetup setup = sim::setup_of(job, deployment);
      EXPECT_EQ(sim::result_of(job, setup, simulate_serving(setup)).kept, kept);
    }
  }
}

// Two kinds of GPUs make no one pool: every instance serves both, where it stands.
// What routers look for in caches of a side is asked of nobody where that side is gone.
TEST(ApartOrTogether, leaves_a_router_of_caches_without_its_side) {
  const auto job = [](const std::string& pools) {
    return sim::read_serving_job(
        config::Node::load_text(
            "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {" + pools +
                "}\n  router: {prefill: prefix, decode: prefix}\n  load: {arrivals: {trace: mooncake-conversation-prefixes}}\n",
            "job.yaml"),
        "job");
  };
  EXPECT_NO_THROW(job("all: {role: both, parallel: {tp: 8}, prefix_cache: true}"));
  EXPECT_THROW(job("p: {role: prefill, parallel: {tp: 8}, prefix_cache: true}, d: {role: decode, parallel: {tp: 8}}"), config::InputError);
}

TEST(ApartOrTogether, keeps_two_kinds_of_gpus_as_they_are) {
  std::string text = two_sides;
  text.replace(text.find("dgx-h100-ndr400"), 15,
               "{parts: {rich: {cluster: dgx-h100-ndr400, nodes: 1}, wide: {cluster: h20-roce-4x400, nodes: 1}}, between: {bandwidth: 1.6 "
               "Tbps, latency: 8 us}}");
  text.replace(text.find("role: prefill,"), 14, "role: prefill, part: rich,");
  text.replace(text.find("role: decode,"), 13, "role: decode, part: wide,");
  const auto methods = methods_of(text, "together");
  ASSERT_EQ(methods.size(), 1U);
  ASSERT_TRUE(methods.front().simulated) << methods.front().refused;
  std::string both = text;
  both.replace(both.find("role: prefill"), 13, "role: both");
  both.replace(both.find("role: decode"), 12, "role: both");
  EXPECT_EQ(methods.front().simulated->e2e.mean_s, result_with(both, "", "").e2e.mean_s);
}

TEST(ApartOrTogether, is_refused_where_there_is_no_other_way) {
  const auto refusal = [](const std::string& text, const std::string& list) {
    try {
      static_cast<void>(methods_of(text, list));
    } catch (const config::InputError& error) {
      return std::string(error.what());
    }
    return std::string("fine");
  };
  EXPECT_NE(refusal(two_sides, "apart,alone").find("'alone' is no method"), std::string::npos);
  EXPECT_NE(refusal(two_sides, "apart,apart").find("apart twice"), std::string::npos);
  EXPECT_NE(refusal(two_sides, "apart,").find("'' is no method"), std::string::npos);
  EXPECT_NE(refusal(small_job, "apart").find("divided by hand"), std::string::npos);  // one instance
  EXPECT_EQ(refusal(small_job, "together"), "fine");
  std::string alone = two_sides;
  alone.replace(alone.find("serving:\n"), 9, "serving:\n  isolate: decode\n");
  alone.erase(alone.find("    prefill:"), alone.find("    decode:") - alone.find("    prefill:"));
  EXPECT_NE(refusal(alone, "apart,together").find("a side alone"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::tests

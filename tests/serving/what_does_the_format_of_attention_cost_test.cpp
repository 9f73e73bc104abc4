// Checkpoints that keep attention in another number format than their other layers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/data_dir.hpp"
#include "config/node.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_job.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::tests {
namespace {

struct WithAttention {
  double weights = 0, decode_s = 0, tokens = 0;
};

WithAttention with_attention(const std::string& model, const std::string& precision, const std::string& cluster = "dgx-h100-ndr400") {
  const std::string text = fmt::format(
      "model: {}\ncluster: {}\nsoftware: vllm\nserving:\n  pools: {{all: {{role: both, parallel: {{tp: 2}}, precision: {{{}}}}}}}\n"
      "  load: {{arrivals: {{poisson: 1 /s}}, input: 100, output: 10, requests: 10}}\n",
      model, cluster, precision);
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  const sim::PoolDeployment& pool = deployment.pools.front();
  return {pool.memory.weights, pool.price->decode(1).seconds(100), static_cast<double>(pool.memory.tokens())};
}

// Llama 3 70B on two GPUs: 80 layers, hidden 8192, 64 heads and 8 of keys and values, of 128: 8192 * 128 * (2 * 64 + 2 * 8) numbers of
// attention a layer, one byte more each of half of them; a lone sequence reads them, at most at the GPU's 3.35 TB/s.
TEST(AttentionIn16Bits, of_a_checkpoint_in_8_takes_a_byte_more_each) {
  const WithAttention narrow = with_attention("llama3-70b", "compute: fp8, weights: fp8, kv: fp8"),
                      mixed = with_attention("llama3-70b", "compute: fp8, weights: fp8, kv: fp8, attention: bf16"),
                      wide = with_attention("llama3-70b", "compute: bf16, weights: bf16, kv: fp8");
  const double more = 80 * 8192.0 * 128 * (2 * 64 + 2 * 8) / 2;
  EXPECT_NEAR((mixed.weights - narrow.weights) / more, 1, 1e-3);
  EXPECT_GT(mixed.decode_s - narrow.decode_s, 0.7 * more / 3.35e12);
  EXPECT_LT(mixed.decode_s, wide.decode_s);
  EXPECT_LT(mixed.tokens, narrow.tokens);
}

// The reverse: what is read less is the same; FP4 checkpoints with attention in 8 bits too.
TEST(AttentionIn8Bits, of_a_wider_or_narrower_checkpoint_is_between_them) {
  const auto weights = [](const std::string& formats) {
    return with_attention("llama3-70b", formats + ", kv: fp8", "dgx-b200-ndr400").weights;
  };
  const double bf16 = weights("compute: bf16, weights: bf16"), fp8 = weights("compute: fp8, weights: fp8"),
               fp4 = weights("compute: fp4, weights: fp4");
  EXPECT_NEAR(
      (bf16 - weights("compute: bf16, weights: bf16, attention: fp8")) / (weights("compute: fp8, weights: fp8, attention: bf16") - fp8), 1,
      1e-9);
  EXPECT_GT(weights("compute: fp4, weights: fp4, attention: fp8"), fp4);
  EXPECT_LT(weights("compute: fp4, weights: fp4, attention: fp8"), weights("compute: fp4, weights: fp4, attention: bf16"));
}

// What says of itself that attention is as it would be anyway is the same.
TEST(AttentionsFormat, is_the_others_or_16_bits_in_checkpoints_of_experts_in_4) {
  for (const auto& [formats, said] :
       {std::pair{"compute: fp8, weights: fp8, kv: fp8", "fp8"}, std::pair{"compute: fp4, weights: fp4, kv: fp8", "bf16"}}) {
    const WithAttention alone = with_attention("qwen3-30b-a3b", formats, "dgx-b200-ndr400"),
                        named = with_attention("qwen3-30b-a3b", fmt::format("{}, attention: {}", formats, said), "dgx-b200-ndr400");
    EXPECT_EQ(alone.weights, named.weights);
    EXPECT_EQ(alone.decode_s, named.decode_s);
  }
}

// Qwen3-30B-A3B on two GPUs: 48 layers, each with a router from 2048 numbers to 128 experts, which either GPU has whole. With P numbers of
// layers and ends in 16 bits, bf16 takes 2 (P + routers) of the layers, fp8 P + 2 routers.
TEST(Routers, weigh_16_bits_in_checkpoints_in_8) {
  workloads::InstancePlan plan;
  plan.model = workloads::read_model(config::Node::load_file(config::data_file("workloads/models", "qwen3-30b-a3b")), "qwen3-30b-a3b");
  plan.tp = 2;
  const auto layer_bytes = [&](workloads::DType type) {
    plan.precision = {.compute = type, .weights = type};
    return workloads::pass_operators(plan, {}).layers.front().weight_bytes;
  };
  EXPECT_DOUBLE_EQ(2 * layer_bytes(workloads::DType::fp8) - layer_bytes(workloads::DType::bf16), 2 * 2048.0 * 128);
}

}  // namespace
}  // namespace rehearse::tests

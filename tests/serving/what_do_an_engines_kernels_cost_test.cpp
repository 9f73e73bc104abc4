// What an engine's habits and a cluster's links add to a pass: quantisation by kernels of its own, kernels for experts, rounds of kernels
// that read their peers' memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "config/input_error.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_job.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::tests {
namespace {

using sim::EngineHabits;
using sim::PassCost;
using sim::PassShape;

sim::ServingJob node_of_eight(const std::string& model, const std::string& parallel, const std::string& reads = "",
                              const std::string& gpu = "h100-sxm5-80g", const std::string& format = "fp8", const std::string& more = "") {
  return sim::read_serving_job(
      config::Node::load_text(
          fmt::format("model: {}\n"
                      "cluster: {{gpu: {}, gpus_per_node: 8, nodes: 1, host: {{bandwidth: 63 GB/s, efficiency: 1, latency: 10 us}},\n"
                      "  intra_node: {{kind: nvswitch, bandwidth: 450 GB/s, efficiency: 0.8, latency: 3.3 us{}}}}}\n"
                      "software: vllm\n"
                      "serving:\n"
                      "  pools: {{all: {{role: both, instances: 1, parallel: {}, precision: {{compute: {}, weights: {}, kv: fp8}}{}}}}}\n"
                      "  load: {{arrivals: {{poisson: 1 /s}}, input: 1024, output: 128, requests: 100}}\n",
                      model, gpu, reads, parallel, format, format, more),
          "job.yaml"),
      "job");
}

PassCost parts_of(const sim::ServingJob& job, const EngineHabits& habits, const PassShape& shape) {
  const sim::Pool& pool = job.pools.front();
  const sim::ClusterPart& part = job.parts.front();
  return sim::OperatorPassPrice(pool.plan, part.gpu, part.costs, *pool.software, part.cluster, habits).parts(shape);
}

constexpr PassShape one_decode{.decodes = 1, .context = 1000};
constexpr PassShape prompts{.prompt_tokens = 8192, .prompt_pairs = 4.0 * 2048 * 2049 / 2, .chunks = 4, .finished = 4};

// Queries, keys and values in one product, the projection behind them, two products of the MLP: four of 8 bits in each of 80 layers; the
// head has 16.
TEST(Quantisation, costs_a_kernel_for_every_narrow_product) {
  const sim::ServingJob job = node_of_eight("llama3-70b", "{tp: 8}");
  EngineHabits fused = job.pools.front().habits, apart = fused;
  fused.quantise_s = 0;
  apart.quantise_s = 2e-6;
  EXPECT_NEAR(parts_of(job, apart, one_decode).linear_s - parts_of(job, fused, one_decode).linear_s, 80 * 4 * 2e-6, 1e-12);
}

// H100 has no products in 4 bits: they are computed in 16 from weights of 4, the same four in each of 80 layers. The head's weights have 16
// bits, and are read as those of a model in 16 bits are.
TEST(WidenedWeights, cost_what_their_kernel_takes_for_every_product_but_the_head) {
  const sim::ServingJob narrow = node_of_eight("llama3-70b", "{tp: 8}", "", "h100-sxm5-80g", "fp4");
  const sim::ServingJob wide = node_of_eight("llama3-70b", "{tp: 8}", "", "h100-sxm5-80g", "bf16");
  EngineHabits free = narrow.pools.front().habits, marlin = free;
  free.widen_s = 0;
  marlin.widen_s = 2e-6;
  const PassCost cost = parts_of(narrow, free, one_decode);
  EXPECT_NEAR(parts_of(narrow, marlin, one_decode).linear_s - cost.linear_s, 80 * 4 * 2e-6, 1e-12);
  EXPECT_EQ(parts_of(wide, marlin, one_decode).linear_s, parts_of(wide, free, one_decode).linear_s);
  EXPECT_EQ(cost.head_s, parts_of(wide, free, one_decode).head_s);
  EXPECT_LT(cost.linear_s, parts_of(wide, free, one_decode).linear_s);
}

// V100 has no bf16: attention of a checkpoint with experts in 4 bits is in fp16 there, as all else is computed.
TEST(AttentionBesideExpertsInFourBits, has_the_sixteen_bits_of_the_gpu) {
  const sim::ServingJob job = node_of_eight("mixtral-8x7b", "{tp: 8}", "", "v100-sxm2-32g", "fp4");
  const workloads::ServingPrecision attention = attention_precision(job.pools.front().plan);
  EXPECT_EQ(attention.weights, workloads::DType::fp16);
  EXPECT_EQ(attention.compute, workloads::DType::fp16);
  EXPECT_GT(parts_of(job, job.pools.front().habits, one_decode).linear_s, 0);
}

// Each of 16 query heads a GPU takes 2 (2 * 512 + 64) FLOPs of a token in the cache, in 61 layers; at a hundredth of the peak that takes
// longer than to read 576 numbers, and as much longer at half of that. Other caches are read as before.
TEST(LatentCaches, are_read_at_the_share_of_the_peak_that_their_kernel_reaches) {
  const sim::ServingJob latent = node_of_eight("deepseek-v3", "{tp: 8}"), other = node_of_eight("llama3-70b", "{tp: 8}");
  EngineHabits as_others = latent.pools.front().habits, slow = as_others, slower = as_others;
  slow.latent_share = 0.01;
  slower.latent_share = 0.005;
  const double flops = 61 * one_decode.context * 16 * 2 * (2 * 512 + 64);
  const double peak = latent.parts.front().gpu.peak_flops_per_s.at(workloads::DType::bf16);
  const double slow_s = parts_of(latent, slow, one_decode).attention_s;
  EXPECT_GT(slow_s, parts_of(latent, as_others, one_decode).attention_s);
  EXPECT_NEAR(parts_of(latent, slower, one_decode).attention_s - slow_s, flops / peak * (1 / 0.005 - 1 / 0.01), 1e-12);
  EXPECT_EQ(parts_of(other, slow, one_decode).attention_s, parts_of(other, as_others, one_decode).attention_s);
}

// At half the rate experts that compute take twice as long; what reads weights grows by the little that it computes, since the two add.
TEST(KernelsForExperts, reach_their_share_of_the_rate) {
  const sim::ServingJob job = node_of_eight("mixtral-8x7b", "{tp: 8}");
  EngineHabits all = job.pools.front().habits, half = all;
  all.expert_share.fp8 = 1;
  half.expert_share.fp8 = 0.5;
  const double slower = parts_of(job, half, prompts).experts_s / parts_of(job, all, prompts).experts_s;
  EXPECT_GT(slower, 1.5);
  EXPECT_LE(slower, 2);
  EXPECT_NEAR(parts_of(job, half, one_decode).experts_s, parts_of(job, all, one_decode).experts_s,
              3e-3 * parts_of(job, all, one_decode).experts_s);
  // Tokens dispatched to their experts meet other kernels.
  sim::ServingJob sent = node_of_eight("mixtral-8x7b", "{tp: 1, dp: 8, ep: 8}");
  sent.pools.front().plan.dispatcher = workloads::Dispatcher::alltoall;
  EXPECT_EQ(parts_of(sent, half, prompts).experts_s, parts_of(sent, all, prompts).experts_s);
}

// Experts in one format compute at the share of that format, whatever those of others are.
TEST(KernelsForExperts, reach_a_share_of_their_own_in_each_format) {
  struct Case {
    double sim::ByFormat::*share;
    const char *gpu, *format;
  };
  constexpr double sim::ByFormat::*all[] = {&sim::ByFormat::bf16, &sim::ByFormat::fp8, &sim::ByFormat::fp4, &sim::ByFormat::fp4_in_8,
                                            &sim::ByFormat::fp4_in_16};
  for (const Case& own : {Case{all[0], "h100-sxm5-80g", "bf16"}, Case{all[1], "h100-sxm5-80g", "fp8"}, Case{all[2], "b200-sxm", "fp4"},
                          Case{all[4], "h100-sxm5-80g", "fp4"}}) {
    const sim::ServingJob job = node_of_eight("mixtral-8x7b", "{tp: 8}", "", own.gpu, own.format);
    EngineHabits habits = job.pools.front().habits;
    habits.expert_share = {};
    const double before_s = parts_of(job, habits, prompts).experts_s;
    for (double sim::ByFormat::*const share : all) {
      EngineHabits slower = habits;
      slower.expert_share.*share = 0.1;
      const double times = parts_of(job, slower, prompts).experts_s / before_s;
      if (share == own.share) {
        EXPECT_GT(times, 3) << own.gpu << ' ' << own.format;
      } else {
        EXPECT_EQ(times, 1) << own.gpu << ' ' << own.format;
      }
    }
  }
}

// Products of prompts and what their queries attend to take half of the time at twice the rate, where they are narrow.
TEST(NarrowKernels, have_a_rate_of_their_own) {
  const sim::ServingJob eight = node_of_eight("llama3-70b", "{tp: 8}"),
                        sixteen = node_of_eight("llama3-70b", "{tp: 8}", "", "h100-sxm5-80g", "bf16");
  EngineHabits habits = eight.pools.front().habits, fast = habits;
  fast.narrow_products = fast.narrow_attention = 2;
  const PassCost before = parts_of(eight, habits, prompts), after = parts_of(eight, fast, prompts);
  EXPECT_GT(before.linear_s / after.linear_s, 1.4);
  EXPECT_LE(before.linear_s / after.linear_s, 2);
  EXPECT_GT(before.attention_s / after.attention_s, 1.4);
  EXPECT_LE(before.attention_s / after.attention_s, 2);
  EXPECT_EQ(parts_of(sixteen, habits, prompts).linear_s, parts_of(sixteen, fast, prompts).linear_s);
}

// Weights of 4 bits on that GPU, which take most of a pass of one token, at the rate that the habit says; those of 8 bits as ever.
void expect_weights_of_four_bits_at(double sim::ByFormat::*format, const std::string& gpu) {
  const auto seconds = [format](const sim::ServingJob& job, double times) {
    EngineHabits habits = job.pools.front().habits;
    habits.expert_read.*format = times;
    return parts_of(job, habits, one_decode).experts_s;
  };
  const sim::ServingJob four = node_of_eight("mixtral-8x7b", "{tp: 1}", "", gpu, "fp4"), eight = node_of_eight("mixtral-8x7b", "{tp: 1}");
  EXPECT_NEAR((seconds(four, 1) - seconds(four, 2)) / (seconds(four, 2) - seconds(four, 4)), 2, 0.02);
  EXPECT_EQ(seconds(eight, 1), seconds(eight, 2));
}

TEST(KernelsForExperts, read_weights_of_four_bits_at_their_rate) { expect_weights_of_four_bits_at(&sim::ByFormat::fp4, "b200-sxm"); }

// H100 has no products in 4 bits: their weights are read for products in 16.
TEST(KernelsForExperts, read_weights_of_four_bits_for_sixteen_at_another_rate) {
  expect_weights_of_four_bits_at(&sim::ByFormat::fp4_in_16, "h100-sxm5-80g");
}

// Every expert of a GPU computes a block less a row beside the pairs of a pass, chosen or not: twice the block is twice the time of it, as
// long for 16 experts a GPU as is half of it for 32, and as long for one token as for eight.
TEST(KernelsForExperts, compute_blocks_of_rows_for_all_of_them) {
  const sim::ServingJob eight = node_of_eight("qwen3-30b-a3b", "{tp: 8, ep: 8}"), four = node_of_eight("qwen3-30b-a3b", "{tp: 4, ep: 4}");
  const auto seconds = [](const sim::ServingJob& job, int rows, double tokens = 1) {
    EngineHabits habits = job.pools.front().habits;
    habits.static_rows = rows;
    habits.expert_share.fp8 = 1e-3;  // so that computing is all there is
    return parts_of(job, habits, {.decodes = tokens, .context = 1000}).experts_s;
  };
  const double block_s = seconds(eight, 512) - seconds(eight, 256);
  EXPECT_NEAR(seconds(eight, 1024) - seconds(eight, 512), 2 * block_s, 0.02 * block_s);
  EXPECT_NEAR(seconds(four, 512) - seconds(four, 256), 2 * block_s, 0.02 * block_s);
  EXPECT_NEAR(seconds(eight, 512, 8) - seconds(eight, 256, 8), block_s, 0.02 * block_s);
}

// A number is that of all formats; those that a mapping leaves out are as other products.
TEST(KernelsForExperts, have_a_rate_for_all_formats_or_for_each) {
  const auto read = [](const std::string& share) {
    EngineHabits habits;
    sim::engine_keys().read_at("expert_share", config::Node::load_text(share, "share.yaml"), habits);
    const sim::ByFormat& rates = habits.expert_share;
    return std::array{rates.bf16, rates.fp8, rates.fp4, rates.fp4_in_8, rates.fp4_in_16};
  };
  EXPECT_EQ(read("0.4"), (std::array{0.4, 0.4, 0.4, 0.4, 0.4}));
  EXPECT_EQ(read("{bf16: 0.7, fp4_in_16: 0.6}"), (std::array{0.7, 1.0, 1.0, 1.0, 0.6}));
  EXPECT_THROW(read("{fp16: 0.7}"), config::InputError);
  EXPECT_THROW(read("{fp8: 0}"), config::InputError);
  EXPECT_THROW(read("half"), config::InputError);
}

// Five sequences in a graph of eight: the rows that fill it up go through products alike, and choose experts as the engine has it.
TEST(RowsThatFillAGraph, choose_experts_as_the_engine_says) {
  const sim::ServingJob job = node_of_eight("qwen3-30b-a3b", "{tp: 1}");
  const auto five = [&](sim::FillingRows filling) {
    EngineHabits habits = job.pools.front().habits;
    habits.filling = filling;
    return parts_of(job, habits, {.decodes = 5, .context = 5000});
  };
  const auto without_graphs = [&](double sequences) {
    EngineHabits habits = job.pools.front().habits;
    habits.captured = 0;
    return parts_of(job, habits, {.decodes = sequences, .context = 5000});
  };
  EXPECT_EQ(five(sim::FillingRows::as_tokens).experts_s, without_graphs(8).experts_s);
  EXPECT_EQ(five(sim::FillingRows::alike).experts_s, without_graphs(6).experts_s);
  EXPECT_EQ(five(sim::FillingRows::none).experts_s, without_graphs(5).experts_s);
  EXPECT_EQ(five(sim::FillingRows::none).linear_s, without_graphs(8).linear_s);
}

// 151,936 logits of each of eight rows.
TEST(ASamplerThatSorts, takes_its_time_for_every_logit) {
  const sim::ServingJob job = node_of_eight("qwen3-30b-a3b", "{tp: 1}");
  EngineHabits sorts = job.pools.front().habits, takes = sorts;
  sorts.sort_s = 0.1e-9;
  takes.sort_s = 0;
  const PassShape shape{.decodes = 8, .context = 8000};
  EXPECT_NEAR(parts_of(job, sorts, shape).head_s - parts_of(job, takes, shape).head_s, 8 * 151936 * 0.1e-9, 1e-12);
}

// Of every GPU's part of the padded vocabulary: as long as of a model that has so many words.
TEST(GatheredLogits, are_those_of_the_padded_vocabulary) {
  const auto head_s = [](int words, int multiple) {
    const sim::ServingJob job = node_of_eight(fmt::format("{{like: llama3-8b, vocab: {}}}", words), "{tp: 8}");
    sim::Software software = *job.pools.front().software;
    software.kernels.vocab_multiple = multiple;
    EngineHabits habits = job.pools.front().habits;
    habits.sort_s = 0;
    const sim::ClusterPart& part = job.parts.front();
    return sim::OperatorPassPrice(job.pools.front().plan, part.gpu, part.costs, software, part.cluster, habits).parts(prompts).head_s;
  };
  EXPECT_EQ(head_s(100'000, 16'000), head_s(128'000, 128));
  EXPECT_LT(head_s(100'000, 128), head_s(128'000, 128));
}

// Behind every pass, of decoding in a run as one by one; whether the host works ahead or not.
TEST(KernelsBetweenTwoPasses, are_waited_for) {
  const sim::ServingJob job = node_of_eight("llama3-8b", "{tp: 1}");
  const sim::Pool& pool = job.pools.front();
  const sim::ClusterPart& part = job.parts.front();
  for (const bool ahead : {false, true}) {
    EngineHabits none = pool.habits, some = none;
    none.ahead = some.ahead = ahead;
    some.between_s = 0.7e-3;
    const sim::OperatorPassPrice without(pool.plan, part.gpu, part.costs, *pool.software, part.cluster, none),
        with(pool.plan, part.gpu, part.costs, *pool.software, part.cluster, some);
    EXPECT_NEAR(with.seconds(prompts) - without.seconds(prompts), 0.7e-3, 1e-12);
    EXPECT_NEAR(with.seconds(one_decode) - without.seconds(one_decode), 0.7e-3, 1e-12);
    EXPECT_NEAR(with.decode(1).seconds(1000) - without.decode(1).seconds(1000), 0.7e-3, 1e-12);
  }
}

// A model that proposes tokens takes the likeliest, and hands over to the one that tries them without the host.
TEST(ADraft, neither_sorts_nor_waits_between_its_passes) {
  const auto seconds = [](double sort_s, double between_s) {
    sim::ServingJob job = node_of_eight("llama3-70b", "{tp: 4}", "", "h100-sxm5-80g", "fp8",
                                        ", overflow: reserve, speculative: {tokens: 4, acceptance: 0.8, draft: llama3-8b}");
    job.pools.front().habits.sort_s = sort_s;
    job.pools.front().habits.between_s = between_s;
    return sim::deploy_pool(job, job.pools.front()).price->seconds(one_decode);
  };
  EXPECT_NEAR(seconds(0, 1e-3) - seconds(0, 0), 1e-3, 1e-12);
  EXPECT_NEAR(seconds(1e-9, 0) - seconds(0, 0), 5 * 128256 * 1e-9, 1e-12);  // four tried and the one behind them
}

// With graphs switched off each kernel of a pass is issued; as long as that takes, the GPU's work is nothing.
TEST(PassesWithoutGraphs, are_issued_kernel_by_kernel) {
  sim::ServingJob job = node_of_eight("llama3-8b", "{tp: 1}");
  const auto seconds = [&](bool eager, double issue_s) {
    EngineHabits habits = job.pools.front().habits;
    habits.captured = 0;
    habits.eager = eager;
    habits.eager_issue_s = issue_s;
    return parts_of(job, habits, one_decode).seconds();
  };
  const double slow_s = seconds(true, 1e-3);
  EXPECT_NEAR((seconds(true, 2e-3) - slow_s) / (seconds(true, 4e-3) - slow_s), 1.0 / 3, 1e-9);
  EXPECT_GT(slow_s, 32 * 7 * 1e-3);
  EXPECT_EQ(seconds(false, 1e-3), seconds(false, 2e-3));
  const double twice_s = seconds(true, 2e-3 + job.parts.front().gpu.launch_s);
  job.parts.front().gpu.host_time = 2;  // of the launch and of what the engine takes, once
  EXPECT_NEAR(seconds(true, 1e-3), twice_s, 1e-12);
}

// Of eight key/value heads on a GPU each is a block that reaches a fiftieth: one sequence is read at 8/50 of the rate, seven and more at
// all of it.
TEST(ContextsThatAreNotSplit, are_read_by_as_many_blocks_as_there_are_heads) {
  const sim::ServingJob job = node_of_eight("llama3-8b", "{tp: 1}");
  const auto seconds = [&](double share, int sequences) {
    EngineHabits habits = job.pools.front().habits;
    habits.block_share = share;
    PassShape shape;
    shape.decodes = sequences;
    const double none = parts_of(job, habits, shape).attention_s;
    shape.context = 4096.0 * sequences;
    return parts_of(job, habits, shape).attention_s - none;
  };
  EXPECT_NEAR(seconds(0.02, 1) / seconds(1, 1), 50.0 / 8, 1e-9);
  EXPECT_NEAR(seconds(0.02, 4) / seconds(1, 4), 50.0 / 32, 1e-9);
  EXPECT_EQ(seconds(0.02, 7), seconds(1, 7));
}

// A token takes 8 of 128 experts. Cut into eight, each GPU reads as much as one of them; whole ones, 16 a GPU, are 1 + sqrt(2 * 15/16 * ln
// 8) on the busiest.
TEST(WholeExperts, are_read_by_the_busiest_gpu) {
  const sim::ServingJob cut = node_of_eight("qwen3-30b-a3b", "{tp: 8}"), whole = node_of_eight("qwen3-30b-a3b", "{tp: 8, ep: 8}");
  const EngineHabits& habits = cut.pools.front().habits;
  const double expert_s = 3.0 * 2048 * 768 / (0.86 * 3352e9), more = std::sqrt(2 * 15.0 / 16 * std::log(8));
  EXPECT_NEAR((parts_of(whole, habits, one_decode).experts_s - parts_of(cut, habits, one_decode).experts_s) / (48 * expert_s), more,
              0.03 * more);
}

// Two all-reduces a layer and one behind the embedding, each a round of one-shot for a token.
TEST(AOneShotAllReduce, takes_the_latency_of_reads) {
  const sim::ServingJob known = node_of_eight("llama3-70b", "{tp: 8}", ", read_latency: 1.3 us"),
                        unknown = node_of_eight("llama3-70b", "{tp: 8}");
  const EngineHabits& habits = known.pools.front().habits;
  const double saved = parts_of(unknown, habits, one_decode).communication_s - parts_of(known, habits, one_decode).communication_s;
  EXPECT_NEAR(saved, (2 * 80 + 1) * 2e-6, 1e-12);
}

// A token's 16 KB by the engine's own kernels, 8,192 tokens' 134 MB by the library, where the limit lies between.
TEST(AllReducesOfAnEngine, go_by_the_library_above_their_limit) {
  const sim::ServingJob job = node_of_eight("llama3-70b", "{tp: 8}");
  const auto seconds = [&](double limit, const PassShape& shape) {
    EngineHabits habits = job.pools.front().habits;
    habits.own_call_bytes = limit;
    return parts_of(job, habits, shape).communication_s;
  };
  EXPECT_EQ(seconds(1e6, one_decode), seconds(1e12, one_decode));
  EXPECT_LT(seconds(1e6, one_decode), seconds(0, one_decode));
  EXPECT_EQ(seconds(1e6, prompts), seconds(0, prompts));
  EXPECT_LE(seconds(1e12, prompts), seconds(1e6, prompts));
}

// Attention replicas run in step: one prompt over eight of them is one replica's work, and eight prompts are as many replicas'. Experts
// get the tokens of all.
TEST(AttentionReplicas, wait_for_the_busiest) {
  const sim::ServingJob job = node_of_eight("qwen3-30b-a3b", "{tp: 1, dp: 8, ep: 8}");
  const EngineHabits& habits = job.pools.front().habits;
  const auto of_prompts = [&](double number) {
    return parts_of(job, habits,
                    {.prompt_tokens = number * 2048, .prompt_pairs = number * 2048 * 2049 / 2, .chunks = number, .finished = number});
  };
  const PassCost one = of_prompts(1), eight = of_prompts(8), nine = of_prompts(9), sixteen = of_prompts(16);
  EXPECT_DOUBLE_EQ(one.linear_s, eight.linear_s);
  EXPECT_DOUBLE_EQ(one.attention_s, eight.attention_s);
  EXPECT_DOUBLE_EQ(nine.linear_s, sixteen.linear_s);
  EXPECT_LT(one.experts_s, eight.experts_s);
  EXPECT_LT(nine.experts_s, sixteen.experts_s);
}

}  // namespace
}  // namespace rehearse::tests

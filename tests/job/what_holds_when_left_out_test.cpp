#include <gtest/gtest.h>

#include "tests/job/sandbox.hpp"

namespace rehearse::sim {
namespace {

using workloads::DType;

class WhatHoldsWhenLeftOut : public testing::Test {
 protected:
  void SetUp() override { enter_sandbox(); }
};

TEST_F(WhatHoldsWhenLeftOut, the_defaults_of_the_format) {
  const Job job = read_text(small_job());
  const workloads::Workload& workload = job.workload;
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(workload.parallel.tp * workload.parallel.cp * workload.parallel.pp * workload.parallel.vpp * workload.parallel.ep, 1);
  EXPECT_FALSE(workload.parallel.sp);
  EXPECT_EQ(workload.parallel.order, (std::vector<std::string>{"tp", "cp", "ep", "dp", "pp"}));
  EXPECT_EQ(workload.schedule, "1f1b");
  EXPECT_EQ(workload.attention, workloads::Attention::flash);
  EXPECT_EQ(workload.recompute.kind, workloads::RecomputeKind::none);
  EXPECT_EQ(workload.optimizer.zero_stage, 0);
  EXPECT_TRUE(workload.overlap.cp && workload.overlap.pp);
  EXPECT_FALSE(workload.overlap.dp_gradients || workload.overlap.dp_parameters);
  EXPECT_EQ(job.system.software.name, "megatron-core");
  EXPECT_EQ(job.system.simulation.granularity, Granularity::layer);
  EXPECT_EQ(job.system.simulation.collectives, Fidelity::ring);
  EXPECT_FALSE(job.system.simulation.all_ranks);
  EXPECT_EQ(job.system.simulation.seed, 1U);
}

TEST_F(WhatHoldsWhenLeftOut, dp_is_what_remains) {
  EXPECT_EQ(read_text(small_job()).workload.parallel.dp, 16);
  EXPECT_EQ(read_text(small_job("parallel: {tp: 4, pp: 2}\n")).workload.parallel.dp, 2);            // 16 / (4*2)
  EXPECT_EQ(read_text(small_job("parallel: {tp: 2, cp: 2}\n")).workload.optimizer.shard_group, 8);  // dp*cp = 4*2
  EXPECT_EQ(read_text(small_job("parallel: {tp: 4}\n")).workload.parallel.etp, 4);
}

TEST_F(WhatHoldsWhenLeftOut, all_gpus_of_the_cluster) {
  const std::string rest = "model: tiny\nbatch: {global: 64, micro: 1, sequence: 2048}\n";
  EXPECT_EQ(read_text(rest + "cluster: pod\n").system.gpus, 64);  // 8 nodes of 8
  const Job grown = read_text(rest + "cluster: endless\nparallel: {tp: 2, dp: 32}\n");
  EXPECT_EQ(grown.system.gpus, 64);  // 2*32: an unlimited cluster has what the layout needs
  EXPECT_EQ(read_text(rest + "cluster: pod\nparallel: {tp: 2, dp: 8}\n").system.gpus, 16);  // and so has one with nodes to spare
}

TEST_F(WhatHoldsWhenLeftOut, the_schedule_follows_the_chunks) {
  EXPECT_EQ(read_text(small_job("parallel: {pp: 2, vpp: 2}\n")).workload.schedule, "interleaved-1f1b");
}

struct PrecisionCase {
  const char* text;
  DType compute, weights, gradients, optimizer;
};

TEST_F(WhatHoldsWhenLeftOut, one_word_for_the_precision) {
  constexpr PrecisionCase cases[] = {
      {"bf16", DType::bf16, DType::bf16, DType::fp32, DType::fp32},
      {"fp16", DType::fp16, DType::fp16, DType::fp32, DType::fp32},
      {"{compute: fp16, gradients: bf16}", DType::fp16, DType::bf16, DType::bf16, DType::fp32},
  };
  for (const PrecisionCase& expected : cases) {
    const workloads::Precision precision = read_text(small_job(std::string("precision: ") + expected.text + "\n")).workload.precision;
    EXPECT_EQ(precision.compute, expected.compute) << expected.text;
    EXPECT_EQ(precision.weights, expected.weights) << expected.text;
    EXPECT_EQ(precision.gradients, expected.gradients) << expected.text;
    EXPECT_EQ(precision.optimizer, expected.optimizer) << expected.text;
  }
}

TEST_F(WhatHoldsWhenLeftOut, narrow_formats_are_for_products_only) {
  use_ready_made_files();
  const workloads::Precision precision = load_job({"llama3-8b-8-h100", {{"precision", "fp8"}}, {}}).workload.precision;
  EXPECT_EQ(precision.compute, DType::fp8);
  EXPECT_EQ(precision.weights, DType::bf16);
  EXPECT_EQ(precision.gradients, DType::fp32);
  EXPECT_EQ(precision.optimizer, DType::fp32);
}

// DeepSpeed's ZeRO adds gradients up in the weights' type; a job may say otherwise (data_types.grad_accum_dtype).
TEST_F(WhatHoldsWhenLeftOut, the_stack_says_what_gradients_are_added_up_in) {
  use_ready_made_files();
  const auto gradients = [](const Settings& settings) { return load_job({"llama3-8b-8-h100", settings, {}}).workload.precision.gradients; };
  EXPECT_EQ(gradients({{"software", "deepspeed"}}), DType::bf16);
  EXPECT_EQ(gradients({{"software", "deepspeed"}, {"precision", "bf16"}}), DType::bf16);
  EXPECT_EQ(gradients({{"precision", "fp16"}, {"software", "deepspeed"}}), DType::fp16);
  EXPECT_EQ(gradients({{"software", "deepspeed"}, {"precision", "{compute: bf16, weights: fp32}"}}), DType::fp32);
  EXPECT_EQ(gradients({{"software", "deepspeed"}, {"precision", "{compute: bf16, gradients: fp32}"}}), DType::fp32);
  EXPECT_EQ(gradients({{"software", "transformers"}}), DType::fp32);
  EXPECT_EQ(gradients({{"software", "megatron-deepspeed-2022"}, {"precision", "fp16"}}), DType::fp16);
}

// Also where the stack or the precision of a job that was read is switched: explain, the APIs.
TEST_F(WhatHoldsWhenLeftOut, a_switched_stack_says_it_too) {
  use_ready_made_files();
  const Job job = load_job({"llama3-8b-8-h100", {}, {}});
  const Job deepspeed = with_settings(job, {{"software", "deepspeed"}});
  EXPECT_EQ(deepspeed.workload.precision.gradients, DType::bf16);
  EXPECT_EQ(with_settings(deepspeed, {{"precision", "fp16"}}).workload.precision.gradients, DType::fp16);
  EXPECT_EQ(with_settings(deepspeed, {{"software", "torchtitan"}}).workload.precision.gradients, DType::fp32);
}

// torchao scales whole tensors by their own values; Transformer Engine by those of steps before.
TEST_F(WhatHoldsWhenLeftOut, the_stack_says_how_products_in_8_bits_are_scaled) {
  use_ready_made_files();
  using workloads::Scaling;
  const auto recipe = [](const Settings& settings) {
    const Job job = load_job({"llama3-8b-8-h100", settings, {}});
    const Job again = read_text(job.resolved.to_yaml());
    EXPECT_EQ(again.workload.precision.recipe, job.workload.precision.recipe);
    return job.workload.precision.recipe;
  };
  EXPECT_EQ(recipe({{"software", "torchtitan"}, {"precision", "fp8"}}), Scaling::tensorwise);
  EXPECT_EQ(recipe({{"precision", "{compute: fp8}"}, {"software", "pytorch-compile"}}), Scaling::tensorwise);
  EXPECT_EQ(recipe({{"software", "torchtitan"}, {"precision", "{compute: fp8, recipe: delayed}"}}), Scaling::delayed);
  EXPECT_EQ(recipe({{"software", "torchtitan"}, {"precision", "bf16"}}), Scaling::delayed);
  EXPECT_EQ(recipe({{"software", "llm-foundry"}, {"precision", "fp8"}}), Scaling::delayed);
  EXPECT_EQ(recipe({{"software", "megatron-core"}, {"precision", "fp8"}}), Scaling::delayed);
  EXPECT_EQ(recipe({{"software", "{like: megatron-core, fp8_recipe: mxfp8}"}, {"precision", "fp8"}}), Scaling::mxfp8);
}

// Transformer Engine's NVFP4 on NVIDIA's GPUs; AMD's products in 4 bits have no scale of the tensor.
TEST_F(WhatHoldsWhenLeftOut, the_gpu_says_how_products_in_4_bits_are_scaled) {
  use_ready_made_files();
  const auto precision = [](const char* cluster, const char* types) {
    const Job job = load_job({"llama3-8b-8-h100", {{"cluster", cluster}, {"precision", types}}, {}});
    const workloads::Precision again = read_text(job.resolved.to_yaml()).workload.precision;
    EXPECT_EQ(again.recipe, job.workload.precision.recipe);
    EXPECT_EQ(again.bf16_at_start, job.workload.precision.bf16_at_start);
    EXPECT_EQ(again.bf16_at_end, job.workload.precision.bf16_at_end);
    return again;
  };
  using workloads::Scaling;
  EXPECT_EQ(precision("hgx-b200", "fp4").recipe, Scaling::nvfp4);
  EXPECT_EQ(precision("hgx-b200", "{compute: fp4, recipe: blockwise, bf16_at_start: 1}").recipe, Scaling::blockwise);
  EXPECT_EQ(precision("mi355x-8", "fp4").recipe, Scaling::delayed);
  EXPECT_EQ(precision("hgx-b200", "{compute: fp8, bf16_at_start: 1, bf16_at_end: 2}").bf16_at_end, 2);
  const Job deep = load_job({"llama3-8b-8-h100", {{"model.layers", "300"}, {"precision", "{compute: fp8, bf16_at_start: 260}"}}, {}});
  EXPECT_EQ(deep.workload.precision.bf16_at_start, 260) << "as many as a model has layers";
}

// Blackwell's products read 8 bits in either order, which counts where a stack casts weights once a step.
TEST_F(WhatHoldsWhenLeftOut, the_gpu_says_whether_casts_make_transposed_copies) {
  use_ready_made_files();
  const auto any_order = [](const char* cluster, const char* software) {
    return load_job({"llama3-8b-8-h100", {{"cluster", cluster}, {"precision", "fp8"}, {"software", software}}, {}})
        .workload.fusions.any_order;
  };
  EXPECT_TRUE(any_order("hgx-b200", "megatron-core"));
  EXPECT_FALSE(any_order("hgx-b200", "torchtitan"));
  EXPECT_FALSE(any_order("dgx-h100-ndr400", "megatron-core"));
}

TEST_F(WhatHoldsWhenLeftOut, overrides_come_last) {
  const Job job = load_job({"small", {{"parallel.tp", "4"}, {"parallel.dp", "2"}, {"simulation.seed", "5"}}, 9});
  EXPECT_EQ(job.name, "small");
  EXPECT_EQ(job.workload.parallel.tp, 4);
  EXPECT_EQ(job.workload.parallel.dp, 2);
  EXPECT_EQ(job.system.simulation.seed, 9U);
}

TEST_F(WhatHoldsWhenLeftOut, biases_and_norms_follow_the_activation) {
  const auto model = [](const std::string& activation, const std::string& more = "") {
    const std::string text = "{layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 100, activation: " + activation + more + "}";
    return workloads::read_model(config::Node::load_text(text, "m"), "m");
  };
  EXPECT_EQ(model("gelu").dropout, 0.1);
  EXPECT_EQ(model("gelu", ", dropout: 0").dropout, 0);
  EXPECT_EQ(model("swiglu").dropout, 0);
  EXPECT_TRUE(model("gelu").biases);
  EXPECT_EQ(model("gelu").norm, workloads::Norm::layernorm);
  EXPECT_FALSE(model("swiglu").biases);
  EXPECT_EQ(model("swiglu").norm, workloads::Norm::rmsnorm);
  EXPECT_FALSE(model("gelu", ", biases: false").biases);
  EXPECT_EQ(model("relu2", ", norm: layernorm").norm, workloads::Norm::layernorm);
  EXPECT_EQ(model("gelu").kv_heads, 4);
  EXPECT_EQ(model("gelu").head_dim, 16);  // 64 / 4
  EXPECT_EQ(model("gelu", ", head_dim: 32").head_dim, 32);
}

TEST_F(WhatHoldsWhenLeftOut, blocks_without_attention_or_ends) {
  const auto model = workloads::read_model(
      config::Node::load_text("{layers: 1, hidden: 4096, heads: 0, kv_heads: 0, ffn: 14336, activation: swiglu, vocab: 0}", "m"), "m");
  EXPECT_EQ(model.heads, 0);
  EXPECT_EQ(model.kv_heads, 0);
  EXPECT_EQ(model.vocab, 0);
}

}  // namespace
}  // namespace rehearse::sim

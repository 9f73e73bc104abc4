// published/huggingface.yaml: configurations of released models and the parameters in their weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "config/node.hpp"
#include "places.hpp"
#include "workloads/huggingface.hpp"

namespace rehearse::workloads {
namespace {

std::vector<config::Node> rows() {
  return config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/workloads/published/huggingface.yaml").items();
}

TEST(HuggingfaceModels, AreAsLargeAsPublished) {
  int models = 0;
  for (const config::Node& row : rows()) {
    const std::string name = row.at("name").as_string();
    const Model model = read_huggingface_config(row.at("config"), name).model;
    const auto positions = row.find("positions");
    const double counted = count_parameters(model, positions ? static_cast<int>(positions->as_int(1, 1'000'000)) : 2048).total;
    EXPECT_LE(std::abs(counted / row.at("parameters").as_number(1, 1e13) - 1), 1e-3) << name << ": " << counted;
    ++models;
  }
  EXPECT_GE(models, 40);
}

Model model(const std::string& name) {
  for (const config::Node& row : rows()) {
    if (row.at("name").as_string() == name) return read_huggingface_config(row.at("config"), name).model;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(HuggingfaceModels, HaveTheirWindows) {
  const Model gemma = model("gemma-3-1b"), oss = model("gpt-oss-20b"), mistral = model("Mistral-7B-v0.1");
  EXPECT_EQ(gemma.window->tokens, 512);
  EXPECT_EQ(gemma.window->full_every, 6);
  EXPECT_TRUE(oss.windowed(0));
  EXPECT_FALSE(oss.windowed(1));
  EXPECT_TRUE(mistral.windowed(mistral.layers - 1));
  EXPECT_FALSE(model("Qwen2.5-0.5B").window);  // switched off
  EXPECT_FALSE(model("Mistral-Nemo-12B").window);
}

TEST(HuggingfaceModels, HaveTheirBiasesAndNorms) {
  EXPECT_EQ(model("Qwen2.5-7B").attention_biases, AttentionBiases::qkv);
  EXPECT_FALSE(model("Qwen2.5-7B").biases);
  EXPECT_TRUE(model("gpt-oss-20b").projection_bias());
  EXPECT_EQ(model("Seed-OSS-36B").attention_biases, AttentionBiases::qkv);
  EXPECT_TRUE(model("Qwen3-8B").qk_norm);
  EXPECT_TRUE(model("gemma-2-9b").post_norms);
  EXPECT_EQ(model("Qwen1.5-MoE-A2.7B").moe->shared, 4);  // 5,632 wide, of experts of 1,408
}

TEST(HuggingfaceModels, HaveAttentionBesideTheirMlps) {
  EXPECT_EQ(model("gpt-neox-20b").parallel_residual, ParallelResidual::two_norms);
  EXPECT_EQ(model("gpt-j-6b").parallel_residual, ParallelResidual::one_norm);
  EXPECT_FALSE(model("gpt-j-6b").projection_bias());
  EXPECT_EQ(model("command-r-v01").parallel_residual, ParallelResidual::one_norm);
  EXPECT_EQ(model("stablelm-2-1_6b").parallel_residual, ParallelResidual::none);  // which does not switch it on
  EXPECT_EQ(model("Llama-3.1-8B").parallel_residual, ParallelResidual::none);
}

TEST(HuggingfaceModels, SayWhetherAttentionStandsBesideTheMlp) {
  const auto how = [](const std::string& architecture, const std::string& fields) {
    const std::string text = "{architectures: [" + architecture + "], hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 2, " +
                             fields + "intermediate_size: 256, vocab_size: 1000}";
    return read_huggingface_config(config::Node::load_text(text, "config.json"), "m").model.parallel_residual;
  };
  EXPECT_EQ(how("GPTNeoXForCausalLM", "use_parallel_residual: false, "), ParallelResidual::none);
  EXPECT_EQ(how("StableLmForCausalLM", "use_parallel_residual: true, "), ParallelResidual::one_norm);
  EXPECT_EQ(how("PhiForCausalLM", "hidden_act: gelu_new, "), ParallelResidual::one_norm);
  // Falcon 7B; 40B and 180B; 11B; RefinedWeb's models with ALiBi.
  EXPECT_EQ(how("FalconForCausalLM", ""), ParallelResidual::one_norm);
  EXPECT_EQ(how("FalconForCausalLM", "new_decoder_architecture: true, "), ParallelResidual::two_norms);
  EXPECT_EQ(how("FalconForCausalLM", "new_decoder_architecture: true, num_ln_in_parallel_attn: 1, "), ParallelResidual::one_norm);
  EXPECT_EQ(how("FalconForCausalLM", "alibi: true, parallel_attn: false, "), ParallelResidual::none);
}

TEST(HuggingfaceModels, DenseLayersAreWhereTheFieldsSay) {
  const auto moe = [](const std::string& fields) {
    const std::string text =
        "{architectures: [Qwen3MoeForCausalLM], hidden_act: silu, hidden_size: 64, intermediate_size: 256, num_attention_heads: 4, "
        "num_hidden_layers: 12, vocab_size: 1000, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 64, " +
        fields + "}";
    return *read_huggingface_config(config::Node::load_text(text, "config.json"), "m").model.moe;
  };
  EXPECT_FALSE(moe("decoder_sparse_step: 2").has_experts(0));  // (layer + 1) % step == 0
  EXPECT_TRUE(moe("decoder_sparse_step: 2").has_experts(1));
  EXPECT_EQ(moe("mlp_only_layers: [0, 1, 2]").first_dense, 3);
  EXPECT_EQ(moe("moe_layer_freq: [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]").first_dense, 1);
}

// What a model's file says of serving alone is told to whoever reads it.
TEST(HuggingfaceModels, StatesInFp32AreForServing) {
  const auto read = [](const std::string& type) {
    return read_huggingface_config(
        config::Node::load_text(
            "{architectures: [NemotronHForCausalLM], mlp_hidden_act: relu2, hidden_size: 64, intermediate_size: 256, num_attention_heads: "
            "4, "
            "num_hidden_layers: 3, hybrid_override_pattern: M*-, mamba_num_heads: 8, mamba_head_dim: 16, n_groups: 2, ssm_state_size: 16, "
            "vocab_size: 1000, mamba_ssm_cache_dtype: " +
                type + "}",
            "config.json"),
        "m");
  };
  const auto said = [](const HuggingfaceModel& model) {
    return std::ranges::count_if(model.inferred, [](const std::string& line) { return line.find("precision.state") != std::string::npos; });
  };
  EXPECT_EQ(said(read("float32")), 1);
  EXPECT_EQ(said(read("bfloat16")), 0);
  EXPECT_EQ(std::ranges::count(read("float32").unread, "mamba_ssm_cache_dtype"), 0);
}

// Of a pattern of one layer the last is every one, which attends to the whole sequence.
TEST(HuggingfaceModels, WindowsOfNoLayerAreNone) {
  const auto windows = [](const std::string& pattern) {
    return read_huggingface_config(
               config::Node::load_text(
                   "{architectures: [Gemma3ForCausalLM], model_type: gemma3_text, hidden_size: 64, intermediate_size: 256, "
                   "num_attention_heads: 4, num_key_value_heads: 4, head_dim: 16, num_hidden_layers: 6, vocab_size: 1000, sliding_window: "
                   "8, sliding_window_pattern: " +
                       pattern + "}",
                   "config.json"),
               "m")
        .model.window.has_value();
  };
  EXPECT_TRUE(windows("2"));
  EXPECT_FALSE(windows("1"));
}

TEST(HuggingfaceModels, TheTextPartStandsForItself) {
  const HuggingfaceModel gemma = read_huggingface_config(
      config::Node::load_text(
          "{architectures: [Gemma3ForConditionalGeneration], vision_config: {}, text_config: {model_type: gemma3_text, hidden_size: 2560, "
          "intermediate_size: 10240, num_attention_heads: 8, num_key_value_heads: 4, head_dim: 256, num_hidden_layers: 34, sliding_window: "
          "1024, "
          "vocab_size: 262208}}",
          "config.json"),
      "gemma-3-4b");
  EXPECT_EQ(gemma.model.layers, 34);
  // Gemma 3 4B as released has 4,300,079,472, of which its vision tower 416,866,032 and the projector 2,950,272.
  EXPECT_EQ(count_parameters(gemma.model).total, 4'300'079'472 - 416'866'032 - 2'950'272);
  ASSERT_EQ(gemma.inferred.size(), 1U);
}

}  // namespace
}  // namespace rehearse::workloads

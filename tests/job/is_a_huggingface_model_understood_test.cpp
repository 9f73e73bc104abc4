// Configurations as published beside the weights, shortened to what matters (and some of what does not).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "places.hpp"
#include "tests/config/refusal.hpp"
#include "tests/job/sandbox.hpp"

namespace rehearse::workloads {
namespace {

class IsAHuggingfaceModelUnderstood : public testing::Test {
 protected:
  void SetUp() override { sim::enter_sandbox(); }
};

Model imported(const std::string& file) {
  return read_model(config::Node::load_text("hf: huggingface/" + file + ".json\n", "job.yaml"), "");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::vector<int> shape(const Model& model) {
  return {model.layers, model.hidden, model.heads, model.kv_heads, model.head_dim, model.ffn, model.vocab};
}

TEST_F(IsAHuggingfaceModelUnderstood, llama_is_the_ready_made_llama3_8b) {
  const Model model = imported("llama");
  const Model ready =
      read_model(config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/workloads/models/llama3-8b.yaml"), "llama3-8b");
  EXPECT_EQ(shape(model), shape(ready));
  EXPECT_EQ(model.activation, ready.activation);
  EXPECT_EQ(model.norm, ready.norm);
  EXPECT_EQ(model.positions, ready.positions);
  EXPECT_EQ(model.biases, ready.biases);
  EXPECT_EQ(model.tied_embeddings, ready.tied_embeddings);
  EXPECT_EQ(model.name, "llama");  // the file
}

TEST_F(IsAHuggingfaceModelUnderstood, gpt2_has_names_of_its_own) {
  const Model model = imported("gpt2");
  EXPECT_EQ(shape(model), (std::vector<int>{12, 768, 12, 12, 64, 3072, 50257}));  // n_inner defaults to 4 x 768
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(model.positions, Positions::learned);
  EXPECT_EQ(model.norm, Norm::layernorm);
  EXPECT_TRUE(model.biases);
  EXPECT_TRUE(model.tied_embeddings);
}

TEST_F(IsAHuggingfaceModelUnderstood, gpt_neox) {
  const Model model = imported("gpt-neox");
  EXPECT_EQ(shape(model), (std::vector<int>{44, 6144, 64, 64, 96, 24576, 50432}));
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(model.positions, Positions::rope);
  EXPECT_TRUE(model.biases);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_EQ(model.parallel_residual, ParallelResidual::two_norms);
}

TEST_F(IsAHuggingfaceModelUnderstood, gemma_widens_its_heads_and_ties_by_default) {
  const Model model = imported("gemma");
  EXPECT_EQ(shape(model), (std::vector<int>{28, 3072, 16, 16, 256, 24576, 256000}));
  EXPECT_EQ(model.activation, Activation::geglu);
  EXPECT_TRUE(model.tied_embeddings);
}

TEST_F(IsAHuggingfaceModelUnderstood, mistral_and_qwen) {
  EXPECT_EQ(shape(imported("mistral")), (std::vector<int>{32, 4096, 32, 8, 128, 14336, 32000}));
  EXPECT_EQ(shape(imported("qwen2")), (std::vector<int>{24, 896, 14, 2, 64, 4864, 151936}));
  EXPECT_EQ(shape(imported("qwen3")), (std::vector<int>{28, 1024, 16, 8, 128, 3072, 151936}));
  EXPECT_TRUE(imported("qwen2").tied_embeddings);
}

TEST_F(IsAHuggingfaceModelUnderstood, mixtures_of_experts) {
  const Model mixtral = imported("mixtral");
  ASSERT_TRUE(mixtral.moe);
  EXPECT_EQ(mixtral.moe->experts, 8);
  EXPECT_EQ(mixtral.moe->top_k, 2);
  EXPECT_EQ(mixtral.moe->ffn, 14336);
  const Model qwen = imported("qwen3-moe");
  ASSERT_TRUE(qwen.moe);
  EXPECT_EQ(qwen.moe->experts, 128);
  EXPECT_EQ(qwen.moe->ffn, 1536);
}

TEST_F(IsAHuggingfaceModelUnderstood, deepseek_v3) {
  const Model model = imported("deepseek-v3");
  ASSERT_TRUE(model.moe && model.mla);
  EXPECT_EQ(model.moe->experts, 256);
  EXPECT_EQ(model.moe->shared, 1);
  EXPECT_EQ(model.moe->first_dense, 3);
  EXPECT_EQ(model.mla->q_lora, 1536);
  EXPECT_EQ(model.mla->kv_lora, 512);
  EXPECT_EQ(model.mla->qk_rope, 64);
  EXPECT_EQ(model.mtp, 1);
}

TEST_F(IsAHuggingfaceModelUnderstood, what_is_not_understood_is_refused) {
  const auto refusal = [](const std::string& file) { return config::refusal_of([&] { return imported(file); }); };
  const std::string unknown = refusal("unknown-architecture");
  EXPECT_EQ(unknown.substr(0, unknown.find("known: ")),
            "huggingface/unknown-architecture.json:1:20: error: unknown architecture 'LlamaForCausalML'\n"
            "    1 | {\"architectures\": [\"LlamaForCausalML\"], \"hidden_size\": 4096}\n      |                    ^\n"
            "  did you mean 'LlamaForCausalLM'? ");
  EXPECT_EQ(first_line(refusal("missing-field")), "huggingface/missing-field.json:1:1: error: missing key 'hidden_size'");
  EXPECT_EQ(first_line(refusal("wrong-activation")),
            "huggingface/wrong-activation.json:1:55: error: hidden_act 'relu2' is not known for this architecture");
}

// config.json with one field of Mixtral's replaced.
std::string mixtral_with(const std::string& field, const std::string& value, const std::string& file = "config.json") {
  std::ostringstream text;
  text << std::ifstream("huggingface/mixtral.json").rdbuf();
  nlohmann::json json = nlohmann::json::parse(text.str());
  json[field] = nlohmann::json::parse(value);
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / fmt::format("rehearse-hf-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / file) << json;
  return (folder / file).string();
}

Model read_file(const std::string& path) { return read_model(config::Node::load_text("hf: " + path, "job.yaml"), ""); }

TEST_F(IsAHuggingfaceModelUnderstood, the_limits_of_the_model_reader_hold) {
  const auto refusal = [](const std::string& field, const std::string& value) {
    const std::string path = mixtral_with(field, value);
    const std::string message = config::refusal_of([&] { return read_file(path); });
    EXPECT_TRUE(message.starts_with(path + ":1:")) << message;
    return message.substr(message.find("error: "), message.find('\n') - message.find("error: "));
  };
  EXPECT_EQ(refusal("num_hidden_layers", "1000000"), "error: num_hidden_layers must be between 1 and 10000, not 1000000");
  EXPECT_EQ(refusal("num_experts_per_tok", "100000"), "error: num_experts_per_tok must be between 1 and 8, not 100000");
  EXPECT_EQ(refusal("num_local_experts", "1"), "error: num_local_experts must be between 2 and 1000000, not 1");
  EXPECT_EQ(refusal("hidden_size", "1000001"), "error: hidden_size must be between 1 and 1000000, not 1000001");
  EXPECT_EQ(refusal("vocab_size", "100000001"), "error: vocab_size must be between 1 and 100000000, not 100000001");
  EXPECT_EQ(refusal("num_key_value_heads", "33"), "error: num_key_value_heads must be between 1 and 32, not 33");
}

TEST_F(IsAHuggingfaceModelUnderstood, a_model_is_called_what_its_file_says) {
  EXPECT_EQ(read_file(mixtral_with("_name_or_path", "\"mistralai/Mixtral-8x7B-v0.1\"")).name, "Mixtral-8x7B-v0.1");
  const std::string path = mixtral_with("_name_or_path", "\"\"");
  EXPECT_EQ(read_file(path).name, fmt::format("rehearse-hf-{}/config.json", getpid()));
  EXPECT_EQ(read_file(mixtral_with("_name_or_path", "null", "my-mixtral.json")).name, "my-mixtral");
}

TEST_F(IsAHuggingfaceModelUnderstood, in_a_job) {
  const std::string rest = "cluster: pod\ngpus: 8\nbatch: {global: 32, micro: 1, sequence: 2048}\n";
  EXPECT_EQ(sim::read_text("model: {hf: huggingface/llama.json}\n" + rest).workload.model.layers, 32);
  EXPECT_EQ(sim::read_text("model: {hf: huggingface/llama.json, name: mine}\n" + rest).workload.model.name, "mine");
}

}  // namespace
}  // namespace rehearse::workloads

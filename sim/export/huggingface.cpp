// The model of a job as a HuggingFace config.json: of the families that have its fields, the one that reads back as the nearest model.
#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "config/keys.hpp"
#include "sim/export/exporter.hpp"
#include "workloads/huggingface.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;
using workloads::Activation;
using workloads::HuggingfaceFamily;
using workloads::Model;

// Those whose fields have the names below; in this order where several are as near.
constexpr std::array families{"llama", "mistral",  "qwen2",    "qwen3",       "gemma",      "gemma2",    "gemma3_text",
                              "gpt2",  "gpt_neox", "nemotron", "glm4",        "mixtral",    "qwen3_moe", "qwen2_moe",
                              "olmoe", "gpt_oss",  "glm4_moe", "deepseek_v3", "starcoder2", "phi",       "cohere"};

void write_experts(const Model& model, std::string_view type, Json& json) {
  const workloads::MoeSpec& moe = *model.moe;
  const bool as_deepseek = type == "deepseek_v3" || type == "glm4_moe", few = type == "mixtral" || type == "gpt_oss";
  json[as_deepseek ? "n_routed_experts" : few ? "num_local_experts" : "num_experts"] = moe.experts;
  json["num_experts_per_tok"] = moe.top_k;
  if (few || type == "olmoe") {
    json["intermediate_size"] = moe.ffn;
    return;
  }
  json["moe_intermediate_size"] = moe.ffn;
  if (as_deepseek) {
    json["n_shared_experts"] = moe.shared;
    json["first_k_dense_replace"] = moe.first_dense;
    if (moe.every > 1) json["moe_layer_freq"] = moe.every;
    return;
  }
  if (type == "qwen2_moe") json["shared_expert_intermediate_size"] = moe.shared * moe.ffn;
  json["decoder_sparse_step"] = moe.every;
  std::vector<int> dense;
  for (int layer = 0; moe.every == 1 && layer < moe.first_dense; ++layer) dense.push_back(layer);
  json["mlp_only_layers"] = dense;
}

void write_window(const Model& model, std::string_view type, Json& json) {
  json["sliding_window"] = model.window ? Json(model.window->tokens) : Json();
  if (type.starts_with("qwen")) json["use_sliding_window"] = model.window.has_value();
  if (type.starts_with("qwen")) json["max_window_layers"] = model.window ? 0 : model.layers;
  if (!model.window || (model.window->full_every == 0 && type == "mistral")) return;
  Json& types = json["layer_types"] = Json::array();
  for (int layer = 0; layer < model.layers; ++layer) types.push_back(model.windowed(layer) ? "sliding_attention" : "full_attention");
}

std::string_view activation_of(const Model& model, std::string_view type) {
  switch (model.activation) {
    case Activation::swiglu:
      return "silu";
    case Activation::relu2:
      return "relu2";
    case Activation::geglu:
      return "gelu_pytorch_tanh";
    case Activation::gelu:
      return type == "gpt2" ? "gelu_new" : "gelu";
  }
  return "";
}

// GPT-2 has names of its own.
Json gpt2(const Model& model) {
  return {{"n_layer", model.layers},
          {"n_embd", model.hidden},
          {"n_head", model.heads},
          {"n_inner", model.ffn},
          {"activation_function", activation_of(model, "gpt2")},
          {"resid_pdrop", model.dropout}};
}

Json common(const Model& model, std::string_view type) {
  Json json{{"num_hidden_layers", model.layers},
            {"hidden_size", model.hidden},
            {"num_attention_heads", model.heads},
            {"num_key_value_heads", model.kv_heads},
            {"intermediate_size", model.ffn},
            {type.starts_with("gemma") && type != "gemma" ? "hidden_activation" : "hidden_act", activation_of(model, type)}};
  if (!model.mla) json["head_dim"] = model.head_dim;
  if (type == "llama") json["mlp_bias"] = model.biases;
  json["attention_bias"] = model.qkv_bias();
  return json;
}

void write_latent(const Model& model, Json& json) {
  const workloads::MlaSpec& mla = *model.mla;
  json["q_lora_rank"] = mla.q_lora > 0 ? Json(mla.q_lora) : Json();
  json["kv_lora_rank"] = mla.kv_lora;
  json["qk_nope_head_dim"] = mla.qk_nope;
  json["qk_rope_head_dim"] = mla.qk_rope;
  json["v_head_dim"] = mla.v;
}

Json config_of(const Model& model, const HuggingfaceFamily& family) {
  Json json{{"architectures", {family.architecture}}, {"model_type", family.type}, {"vocab_size", model.vocab}};
  json.update(family.type == "gpt2" ? gpt2(model) : common(model, family.type));
  if (family.experts && model.moe) write_experts(model, family.type, json);
  if (family.latent && model.mla) write_latent(model, json);
  if (family.windows || family.type.starts_with("qwen")) write_window(model, family.type, json);
  if (model.mtp > 0) json["num_nextn_predict_layers"] = model.mtp;
  if (family.type == "glm4_moe") json["use_qk_norm"] = model.qk_norm;
  if (family.type == "gpt_neox") json["use_parallel_residual"] = model.side_by_side();
  json["tie_word_embeddings"] = model.tied_embeddings;
  return json;
}

// Keys of the model document that come out otherwise.
int distance(const config::Node& expected, const Json& json) {
  const Model read = workloads::read_huggingface_config(config::Node::load_text(json.dump(), "config.json"), "").model;
  const config::Node found = workloads::model_keys().write(read);
  int different = 0;
  for (const std::string& key : expected.keys()) {
    const auto other = found.find(key);
    if (key != "name" && (!other || config::one_line(*other) != config::one_line(expected.at(key)))) ++different;
  }
  for (const std::string& key : found.keys()) different += expected.find(key) ? 0 : 1;
  return different;
}

Json nearest(const Model& model) {
  const config::Node expected = workloads::model_keys().write(model);
  Json best;
  int least = std::numeric_limits<int>::max();
  for (const char* type : families) {
    const auto family = std::ranges::find(workloads::huggingface_families(), type, &HuggingfaceFamily::type);
    if (family->experts != model.moe.has_value() || family->latent != model.mla.has_value()) continue;
    const bool plain_act = model.activation == Activation::gelu || model.activation == Activation::relu2;
    if (family->gated == plain_act) continue;
    Json json = config_of(model, *family);
    const int different = distance(expected, json);
    if (different >= least) continue;
    least = different;
    best = std::move(json);
  }
  return best;
}

class HuggingfaceConfig final : public Exporter {
 public:
  [[nodiscard]] std::string_view summary() const override { return "the model, as a HuggingFace config.json"; }
  [[nodiscard]] std::string_view read_by() const override { return "hf"; }
  [[nodiscard]] std::vector<ExportedFile> files(const Job& job) const override {
    const Json json = job.workload.model.heads > 0 && job.workload.model.vocab > 0 ? nearest(job.workload.model) : Json();
    if (json.is_null()) job.resolved.document().at("model").fail("no architecture of HuggingFace's has this mix of attention and experts");
    return {{"", [json](std::ostream& out) { out << json.dump(2) << '\n'; }}};
  }
};

const ExporterRegistry::Registration<HuggingfaceConfig> huggingface_config_registration("hf");

}  // namespace
}  // namespace rehearse::sim

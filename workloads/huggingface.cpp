#include "workloads/huggingface.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "config/reference.hpp"

namespace rehearse::workloads {
namespace {

using config::Node;

constexpr std::int64_t largest = 100'000'000;

enum class Experts { none, mixtral, qwen3, deepseek };

// What the name of an architecture implies (the defaults of its configuration class in transformers 4.4x) and how its fields are called.
struct Architecture {
  std::string_view name;
  bool gated = true;
  Norm norm = Norm::rmsnorm;
  Positions positions = Positions::rope;
  bool biases = false;
  bool tied = false;
  int head_dim = 0;  // when config.json gives none; 0: hidden / heads
  Experts experts = Experts::none;
};

constexpr std::array architectures{
    Architecture{.name = "LlamaForCausalLM"},
    Architecture{.name = "MistralForCausalLM"},
    Architecture{.name = "Qwen2ForCausalLM"},
    Architecture{.name = "Qwen3ForCausalLM", .head_dim = 128},
    Architecture{.name = "GemmaForCausalLM", .tied = true, .head_dim = 256},
    Architecture{.name = "GPTNeoXForCausalLM", .gated = false, .norm = Norm::layernorm, .biases = true},
    Architecture{
        .name = "GPT2LMHeadModel", .gated = false, .norm = Norm::layernorm, .positions = Positions::learned, .biases = true, .tied = true},
    Architecture{.name = "MixtralForCausalLM", .experts = Experts::mixtral},
    Architecture{.name = "Qwen3MoeForCausalLM", .head_dim = 128, .experts = Experts::qwen3},
    Architecture{.name = "DeepseekV3ForCausalLM", .experts = Experts::deepseek},
};

const Architecture& find_architecture(const Node& json) {
  const Node field = json.at("architectures");
  const std::vector<Node> named = field.items();
  if (named.size() != 1) field.fail("architectures must name one architecture");
  const std::string name = named.front().as_string();
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures) {
    if (architecture.name == name) return architecture;
    known.emplace_back(architecture.name);
  }
  named.front().fail("unknown architecture " + config::shown(name), config::suggestion(name, known));
}

// A field that is present and not null.
std::optional<Node> given(const Node& json, std::string_view key) {
  auto found = json.find(key);
  return found && !found->is_null() ? found : std::nullopt;
}

int required(const Node& json, std::string_view key, std::int64_t low = 1) { return static_cast<int>(json.at(key).as_int(low, largest)); }

int optional(const Node& json, std::string_view key, int otherwise, std::int64_t low = 1) {
  const auto found = given(json, key);
  return found ? static_cast<int>(found->as_int(low, largest)) : otherwise;
}

Activation read_activation(const Node& field, bool gated) {
  const std::string name = field.as_choice({"silu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu2"});
  if (gated && name == "silu") return Activation::swiglu;
  if (name.starts_with("gelu")) return gated ? Activation::geglu : Activation::gelu;
  if (!gated && name == "relu2") return Activation::relu2;
  field.fail(fmt::format("{} '{}' is not known for this architecture", field.path(), name));
}

MoeSpec read_mixtral(const Node& json) {
  return {.experts = required(json, "num_local_experts"),
          .top_k = required(json, "num_experts_per_tok"),
          .ffn = required(json, "intermediate_size")};
}

MoeSpec read_qwen3(const Node& json) {
  if (const auto dense = given(json, "mlp_only_layers"); dense && !dense->items().empty()) {
    dense->fail("mlp_only_layers must be empty; single dense layers cannot be expressed");
  }
  return {.experts = required(json, "num_experts"),
          .top_k = required(json, "num_experts_per_tok"),
          .ffn = required(json, "moe_intermediate_size"),
          .every = optional(json, "decoder_sparse_step", 1)};
}

MoeSpec read_deepseek(const Node& json) {
  return {.experts = required(json, "n_routed_experts"),
          .top_k = required(json, "num_experts_per_tok"),
          .shared = optional(json, "n_shared_experts", 0, 0),
          .ffn = required(json, "moe_intermediate_size"),
          .first_dense = optional(json, "first_k_dense_replace", 0, 0),
          .every = optional(json, "moe_layer_freq", 1)};
}

void read_experts(const Node& json, Experts experts, Model& model) {
  if (experts == Experts::mixtral) model.moe = read_mixtral(json);
  if (experts == Experts::qwen3) model.moe = read_qwen3(json);
  if (experts != Experts::deepseek) return;
  model.moe = read_deepseek(json);
  model.mla = MlaSpec{.q_lora = optional(json, "q_lora_rank", 0),
                      .kv_lora = required(json, "kv_lora_rank"),
                      .qk_nope = required(json, "qk_nope_head_dim"),
                      .qk_rope = required(json, "qk_rope_head_dim"),
                      .v = required(json, "v_head_dim")};
  model.mtp = optional(json, "num_nextn_predict_layers", 0, 0);
}

void check_heads(const Node& json, std::string_view heads_key, const Model& model, bool has_head_dim) {
  if (!has_head_dim && model.hidden % model.heads != 0) {
    json.at(heads_key).fail(fmt::format("the hidden size ({}) is not a multiple of {} ({})", model.hidden, heads_key, model.heads));
  }
  if (model.heads % model.kv_heads == 0) return;
  json.at("num_key_value_heads")
      .fail(fmt::format("{} ({}) is not a multiple of num_key_value_heads ({})", heads_key, model.heads, model.kv_heads));
}

// GPT-2 has its own names for everything.
void read_gpt2_shape(const Node& json, Model& model) {
  model.layers = required(json, "n_layer");
  model.hidden = required(json, "n_embd");
  model.heads = model.kv_heads = required(json, "n_head");
  check_heads(json, "n_head", model, false);
  model.head_dim = model.hidden / model.heads;
  model.ffn = optional(json, "n_inner", 4 * model.hidden);
  const auto activation = given(json, "activation_function");
  model.activation = activation ? read_activation(*activation, false) : Activation::gelu;
}

void read_shape(const Node& json, const Architecture& architecture, Model& model) {
  model.layers = required(json, "num_hidden_layers");
  model.hidden = required(json, "hidden_size");
  model.heads = required(json, "num_attention_heads");
  model.kv_heads = optional(json, "num_key_value_heads", model.heads);
  const int head_dim = optional(json, "head_dim", architecture.head_dim);
  check_heads(json, "num_attention_heads", model, head_dim > 0);
  model.head_dim = head_dim > 0 ? head_dim : model.hidden / model.heads;
  model.ffn = required(json, "intermediate_size");
  model.activation = read_activation(json.at("hidden_act"), architecture.gated);
}

// transformers' defaults: 0.1 for GPT-2, 0 for the others.
double read_dropout(const Node& json, const Architecture& architecture) {
  const bool gpt2 = architecture.name == "GPT2LMHeadModel";
  const auto dropout = given(json, gpt2 ? "resid_pdrop" : "hidden_dropout");
  return dropout ? dropout->as_number(0, 1) : gpt2 ? default_dropout : 0;
}

std::string folder_name(const std::string& path) {
  const std::filesystem::path file = path;
  return file.has_parent_path() ? file.parent_path().filename().string() : file.stem().string();
}

}  // namespace

Model read_huggingface(const Node& path, const std::string& name) {
  const Node json = config::load_referenced(path);
  const Architecture& architecture = find_architecture(json);
  Model model;
  model.name = name.empty() ? folder_name(config::referenced_path(path)) : name;
  if (architecture.name == "GPT2LMHeadModel") {
    read_gpt2_shape(json, model);
  } else {
    read_shape(json, architecture, model);
  }
  model.vocab = required(json, "vocab_size");
  const auto tied = given(json, "tie_word_embeddings");
  model.tied_embeddings = tied ? tied->as_bool() : architecture.tied;
  model.positions = architecture.positions;
  model.biases = architecture.biases;
  model.norm = architecture.norm;
  model.dropout = read_dropout(json, architecture);
  read_experts(json, architecture.experts, model);
  return model;
}

}  // namespace rehearse::workloads

#include "workloads/huggingface.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "config/reference.hpp"
#include "workloads/model_limits.hpp"

namespace rehearse::workloads {
namespace {

using config::Node;

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

struct Bounds {
  std::int64_t low = 1, high = widest;
};
constexpr Bounds layers{1, most_layers};
constexpr Bounds some_layers{0, most_layers};

int required(const Node& json, std::string_view key, const Bounds& bounds = {}) {
  return static_cast<int>(json.at(key).as_int(bounds.low, bounds.high));
}

int optional(const Node& json, std::string_view key, int otherwise, const Bounds& bounds = {}) {
  const auto found = given(json, key);
  return found ? static_cast<int>(found->as_int(bounds.low, bounds.high)) : otherwise;
}

Activation read_activation(const Node& field, bool gated) {
  const std::string name = field.as_choice({"silu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu2"});
  if (gated && name == "silu") return Activation::swiglu;
  if (name.starts_with("gelu")) return gated ? Activation::geglu : Activation::gelu;
  if (!gated && name == "relu2") return Activation::relu2;
  field.fail(fmt::format("{} '{}' is not known for this architecture", field.path(), name));
}

// Experts as every architecture gives them; each calls the fields otherwise.
MoeSpec read_moe(const Node& json, std::string_view experts, std::string_view width) {
  MoeSpec moe;
  moe.experts = required(json, experts, {2, widest});
  moe.top_k = required(json, "num_experts_per_tok", {1, moe.experts});
  moe.ffn = required(json, width);
  return moe;
}

MoeSpec read_qwen3(const Node& json) {
  if (const auto dense = given(json, "mlp_only_layers"); dense && !dense->items().empty()) {
    dense->fail("mlp_only_layers must be empty; single dense layers cannot be expressed");
  }
  MoeSpec moe = read_moe(json, "num_experts", "moe_intermediate_size");
  moe.every = optional(json, "decoder_sparse_step", 1, layers);
  return moe;
}

MoeSpec read_deepseek(const Node& json) {
  MoeSpec moe = read_moe(json, "n_routed_experts", "moe_intermediate_size");
  moe.shared = optional(json, "n_shared_experts", 0, {0, widest});
  moe.first_dense = optional(json, "first_k_dense_replace", 0, some_layers);
  moe.every = optional(json, "moe_layer_freq", 1, layers);
  return moe;
}

void read_experts(const Node& json, Experts experts, Model& model) {
  if (experts == Experts::mixtral) model.moe = read_moe(json, "num_local_experts", "intermediate_size");
  if (experts == Experts::qwen3) model.moe = read_qwen3(json);
  if (experts != Experts::deepseek) return;
  model.moe = read_deepseek(json);
  model.mla = MlaSpec{.q_lora = optional(json, "q_lora_rank", 0, {0, widest}),
                      .kv_lora = required(json, "kv_lora_rank"),
                      .qk_nope = required(json, "qk_nope_head_dim"),
                      .qk_rope = required(json, "qk_rope_head_dim", {0, widest}),
                      .v = required(json, "v_head_dim")};
  model.mtp = optional(json, "num_nextn_predict_layers", 0, some_layers);
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
  model.layers = required(json, "n_layer", layers);
  model.hidden = required(json, "n_embd");
  model.heads = model.kv_heads = required(json, "n_head");
  check_heads(json, "n_head", model, false);
  model.head_dim = model.hidden / model.heads;
  const auto inner = given(json, "n_inner");
  model.ffn = inner ? required(json, "n_inner") : 4 * model.hidden;
  if (model.ffn > widest)
    json.at("n_embd").fail(fmt::format("n_embd ({}) is too large: 4 n_embd would be wider than {}", model.hidden, widest));
  const auto activation = given(json, "activation_function");
  model.activation = activation ? read_activation(*activation, false) : Activation::gelu;
}

void read_shape(const Node& json, const Architecture& architecture, Model& model) {
  model.layers = required(json, "num_hidden_layers", layers);
  model.hidden = required(json, "hidden_size");
  model.heads = required(json, "num_attention_heads");
  model.kv_heads = optional(json, "num_key_value_heads", model.heads, {1, model.heads});
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

// What the file says it is ("meta-llama/Llama-3.1-8B" is Llama-3.1-8B), else the file: config.json says nothing without its folder.
std::string name_in(const Node& json, const std::filesystem::path& file) {
  if (const auto said = given(json, "_name_or_path"); said && said->is_scalar()) {
    const std::string last = std::filesystem::path(said->as_string()).filename().string();
    if (!last.empty() && last != "." && last != "..") return last;
  }
  if (file.stem() != "config") return file.stem().string();
  return (file.parent_path().filename() / file.filename()).string();
}

}  // namespace

Model read_huggingface(const Node& path, const std::string& name) {
  const Node json = config::load_referenced(path);
  const Architecture& architecture = find_architecture(json);
  Model model;
  model.name = name.empty() ? name_in(json, config::referenced_path(path)) : name;
  if (architecture.name == "GPT2LMHeadModel") {
    read_gpt2_shape(json, model);
  } else {
    read_shape(json, architecture, model);
  }
  model.vocab = required(json, "vocab_size", {1, most_words});
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

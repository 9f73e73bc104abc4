#include "workloads/model.hpp"

#include <fmt/format.h>

#include "workloads/huggingface.hpp"
#include "workloads/model_limits.hpp"
#include "workloads/names.hpp"

namespace rehearse::workloads {
namespace {

using config::Node;

int int_or(const Node& node, std::string_view key, std::int64_t low, std::int64_t high, int otherwise) {
  const auto found = node.find(key);
  return found ? static_cast<int>(found->as_int(low, high)) : otherwise;
}

int required_int(const Node& node, std::string_view key, std::int64_t low, std::int64_t high) {
  return static_cast<int>(node.at(key).as_int(low, high));
}

bool bool_or(const Node& node, std::string_view key, bool otherwise) {
  const auto found = node.find(key);
  return found ? found->as_bool() : otherwise;
}

MoeSpec read_moe(const Node& node) {
  node.allow_keys({"experts", "top_k", "shared", "ffn", "first_dense", "every"});
  MoeSpec moe;
  moe.experts = required_int(node, "experts", 2, widest);
  moe.top_k = required_int(node, "top_k", 1, moe.experts);
  moe.shared = int_or(node, "shared", 0, widest, 0);
  moe.ffn = required_int(node, "ffn", 1, widest);
  moe.first_dense = int_or(node, "first_dense", 0, most_layers, 0);
  moe.every = int_or(node, "every", 1, most_layers, 1);
  return moe;
}

MlaSpec read_mla(const Node& node) {
  node.allow_keys({"q_lora", "kv_lora", "qk_nope", "qk_rope", "v"});
  MlaSpec mla;
  mla.q_lora = int_or(node, "q_lora", 0, widest, 0);
  mla.kv_lora = required_int(node, "kv_lora", 1, widest);
  mla.qk_nope = required_int(node, "qk_nope", 1, widest);
  mla.qk_rope = required_int(node, "qk_rope", 0, widest);
  mla.v = required_int(node, "v", 1, widest);
  return mla;
}

int read_head_dim(const Node& node, const Model& model) {
  if (model.heads == 0) return int_or(node, "head_dim", 0, widest, 0);
  if (const auto given = node.find("head_dim")) return static_cast<int>(given->as_int(1, widest));
  if (model.hidden % model.heads != 0) {
    node.at("heads").fail(fmt::format("hidden ({}) is not a multiple of heads ({})", model.hidden, model.heads), "give head_dim as well");
  }
  return model.hidden / model.heads;
}

void read_attention(const Node& node, Model& model) {
  model.heads = required_int(node, "heads", 0, widest);
  model.kv_heads = int_or(node, "kv_heads", model.heads == 0 ? 0 : 1, model.heads, model.heads);
  if (model.heads > 0 && model.heads % model.kv_heads != 0) {
    node.at("kv_heads").fail(fmt::format("heads ({}) is not a multiple of kv_heads ({})", model.heads, model.kv_heads));
  }
  model.head_dim = read_head_dim(node, model);
}

void read_conventions(const Node& node, Model& model) {
  model.activation = activations.read(node.at("activation"));
  const bool gelu = model.activation == Activation::gelu;
  model.tied_embeddings = bool_or(node, "tied_embeddings", false);
  if (const auto positions = node.find("positions")) model.positions = workloads::positions.read(*positions);
  model.biases = bool_or(node, "biases", gelu);
  model.norm = gelu ? Norm::layernorm : Norm::rmsnorm;
  if (const auto norm = node.find("norm")) model.norm = norms.read(*norm);
  model.dropout = gelu ? default_dropout : 0;
  if (const auto dropout = node.find("dropout")) model.dropout = dropout->as_number(0, 1);
}

}  // namespace

Model read_model(const Node& node, const std::string& name) {
  if (node.is_map() && node.find("hf")) {
    node.allow_keys({"hf"});
    return read_huggingface(node.at("hf"), name);
  }
  node.allow_keys({"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "activation", "vocab", "tied_embeddings", "positions",
                   "biases", "norm", "dropout", "moe", "mla", "mtp"});
  Model model;
  model.name = name;
  model.layers = required_int(node, "layers", 1, most_layers);
  model.hidden = required_int(node, "hidden", 1, widest);
  read_attention(node, model);
  model.ffn = required_int(node, "ffn", 1, widest);
  model.vocab = required_int(node, "vocab", 0, most_words);
  read_conventions(node, model);
  if (const auto moe = node.find("moe")) model.moe = read_moe(*moe);
  if (const auto mla = node.find("mla")) model.mla = read_mla(*mla);
  model.mtp = int_or(node, "mtp", 0, most_layers, 0);
  return model;
}

}  // namespace rehearse::workloads

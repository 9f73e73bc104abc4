#include "workloads/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/keys.hpp"
#include "workloads/huggingface.hpp"
#include "workloads/mixer.hpp"
#include "workloads/model_limits.hpp"
#include "workloads/names.hpp"

namespace rehearse::workloads {
namespace {

using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using config::whole;

bool gelu(const Model& model) { return model.activation == Activation::gelu; }

// A whole number whose bounds depend on what was read before it; nothing is written where there is nothing.
template <class Owner, class Bounds>
Key<Owner> bounded(std::string name, int Owner::*field, Bounds bounds, std::string means) {
  return Key<Owner>(
      std::move(name), {.kind = Shape::Kind::whole, .low = 0, .high = static_cast<double>(widest)},
      [=](const Node& node, Owner& owner) {
        const auto [low, high] = bounds(owner);
        owner.*field = static_cast<int>(node.as_int(low, high));
      },
      [=](const Owner& owner) { return Node::scalar(std::to_string(owner.*field)); }, std::move(means));
}

using Bounds = std::pair<std::int64_t, std::int64_t>;

const Keys<MoeSpec>& moe_keys() {
  using K = Key<MoeSpec>;
  static const Keys<MoeSpec> keys{
      K("experts", &MoeSpec::experts, whole(2, widest), "Routed experts of a layer.").required(),
      bounded(
          "top_k", &MoeSpec::top_k,
          [](const MoeSpec& moe) {
            return Bounds{1, moe.experts};
          },
          "Experts of each token.")
          .required(),
      K("shared", &MoeSpec::shared, whole(0, widest), "Experts that all tokens go through."),
      K("ffn", &MoeSpec::ffn, whole(1, widest), "Intermediate size of an expert.").required(),
      K("first_dense", &MoeSpec::first_dense, whole(0, most_layers), "Layers before the first one with experts."),
      K("every", &MoeSpec::every, whole(1, most_layers), "From there on, one layer in so many has experts."),
      K("latent", &MoeSpec::latent, whole(0, widest),
        "Width that routed experts work in, between two projections of the hidden size (Nemotron 3 Super); 0: the hidden size.")
          .written_if([](const MoeSpec& moe) { return moe.latent > 0; }),
  };
  return keys;
}

const Keys<MlaSpec>& mla_keys() {
  using K = Key<MlaSpec>;
  static const Keys<MlaSpec> keys{
      K("q_lora", &MlaSpec::q_lora, whole(0, widest), "Rank of the queries; 0: full."),
      K("kv_lora", &MlaSpec::kv_lora, whole(1, widest), "Rank of keys and values.").required(),
      K("qk_nope", &MlaSpec::qk_nope, whole(1, widest), "Head dimension of queries and keys without positions.").required(),
      K("qk_rope", &MlaSpec::qk_rope, whole(0, widest), "Head dimension of queries and keys with rotary positions.").required(),
      K("v", &MlaSpec::v, whole(1, widest), "Head dimension of values.").required(),
  };
  return keys;
}

const Keys<WindowSpec>& window_keys() {
  using K = Key<WindowSpec>;
  static const Keys<WindowSpec> keys{
      K("tokens", &WindowSpec::tokens, whole(1, most_words), "A token attends to so many: itself and those before it.").required(),
      K("full_every", &WindowSpec::full_every, whole(0, most_layers),
        "The last of so many layers attends to the whole sequence; 0: no layer does."),
  };
  return keys;
}

const Keys<MixerSpec>& mixer_keys() {
  using K = Key<MixerSpec>;
  static const Keys<MixerSpec> keys{
      K("kind", &MixerSpec::kind, config::word(MixerRegistry::names()), "Which.").required(),
      K("heads", &MixerSpec::heads, whole(1, widest), "Heads, of a delta rule those of its values.").required(),
      K("head_dim", &MixerSpec::head_dim, whole(1, widest), "Size of a head, of a delta rule of its values.").required(),
      K("groups", &MixerSpec::groups, whole(1, widest), "Heads of B and C, or of keys and queries, which heads share.").required(),
      K("state", &MixerSpec::state, whole(1, widest), "Size of one of those: of the state of a head's element.").required(),
      K("conv", &MixerSpec::conv, whole(1, 1024), "Taps of the causal convolution."),
      K("chunk", &MixerSpec::chunk, whole(1, most_words), "Positions that the scan takes at once.")
          .otherwise("128 for mamba2, 64 for gated_delta",
                     [](MixerSpec& mixer) { mixer.chunk = MixerRegistry::get(mixer.kind).default_chunk(); }),
      K("attention_every", &MixerSpec::attention_every, whole(0, most_layers),
        "One layer in so many has attention in its place; 0: none has, or `pattern` says."),
      K("first_attention", &MixerSpec::first_attention, whole(0, most_layers), "The first of them.")
          .otherwise("the last of the first so many",
                     [](MixerSpec& mixer) { mixer.first_attention = std::max(0, mixer.attention_every - 1); }),
  };
  return keys;
}

void read_head_dim(const Node& node, Model& model) { model.head_dim = static_cast<int>(node.as_int(model.heads == 0 ? 0 : 1, widest)); }

Bounds kv_heads_bounds(const Model& model) { return {model.heads == 0 ? 0 : 1, model.heads}; }

// Of layers whose attention stands beside their MLP.
void check_side_by_side(const Node& node, const Model& model) {
  if (!model.side_by_side()) return;
  const auto refuse = [&](bool has, const char* what) {
    if (has) node.at("parallel_residual").fail(fmt::format("attention beside the MLP is not simulated of models with {}", what));
  };
  refuse(model.heads == 0, "heads: 0, which have no attention");
  refuse(model.moe.has_value(), "experts (moe)");
  refuse(model.mla.has_value(), "latent attention (mla)");
  refuse(model.post_norms, "norms behind both (post_norms)");
}

void check_mixer(const Node& node, const Model& model) {
  if (!model.mixer) return;
  const MixerSpec& mixer = *model.mixer;
  const auto given = node.at("mixer");
  if (mixer.heads % mixer.groups != 0) {
    given.at("groups").fail(fmt::format("heads ({}) is not a multiple of groups ({})", mixer.heads, mixer.groups));
  }
  if (mixer.attention_every > 0 && model.heads == 0) given.at("attention_every").fail("the model has no attention (heads: 0)");
  if (mixer.attention_every == 0 && mixer.first_attention > 0)
    given.at("first_attention").fail("no layer has attention (attention_every: 0)");
  if (mixer.attention_every > 0 && mixer.first_attention >= model.layers) {
    const char* key = given.find("first_attention") ? "first_attention" : "attention_every";
    given.at(key).fail(
        fmt::format("the first layer with attention would be {}, and the last of the model is {}", mixer.first_attention, model.layers - 1),
        "attention_every: 0 is a model without attention");
  }
}

void check_experts(const Node& node, const Model& model) {
  if (!model.moe) return;
  if (model.moe->latent > model.hidden) {
    node.at("moe").at("latent").fail(
        fmt::format("experts work in a width of {}, which is more than their layer's hidden size ({})", model.moe->latent, model.hidden),
        "latent: 0 where experts take the hidden states as they are");
  }
  if (model.any_experts()) return;
  node.at("moe").at("first_dense").fail(fmt::format("none of {} layers has experts", model.layers), "a model without experts has no moe");
}

// Of a model without a vocabulary there is nothing to predict.
void check_predictions(const Node& node, const Model& model) {
  if (model.mtp > 0 && model.vocab == 0) node.at("mtp").fail("multi-token prediction needs a head, which a model with vocab: 0 has not");
}

// A window that no layer has.
void check_window(const Node& node, const Model& model) {
  if (!model.window) return;
  for (int layer = 0; layer < model.layers; ++layer) {
    if (model.windowed(layer)) return;
  }
  const Node given = node.at("window");
  if (!model.any_attention()) given.fail("no layer has attention");
  given.at("full_every")
      .fail("every layer with attention attends to the whole sequence", "leave window out, or full_every where all of them have it");
}

// A letter for each layer, of what a model has.
void check_pattern(const Node& node, const Model& model) {
  if (model.pattern.empty()) return;
  const Node given = node.at("pattern");
  const std::size_t unknown = model.pattern.find_first_not_of("M*-E");
  if (unknown != std::string::npos) {
    given.fail(fmt::format("'{}' is no layer: M (mixer), * (attention), - (MLP), E (experts)", model.pattern[unknown]));
  }
  if (static_cast<int>(model.pattern.size()) != model.layers) {
    given.fail(fmt::format("{} letters for {} layers", model.pattern.size(), model.layers));
  }
  const auto agrees = [&](char letter, bool has, const char* key) {
    const bool used = model.pattern.find(letter) != std::string::npos;
    if (used && !has) given.fail(fmt::format("'{}' without {}", letter, key));
    if (!used && has) given.fail(fmt::format("no '{}' beside {}", letter, key));
  };
  agrees('M', model.mixer.has_value(), "mixer");
  agrees('*', model.heads > 0, "heads");
  agrees('E', model.moe.has_value(), "moe");
  if (model.moe && (model.moe->first_dense > 0 || model.moe->every > 1))
    given.fail("moe.first_dense and moe.every are what the pattern says");
  if (model.mixer && model.mixer->attention_every > 0) given.fail("mixer.attention_every is what the pattern says");
  if (model.mtp > 0 && model.heads == 0)
    node.at("mtp").fail("multi-token prediction behind layers of one block is attention and experts or an MLP (\"*E\"), which needs heads");
  if (model.window) given.fail("windows of layers of one block are not simulated");
}

// Layers that are not all attention and an MLP or experts.
void check_unlike(const Node& node, const Model& model) {
  check_mixer(node, model);
  check_pattern(node, model);
  if (model.attention_gate && (model.mla || !model.any_attention()))
    node.at("attention_gate").fail("of attention with queries, keys and values of whole heads");
  if (!model.mixer && model.pattern.empty()) return;
  if (model.side_by_side())
    node.at("parallel_residual").fail("attention beside the MLP is not simulated of models with a mixer or a pattern");
  if (model.post_norms) node.at("post_norms").fail("norms behind branches are not simulated of models with a mixer or a pattern");
}

// Products are counted in pairs of one over queries or keys and one over values, at the mean of their widths
// (workloads/operators/shard.cpp).
void check_latent_attention(const Node& node, const Model& model) {
  if (!model.mla) return;
  if (model.qk_norm) node.at("qk_norm").fail("latent attention has norms of its own");
  const auto widths = std::int64_t{model.mla->qk_nope} + model.mla->qk_rope + model.mla->v;
  if (widths % 2 != 0)
    node.at("mla").at("v").fail(fmt::format("an odd sum of widths (qk_nope + qk_rope + v = {}) is not simulated", widths));
}

// What several keys say together, at the key that is most likely wrong.
void check(const Node& node, const Model& model) {
  check_side_by_side(node, model);
  check_unlike(node, model);
  check_experts(node, model);
  check_predictions(node, model);
  check_window(node, model);
  if (model.qk_norm && !model.any_attention()) node.at("qk_norm").fail("no layer has queries and keys");
  if (model.heads == 0) return;
  if (model.heads % model.kv_heads != 0) {
    node.at("kv_heads").fail(fmt::format("heads ({}) is not a multiple of kv_heads ({})", model.heads, model.kv_heads));
  }
  check_latent_attention(node, model);
  if (!node.find("head_dim") && model.hidden % model.heads != 0) {
    node.at("heads").fail(fmt::format("hidden ({}) is not a multiple of heads ({})", model.hidden, model.heads), "give head_dim as well");
  }
}

}  // namespace

const Keys<Model>& model_keys() {
  using K = Key<Model>;
  static const Keys<Model> keys{
      K("layers", &Model::layers, whole(1, most_layers), "Transformer layers.").required(),
      K("hidden", &Model::hidden, whole(1, widest), "Hidden size.").required(),
      K("heads", &Model::heads, whole(0, widest), "Attention heads; 0: a block without attention (single-layer measurements).").required(),
      bounded("kv_heads", &Model::kv_heads, kv_heads_bounds, "Key/value heads: as many as heads is MHA, 1 is MQA, between them is GQA.")
          .otherwise("heads", [](Model& model) { model.kv_heads = model.heads; }),
      K(
          "head_dim", {.kind = Shape::Kind::whole, .low = 0, .high = static_cast<double>(widest)}, read_head_dim,
          [](const Model& model) { return Node::scalar(std::to_string(model.head_dim)); }, "Size of a head.")
          .otherwise("hidden/heads", [](Model& model) { model.head_dim = model.heads == 0 ? 0 : model.hidden / model.heads; }),
      K("ffn", &Model::ffn, whole(1, widest), "Intermediate size, before a gate doubles it.").required(),
      K("activation", &Model::activation, choice(activations), "Of the feed-forward block; swiglu and geglu have a gate.").required(),
      K("vocab", &Model::vocab, whole(0, most_words), "Words; 0: a block without embedding and head (single-layer measurements).")
          .required(),
      K("tied_embeddings", &Model::tied_embeddings, config::truth(), "Embedding and head share their weights."),
      K("positions", &Model::positions, choice(positions), "How positions enter."),
      K("biases", &Model::biases, config::truth(), "Projections have biases.")
          .otherwise("true for gelu, else false", [](Model& model) { model.biases = gelu(model); }),
      K("attention_biases", &Model::attention_biases, choice(attention_biases),
        "Biases of attention alone: qkv has them at queries, keys and values.")
          .otherwise("all with biases, else none"),
      K("qk_norm", &Model::qk_norm, config::truth(), "A norm over the queries and keys of each head.").written_if([](const Model& model) {
        return model.qk_norm;
      }),
      K("attention_gate", &Model::attention_gate, config::truth(), "The query projection makes a gate of attention's output as well.")
          .written_if([](const Model& model) { return model.attention_gate; }),
      K("post_norms", &Model::post_norms, config::truth(), "Norms behind attention and MLP as well as before them.")
          .written_if([](const Model& model) { return model.post_norms; }),
      K("parallel_residual", &Model::parallel_residual, choice(parallel_residuals),
        "Attention stands beside the MLP: both read the layer's input, behind one norm or two, and are added to it at once.")
          .written_if([](const Model& model) { return model.side_by_side(); }),
      K("clamps_gate", &Model::clamps_gate, config::truth(), "Both halves of a gated MLP are clamped before its activation (gpt-oss).")
          .written_if([](const Model& model) { return model.clamps_gate; }),
      K("window", &Model::window, mapping(window_keys()), "Sliding windows of attention."),
      K("norm", &Model::norm, choice(norms), "Normalisation.")
          .otherwise("layernorm for gelu, else rmsnorm", [](Model& model) { model.norm = gelu(model) ? Norm::layernorm : Norm::rmsnorm; }),
      K("dropout", &Model::dropout, config::number(0, 1), "Probability; above 0 there are dropout kernels, and masks are kept.")
          .otherwise(fmt::format("{} for gelu, else 0", default_dropout),
                     [](Model& model) { model.dropout = gelu(model) ? default_dropout : 0; }),
      K("moe", &Model::moe, mapping(moe_keys()), "Experts: layers first_dense, first_dense + every, ... have them."),
      K("mla", &Model::mla, mapping(mla_keys()), "Multi-head latent attention."),
      K("mixer", &Model::mixer, mapping(mixer_keys()), "What layers have in the place of attention."),
      K("pattern", &Model::pattern, config::text(),
        "Layers of one block each: M (mixer), * (attention), - (MLP), E (experts), as \"M-M*-\"; left out: each has attention or mixer, "
        "and MLP "
        "or experts.")
          .otherwise("", {})
          .written_if([](const Model& model) { return !model.pattern.empty(); }),
      K("mtp", &Model::mtp, whole(0, most_layers), "Multi-token-prediction modules."),
  };
  return keys;
}

Model read_model(const Node& node, const std::string& name) {
  if (node.is_map() && node.find("hf")) {
    node.allow_keys({"hf"});
    return read_huggingface(node.at("hf"), name);
  }
  Model model;
  model.name = name;
  model_keys().read(node, model);
  check(node, model);
  return model;
}

}  // namespace rehearse::workloads

// A transformer as described by a model file (docs/job-format.md, "A model").
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/node.hpp"

namespace rehearse::config {
template <class Owner>
class Keys;
}

namespace rehearse::workloads {

enum class Activation { gelu, swiglu, geglu, relu2 };
enum class Positions { rope, learned, alibi, none };
enum class Norm { layernorm, rmsnorm };
enum class ParallelResidual { none, one_norm, two_norms };  // attention beside the MLP, both behind one norm or each behind its own
enum class AttentionBiases { none, qkv, all };              // qkv: of queries, keys and values, not of the projection behind attention

inline constexpr double default_dropout = 0.1;  // of GELU models: Megatron-LM's --hidden-dropout and --attention-dropout

struct MoeSpec {
  int experts = 0, top_k = 0, shared = 0, ffn = 0, first_dense = 0, every = 1;
  int latent = 0;  // width that routed experts work in, between two projections of the hidden size; 0: they work in that
  // Layers first_dense, first_dense + every, ... hold experts.
  [[nodiscard]] bool has_experts(int layer) const { return layer >= first_dense && (layer - first_dense) % every == 0; }
};
struct MlaSpec {
  int q_lora = 0, kv_lora = 0, qk_nope = 0, qk_rope = 0, v = 0;
};

// Sliding windows: a token attends to itself and the tokens - 1 before it. One layer in full_every (the last of each full_every) attends to
// the whole sequence; 0: no layer does.
struct WindowSpec {
  int tokens = 0, full_every = 0;
  [[nodiscard]] bool covers(int layer) const { return full_every == 0 || (layer + 1) % full_every != 0; }
};

// What keeps a state of one size, however long the sequence, in the place of attention (workloads/mixer.hpp has the kinds).
struct MixerSpec {
  std::string kind;
  int heads = 0, head_dim = 0;  // of what enters the state: Mamba's x, a delta rule's values
  int groups = 0, state = 0;    // of what it is addressed by, in as many heads and as wide: Mamba's B and C, keys and queries
  int conv = 4;                 // taps of the causal convolution before it
  int chunk = 0;                // positions that are computed at once
  int first_attention = 0, attention_every = 0;
  // Layers first_attention, first_attention + attention_every, ... have attention all the same; attention_every 0: none has.
  [[nodiscard]] bool leaves_out(int layer) const {
    return attention_every > 0 && layer >= first_attention && (layer - first_attention) % attention_every == 0;
  }
};

struct Model {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;     // 0: a block without attention
  int kv_heads = 0;  // = heads: MHA, 1: MQA, between: GQA
  int head_dim = 0;
  int ffn = 0;  // intermediate size, before a gate doubles it
  Activation activation = Activation::gelu;
  int vocab = 0;  // 0: no embedding and no head
  bool tied_embeddings = false;
  Positions positions = Positions::rope;
  bool biases = false;                              // of the MLP and of experts, and where the next says nothing of attention
  std::optional<AttentionBiases> attention_biases;  // none: as `biases`
  bool qk_norm = false;                             // a norm over each head's queries and keys
  bool attention_gate = false;                      // the query projection also makes a gate of what attention gives
  bool post_norms = false;                          // behind attention and MLP too, beside those before them
  bool clamps_gate = false;                         // both halves of a gated MLP are clamped before its activation
  std::optional<WindowSpec> window;                 // none: all layers attend to the whole sequence
  Norm norm = Norm::rmsnorm;
  double dropout = 0;  // probability; above 0 there are dropout kernels and their masks are kept
  std::optional<MoeSpec> moe;
  std::optional<MlaSpec> mla;
  std::optional<MixerSpec> mixer;
  std::string pattern;  // layers of one block each, a letter for each: "M-M*-" (model.cpp); empty: each is attention or mixer, and an MLP
  int mtp = 0;
  ParallelResidual parallel_residual = ParallelResidual::none;

  // Counting on after the last layer: the multi-token-prediction layers, which are as the last one, or behind layers of one block each
  // attention and experts or an MLP.
  [[nodiscard]] bool has_experts(int layer) const {
    return pattern.empty() ? moe && moe->has_experts(as_layer(layer)) : layer < layers ? is_block(layer, 'E') : moe.has_value();
  }
  [[nodiscard]] bool has_mlp(int layer) const { return pattern.empty() || layer >= layers ? !has_experts(layer) : is_block(layer, '-'); }
  [[nodiscard]] bool has_mixer(int layer) const {
    return pattern.empty() ? mixer && !mixer->leaves_out(as_layer(layer)) : layer < layers && is_block(layer, 'M');
  }
  [[nodiscard]] bool attends(int layer) const {
    return pattern.empty() || layer >= layers ? heads > 0 && !has_mixer(layer) : is_block(layer, '*');
  }
  [[nodiscard]] bool windowed(int layer) const { return window && attends(layer) && window->covers(as_layer(layer)); }
  // Whether some layer has attention, an MLP that is no expert, experts.
  [[nodiscard]] bool any_attention() const;
  [[nodiscard]] bool any_mlp() const;
  [[nodiscard]] bool any_experts() const;
  // Whether layers are attention and an MLP or experts, as most formulas of single stacks have them.
  [[nodiscard]] bool plain_layers() const { return !mixer && pattern.empty() && !attention_gate; }
  [[nodiscard]] bool qkv_bias() const { return attention_biases ? *attention_biases != AttentionBiases::none : biases; }
  [[nodiscard]] bool projection_bias() const { return attention_biases ? *attention_biases == AttentionBiases::all : biases; }
  [[nodiscard]] bool side_by_side() const { return parallel_residual != ParallelResidual::none; }
  [[nodiscard]] bool shares_norm() const { return parallel_residual == ParallelResidual::one_norm; }
  // Of what routed experts read and give.
  [[nodiscard]] int routed_width() const { return narrows() ? moe->latent : hidden; }
  [[nodiscard]] bool narrows() const { return moe && moe->latent > 0; }
  [[nodiscard]] bool gated() const { return activation == Activation::swiglu || activation == Activation::geglu; }

 private:
  [[nodiscard]] int as_layer(int layer) const { return layer < layers ? layer : layers - 1; }
  [[nodiscard]] bool is_block(int layer, char block) const { return pattern[static_cast<std::size_t>(layer)] == block; }
};

// The keys of a model document.
[[nodiscard]] const config::Keys<Model>& model_keys();

// Reads and checks a model document; {hf: path} reads a HuggingFace config.json (relative to the document's folder). Throws InputError.
[[nodiscard]] Model read_model(const config::Node& node, const std::string& name);

// Parameters of one transformer layer with attention, of the embeddings (token and, when learned, `learned_positions` position rows), the
// final norm and the head (0 when tied). Layer counts include norms and biases. MTP layers are not counted.
struct ParameterCount {
  double layer = 0, embedding = 0, final_norm = 0, head = 0, total = 0;
  double dense_layer = 0, moe_layer = 0, active = 0;  // active: parameters used per token (MoE: top_k + shared experts)
};
[[nodiscard]] ParameterCount count_parameters(const Model& model, int learned_positions = 2048);

// Positions that a query of a causal sequence attends to on average: s/2, within a window of w tokens w - w^2/(2s).
[[nodiscard]] double attended_positions(double sequence, double window);  // window 0: none

// Floating-point operations of forward + backward for one sequence, without recomputation. The convention counts matrix products only:
// 6 x matrix parameters per token + attention scores and values (full square, or half of it when causal; in windows what they hold) + what
// mixers do to their states + head, those of MTP modules included; the embedding look-up is free. context: tokens of the documents that
// attention stays within; 0: the sequence.
[[nodiscard]] double model_flops_per_sequence(const Model& model, int sequence, bool causal_half, int context = 0);
// Of those, scores and values.
[[nodiscard]] double attention_flops_per_sequence(const Model& model, int sequence, bool causal_half, int context = 0);

}  // namespace rehearse::workloads

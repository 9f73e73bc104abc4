// Parameters and model FLOPs of a model, counted matrix by matrix.
#include "workloads/mixer.hpp"
#include "workloads/model.hpp"

namespace rehearse::workloads {
namespace {

// Weights of matrices, which every token meets once, and the rest: biases and norms.
struct Count {
  double matrices = 0, rest = 0;
  [[nodiscard]] double total() const { return matrices + rest; }
  Count& operator+=(const Count& other) {
    matrices += other.matrices;
    rest += other.rest;
    return *this;
  }
};

Count linear(double inputs, double outputs, bool bias) { return {inputs * outputs, bias ? outputs : 0}; }

double norm_width(const Model& model, double width) { return width * (model.norm == Norm::layernorm ? 2 : 1); }

// DeepSeek-V2 (arXiv 2405.04434), section 2.1: low-rank queries (optional) and keys/values, each with a norm, and shared rotary keys.
Count latent_attention(const Model& model) {
  const MlaSpec& mla = *model.mla;
  const double h = model.hidden, a = model.heads;
  Count count;
  const double queries = a * (mla.qk_nope + mla.qk_rope);
  if (mla.q_lora > 0) {
    count += linear(h, mla.q_lora, false);
    count += linear(mla.q_lora, queries, false);
  } else {
    count += linear(h, queries, false);
  }
  count += linear(h, mla.kv_lora + mla.qk_rope, false);
  count += linear(mla.kv_lora, a * (mla.qk_nope + mla.v), false);
  count += linear(a * mla.v, h, model.projection_bias());
  count.rest += norm_width(model, mla.q_lora) + norm_width(model, mla.kv_lora);
  return count;
}

Count attention(const Model& model) {
  if (model.heads == 0) return {};
  Count count = {0, norm_width(model, model.hidden)};
  if (model.mla) {
    count += latent_attention(model);
    return count;
  }
  const double width = static_cast<double>(model.heads) * model.head_dim;
  const double kv_width = static_cast<double>(model.kv_heads) * model.head_dim;
  count += linear(model.hidden, width * (model.attention_gate ? 2 : 1) + 2 * kv_width, model.qkv_bias());
  count += linear(width, model.hidden, model.projection_bias());
  if (model.qk_norm) count.rest += 2 * norm_width(model, model.head_dim);
  return count;
}

Count mixer(const Model& model) {
  const MixerSpec& spec = *model.mixer;
  Count count = linear(model.hidden, static_cast<double>(mixer_columns(spec)), false);
  count += linear(static_cast<double>(spec.heads) * spec.head_dim, model.hidden, false);
  count.rest += norm_width(model, model.hidden) + mixer_small_parameters(spec);
  return count;
}

Count mlp(const Model& model, double width, double ffn) {
  Count count = linear(width, ffn * (model.gated() ? 2 : 1), model.biases);
  count += linear(ffn, width, model.biases);
  return count;
}

// Before the MLP, unless attention beside it stands behind the same, and behind attention and MLP where those have norms too.
double mlp_norms(const Model& model) {
  if (model.shares_norm()) return 0;
  return norm_width(model, model.hidden) * (model.post_norms ? model.heads > 0 ? 3 : 2 : 1);
}

Count dense_block(const Model& model) {
  Count count = mlp(model, model.hidden, model.ffn);
  count.rest += mlp_norms(model);
  return count;
}

// With `experts` of the experts: all of them as stored, top_k as a token sees it.
Count moe_block(const Model& model, double experts) {
  Count count;
  const Count expert = mlp(model, model.routed_width(), model.moe->ffn), shared = mlp(model, model.hidden, model.moe->ffn);
  count.matrices += expert.matrices * experts + shared.matrices * model.moe->shared;
  count.rest += expert.rest * experts + shared.rest * model.moe->shared + mlp_norms(model);
  count += linear(model.hidden, model.moe->experts, false);
  if (model.narrows()) {
    count += linear(model.hidden, model.moe->latent, model.biases);
    count += linear(model.moe->latent, model.hidden, model.biases);
  }
  return count;
}

// With attention.
Count dense_layer(const Model& model) {
  Count count = attention(model);
  count += dense_block(model);
  return count;
}
Count moe_layer(const Model& model, double experts) {
  Count count = attention(model);
  count += moe_block(model, experts);
  return count;
}

// Layers by what they are made of.
struct LayerCounts {
  int attention = 0, mixers = 0, dense = 0, experts = 0;
  void add(const Model& model, int layer) {
    attention += model.attends(layer) ? 1 : 0;
    mixers += model.has_mixer(layer) ? 1 : 0;
    dense += model.has_mlp(layer) ? 1 : 0;
    experts += model.has_experts(layer) ? 1 : 0;
  }
};

LayerCounts counts_of(const Model& model, int layers) {
  LayerCounts counts;
  for (int layer = 0; layer < layers; ++layer) counts.add(model, layer);
  return counts;
}

// Of so many layers of each kind, with `experts` of a layer's experts.
Count sum_of(const Model& model, const LayerCounts& counts, double experts) {
  Count sum;
  const auto add = [&](const Count& one, int times) { sum += {one.matrices * times, one.rest * times}; };
  add(attention(model), counts.attention);
  if (counts.mixers > 0) add(mixer(model), counts.mixers);
  add(dense_block(model), counts.dense);
  if (counts.experts > 0) add(moe_block(model, experts), counts.experts);
  return sum;
}

// Multi-token-prediction modules that run: they share the head.
int predictions(const Model& model) { return model.vocab > 0 ? model.mtp : 0; }

// Matrix weights that one token meets in all layers, in the head, and in MTP modules: each a 2h x h product, a layer as the last one and
// the head again.
double matrices_per_token(const Model& model) {
  const double h = model.hidden;
  const int more = predictions(model);
  const double layers = sum_of(model, counts_of(model, model.layers + more), model.moe ? model.moe->top_k : 0).matrices;
  return layers + more * 2 * h * h + (1 + more) * h * model.vocab;
}

// Summed over the layers, twice the positions that a query attends to: all of its context, in a window what it holds.
double attended(const Model& model, double context) {
  const int layers = model.layers + predictions(model);
  int windowed = 0;
  for (int layer = 0; model.window && layer < layers; ++layer) windowed += model.windowed(layer) ? 1 : 0;
  const double whole = context * (counts_of(model, layers).attention - windowed);
  return windowed == 0 ? whole : whole + windowed * 2 * attended_positions(context, model.window->tokens);
}

// Widths of a head's scores and values.
double head_widths(const Model& model) {
  if (model.mla) return model.mla->qk_nope + model.mla->qk_rope + model.mla->v;
  return 2.0 * model.head_dim;
}

}  // namespace

bool Model::any_attention() const { return counts_of(*this, layers).attention > 0; }
bool Model::any_mlp() const { return counts_of(*this, layers + predictions(*this)).dense > 0; }
bool Model::any_experts() const { return counts_of(*this, layers).experts > 0; }

ParameterCount count_parameters(const Model& model, int learned_positions) {
  ParameterCount count;
  const double table = static_cast<double>(model.vocab) * model.hidden;
  const bool rows = model.positions == Positions::learned && model.vocab > 0;
  count.dense_layer = dense_layer(model).total();
  count.moe_layer = model.moe ? moe_layer(model, model.moe->experts).total() : 0;
  count.layer = model.moe ? count.moe_layer : count.dense_layer;
  count.embedding = table + (rows ? static_cast<double>(learned_positions) * model.hidden : 0);
  count.final_norm = model.vocab > 0 ? norm_width(model, model.hidden) : 0;
  count.head = model.tied_embeddings ? 0 : table;
  const LayerCounts layers = counts_of(model, model.layers);
  const double ends = count.embedding + count.final_norm + count.head;
  count.total = sum_of(model, layers, model.moe ? model.moe->experts : 0).total() + ends;
  count.active = sum_of(model, layers, model.moe ? model.moe->top_k : 0).total() + ends;
  return count;
}

double attended_positions(double sequence, double window) {
  return window <= 0 || window >= sequence ? sequence / 2 : window - window * window / (2 * sequence);
}

// Forward: scores 2 s^2 a d_qk and values 2 s^2 a d_v; forward and backward are three times that.
double attention_flops_per_sequence(const Model& model, int sequence, bool causal_half, int context) {
  const double s = sequence;
  return 6 * s * attended(model, context > 0 ? context : s) * model.heads * head_widths(model) * (causal_half ? 0.5 : 1);
}

double model_flops_per_sequence(const Model& model, int sequence, bool causal_half, int context) {
  const int mixers = counts_of(model, model.layers + predictions(model)).mixers;
  const double states = mixers > 0 ? mixers * MixerRegistry::get(model.mixer->kind).model_flops(*model.mixer) : 0;
  return 6.0 * sequence * matrices_per_token(model) + 3.0 * sequence * states +
         attention_flops_per_sequence(model, sequence, causal_half, context);
}

}  // namespace rehearse::workloads

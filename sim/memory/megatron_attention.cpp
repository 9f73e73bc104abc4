#include "sim/memory/megatron_attention.hpp"

#include <utility>

namespace rehearse::sim {

void MegatronAttention::give_all(std::initializer_list<int*> tensors) {
  for (int* tensor : tensors) give(std::exchange(*tensor, -1));
}

int MegatronAttention::activation_backward(int active, double bytes) {
  const int silu = apart() ? take(bytes) : -1;
  const int up = apart() ? take(bytes) : -1;
  const int inner = take(w_.model.gated() ? 2 * bytes : bytes);
  for (const int tensor : {active, silu, up}) give(tensor);
  return inner;
}

void MegatronAttention::meet_residual(int gradient) {
  if (s_.heads > 0) {
    gradient_ = take(states());
  } else {
    take_as(UnitTensors::input_gradient, states());
  }
  give(gradient);
  give(UnitTensors::output_gradient);
}

void MegatronAttention::attention_forward(bool kept) {
  if (s_.heads == 0) return;  // the layer's input is the MLP's
  norm_ = take(states());
  w_.model.mla ? project_latent(kept) : project(kept);
  attend(kept);
  const int projected = spread(take(full()));
  if (!kept) give_all({&context_});
  if (kept && drops_norm(w_, !w_.model.mla)) give_all({&norm_});
  middle_ = take(states());
  give(projected);
  mask_ = dropped_out();
}

void MegatronAttention::attention_backward() {
  if (s_.heads == 0) return;
  if (drops_norm(w_, !w_.model.mla)) norm_ = take(states());
  give(mask_);
  const int gathered = gather();
  int context = take(core_output());
  hold(projection_placeholder, core_output() / tokens() / s_.element * hidden_weight());
  give(gathered);
  context = exchanged(context, core_output());
  if (drops(Module::mla_up_proj)) project_up(true);
  const bool again = drops(Module::core_attn);
  const int output = again ? take(core_output()) : -1;
  if (again) statistics_ = take(statistics());
  int query = take(query_bytes()), key = take(key_bytes()), value = take(value_bytes());
  give(context);
  query = exchanged(query, query_bytes());
  key = exchanged(key, key_bytes());
  value = exchanged(value, value_bytes());
  give(output);
  give_all({&query_, &key_, &value_, &context_, &statistics_, &unexchanged_});
  const int part = w_.model.mla ? latent_backward(query, key, value) : projections_backward(query, key, value);
  const int inner = take(states());
  give(part);
  take_as(UnitTensors::input_gradient, states());
  give(inner);
  give(gradient_);
  give_all({&norm_});
}

double MegatronAttention::query_bytes() const {
  return w_.model.mla ? per_head(w_.model.mla->qk_nope + w_.model.mla->qk_rope) : wide(s_.query_width);
}

double MegatronAttention::matrix_of(std::int64_t in, std::int64_t out) const {
  return static_cast<double>(in * out) * bytes_of(w_.precision.weights);
}

// Queries and keys are copied out of the product, where the model has them normed, and rotated; values copied.
void MegatronAttention::project(bool kept) {
  const int gathered = gather();
  const int mixed = take(wide(s_.query_width + 2 * s_.kv_width));
  give(gathered);
  if (!kept) give_all({&norm_});
  query_ = normed_and_rotated(wide(s_.query_width), true, query_input_);
  key_ = normed_and_rotated(wide(s_.kv_width), false, key_input_);
  value_ = take(wide(s_.kv_width));
  give(mixed);
  if (!kept) give_all({&query_input_, &key_input_});
  query_ = exchanged(query_, wide(s_.query_width));
  key_ = exchanged(key_, wide(s_.kv_width));
  value_ = exchanged(value_, wide(s_.kv_width));
}

int MegatronAttention::normed_and_rotated(double bytes, bool copied, int& input) {
  const bool norm = w_.model.qk_norm;
  if (norm) input = take(bytes);
  const int copy = norm || copied ? take(bytes) : -1;
  const int rotated = take(bytes);
  give(copy);
  return rotated;
}

int MegatronAttention::projections_backward(int query, int key, int value) {
  if (w_.model.qk_norm) {
    key = normed_backward(key, wide(s_.kv_width), key_input_);
    query = normed_backward(query, wide(s_.query_width), query_input_);
  }
  const int mixed = take(wide(s_.query_width + 2 * s_.kv_width));
  for (const int tensor : {query, key, value}) give(tensor);
  const int again = gather_beside();
  const int part = spread_beside(take(full()));
  hold(qkv_placeholder, matrix(s_.query_width + 2 * s_.kv_width));
  give(again);
  give(mixed);
  return part;
}

int MegatronAttention::normed_backward(int gradient, double bytes, int& input) {
  const int made = take(bytes);
  give(gradient);
  give_all({&input});
  return made;
}

void MegatronAttention::attend(bool kept) {
  context_ = take(core_output());
  statistics_ = take(statistics());
  // Both stay: attention keeps its own output, the projection what the exchange made of it, or a copy in another order.
  unexchanged_ = -1;
  if (exchanges())
    unexchanged_ = std::exchange(context_, communicated(take(core_output())));
  else if (w_.fusions.attention_copied)
    unexchanged_ = std::exchange(context_, take(core_output()));
  if (!kept || drops(Module::core_attn)) give_all({&statistics_});
  if (!kept) give_all({&query_, &key_, &value_, &unexchanged_});
  if (kept && drops(Module::mla_up_proj)) give_all({&query_, &key_, &value_, &query_normed_, &pair_normed_});
}

// Low-rank queries, and keys and values with what all heads share of the keys.
void MegatronAttention::project_latent(bool kept) {
  const workloads::MlaSpec& mla = *w_.model.mla;
  if (mla.q_lora > 0) query_down_ = take(low_rank(mla.q_lora));
  pair_down_ = take(low_rank(mla.kv_lora + mla.qk_rope));
  if (!kept && mla.q_lora > 0) give_all({&norm_});
  project_up(kept);
  if (!kept) give_all({&norm_, &query_down_, &pair_down_});
}

// Queries are rotated in their place where that is one kernel; keys and values are made of one product.
void MegatronAttention::project_up(bool kept) {
  const workloads::MlaSpec& mla = *w_.model.mla;
  if (mla.q_lora > 0) query_normed_ = take(low_rank(mla.q_lora));
  query_ = up(mla.q_lora > 0 ? wide(mla.q_lora) : full(), query_bytes());
  if (!w_.fusions.rope) {
    const int rotated = take(query_bytes());
    give(std::exchange(query_, rotated));
  }
  if (!kept) give_all({&query_normed_});
  pair_normed_ = take(low_rank(mla.kv_lora));
  const int both = up(wide(mla.kv_lora), pair_bytes());
  key_ = take(key_bytes());
  value_ = take(value_bytes());
  give(both);
  if (!kept) give_all({&pair_normed_});
}

int MegatronAttention::up(double input, double output) {
  const int gathered = spreads() ? waited(take(input)) : -1;
  const int made = take(output);
  give(gathered);
  return made;
}

// Of a product up: its input's gradient, of this rank's tokens.
int MegatronAttention::up_backward(int gradient, int width, double spread_bytes, Held placeholder, std::int64_t output) {
  int part = take(wide(width));
  hold(placeholder, matrix_of(width, output));
  give(gradient);
  if (spreads()) {
    const int own = communicated(take(spread_bytes));
    give(communicated(part));
    part = own;
  }
  return part;
}

int MegatronAttention::latent_backward(int query, int key, int value) {
  const workloads::MlaSpec& mla = *w_.model.mla;
  const int both = take(pair_bytes());
  give(key);
  give(value);
  int pair = up_backward(both, mla.kv_lora, low_rank(mla.kv_lora), pair_up_placeholder, s_.heads * (mla.qk_nope + mla.v));
  pair = normed_backward(pair, low_rank(mla.kv_lora), pair_normed_);
  if (!w_.fusions.rope) {
    const int rotated = take(query_bytes());
    give(std::exchange(query, rotated));
  }
  int low = -1, part = -1;
  const std::int64_t heads_wide = s_.heads * (mla.qk_nope + mla.qk_rope);
  if (mla.q_lora > 0) {
    low = up_backward(query, mla.q_lora, low_rank(mla.q_lora), query_up_placeholder, heads_wide);
    low = normed_backward(low, low_rank(mla.q_lora), query_normed_);
  } else {
    part = spread_beside(take(full()));
    hold(query_up_placeholder, matrix_of(s_.hidden, heads_wide));
    give(query);
  }
  const int down = take(low_rank(mla.kv_lora + mla.qk_rope));
  give(pair);
  const int of_pair = take(states());
  hold(pair_down_placeholder, matrix_of(s_.hidden, mla.kv_lora + mla.qk_rope));
  give(down);
  give_all({&pair_down_});
  if (mla.q_lora > 0) {
    part = take(states());
    hold(query_down_placeholder, matrix_of(s_.hidden, mla.q_lora));
    give(low);
    give_all({&query_down_});
  }
  give(of_pair);  // added to the other
  return part;
}

}  // namespace rehearse::sim

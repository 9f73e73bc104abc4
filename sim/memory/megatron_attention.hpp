// Attention as Megatron-Core with Transformer Engine has it, from the norm before it to the sum behind it, tensor by tensor
// (megatron/core/transformer/attention.py and multi_latent_attention.py).
#pragma once

#include <initializer_list>
#include <utility>

#include "sim/memory/tensor_writer.hpp"

namespace rehearse::sim {

class MegatronAttention : protected TensorWriter {
 public:
  using TensorWriter::TensorWriter;

 protected:
  using Module = workloads::RecomputeModule;
  static constexpr double statistic_bytes = 4;

  [[nodiscard]] bool drops(Module module) const { return w_.recompute.drops(module); }
  int dropped_out() { return s_.dropout ? take(states() / s_.element) : -1; }
  void give_all(std::initializer_list<int*> tensors);

  // A gated activation of several operators keeps what the gate's half became, and joins the gradients of both.
  [[nodiscard]] bool apart() const { return w_.model.gated() && !w_.fusions.activation; }
  // So many tensors of the activation's width lie beside its output: what the gate's half became, and `kept` more.
  [[nodiscard]] double beside_activation(double kept) const { return w_.fusions.activation ? 0 : kept + (w_.model.gated() ? 1 : 0); }
  int activation_backward(int active, double bytes);
  // What comes of the layer's second half, and the residual's gradient.
  void meet_residual(int gradient);

  // kept: for a backward that follows; otherwise what is read for the last time goes. Modules that are computed again go in either case.
  void attention_forward(bool kept);

  // Of the layer's second half: its gradient, with the residual's, is in gradient_.
  void attention_backward();

  int middle_ = -1, mask_ = -1, gradient_ = -1;

 private:
  [[nodiscard]] double hidden_weight() const { return static_cast<double>(s_.hidden) * bytes_of(w_.precision.weights); }
  [[nodiscard]] double per_head(int width) const { return wide(s_.heads * width); }
  [[nodiscard]] double query_bytes() const;
  [[nodiscard]] double key_bytes() const { return w_.model.mla ? query_bytes() : wide(s_.kv_width); }
  [[nodiscard]] double value_bytes() const { return w_.model.mla ? per_head(w_.model.mla->v) : wide(s_.kv_width); }
  [[nodiscard]] double core_output() const { return w_.model.mla ? value_bytes() : query_bytes(); }
  [[nodiscard]] double statistics() const { return tokens() * static_cast<double>(s_.heads) * statistic_bytes; }
  [[nodiscard]] double low_rank(int width) const { return static_cast<double>(s_.spread_tokens * width) * s_.element; }
  [[nodiscard]] double matrix_of(std::int64_t in, std::int64_t out) const;

  void project(bool kept);
  int normed_and_rotated(double bytes, bool copied, int& input);
  int projections_backward(int query, int key, int value);
  int normed_backward(int gradient, double bytes, int& input);

  void attend(bool kept);

  void project_latent(bool kept);
  void project_up(bool kept);
  [[nodiscard]] double pair_bytes() const { return per_head(w_.model.mla->qk_nope + w_.model.mla->v); }
  int up(double input, double output);
  int up_backward(int gradient, int width, double spread_bytes, Held placeholder, std::int64_t output);
  int latent_backward(int query, int key, int value);

  int norm_ = -1, query_ = -1, key_ = -1, value_ = -1, context_ = -1, unexchanged_ = -1, statistics_ = -1;
  int query_input_ = -1, key_input_ = -1;                                        // of the norms over heads
  int query_down_ = -1, query_normed_ = -1, pair_down_ = -1, pair_normed_ = -1;  // latent; pair: keys and values
};

}  // namespace rehearse::sim

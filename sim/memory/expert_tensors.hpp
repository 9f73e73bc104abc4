// Which tensors a layer with experts takes from the allocator and gives back, in the order of Megatron-Core 0.14
// (megatron/core/transformer/moe/moe_layer.py, token_dispatcher.py, experts.py) with Transformer Engine's grouped products.
#pragma once

#include <vector>

#include "sim/memory/megatron_attention.hpp"

namespace rehearse::sim {

// The second half of a layer with experts, from the norm to the sum.
class MegatronExperts : protected MegatronAttention {
 public:
  // chunks: equal pieces of the layer's tokens, one worked on while the next one is dispatched.
  MegatronExperts(const workloads::Workload& workload, UnitTensors& made, int chunks);

 protected:
  void experts_forward(bool kept);
  void experts_backward();

 private:
  // One of the pieces: what arrives, and what its experts keep.
  struct Piece {
    int arrived = -1, sorted = -1, inner = -1, silu = -1, active = -1;
  };

  [[nodiscard]] bool whole_tokens() const;    // DeepEP: a token travels once to a rank, and is copied there for its experts
  [[nodiscard]] bool gathers_tokens() const;  // every rank gets all of them
  [[nodiscard]] bool sends_pairs() const { return !whole_tokens() && !gathers_tokens(); }
  // The all-to-all leaves pairs by sender, which a rank with several experts sorts; their tensor-parallel ranks exchange what each got.
  [[nodiscard]] bool sorts() const { return whole_tokens() || gathers_tokens() || w_.model.moe->experts > w_.parallel.ep; }
  [[nodiscard]] bool exchanges_experts() const { return w_.parallel.etp > 1 && sends_pairs(); }
  [[nodiscard]] bool again() const { return w_.experts.chunk_recompute; }
  [[nodiscard]] double state() const { return w_.model.routed_width() * s_.element; }  // of a token, as experts read and give it
  [[nodiscard]] double own_states() const { return static_cast<double>(s_.spread_tokens) * state(); }
  [[nodiscard]] bool narrows() const { return w_.model.narrows(); }
  [[nodiscard]] double latent_matrix() const;
  [[nodiscard]] double gates() const { return w_.model.gated() ? 2 : 1; }
  [[nodiscard]] double ffn() const;  // of a pair
  [[nodiscard]] double scores() const;
  [[nodiscard]] double shared_width() const;
  [[nodiscard]] double own_pairs() const;   // states of the pairs that this rank's tokens make, in a piece
  [[nodiscard]] double all_tokens() const;  // of a group, in a piece
  int take_rows(double bytes) { return take_pairs(bytes / chunks_); }
  int take_beside() {
    const double beside = beside_activation(w_.fusions.expert_activation_kept);
    return beside > 0 ? take_rows(ffn() * beside) : -1;
  }

  void route();
  void shared_inside();
  void shared_forward(bool kept);
  int shared_backward();
  void dispatch(Piece& piece);
  int compute(Piece& piece, bool kept);
  int combine(int sent);
  int widen(int sum, bool kept);
  int join(const std::vector<int>& results, bool kept);
  int forward_of_pieces(bool kept);
  int widen_backward();
  int narrow_backward(int gradient);
  int gradient_arrives(const Piece& piece);
  int compute_backward(Piece& piece, int gradient);
  int gradient_returns(int gradient);
  int backward_of_piece(Piece& piece, int& of_shared);
  void route_backward();

  int chunks_;
  double copies_ = 1;  // of a token on a rank, for each of its pairs there
  int norm2_ = -1, mask2_ = -1, scores_ = -1, probabilities_ = -1, map_ = -1, permuted_ = -1;
  int latent_ = -1, combined_ = -1, of_combined_ = -1;  // of a layer wider than its experts: projected down, and their sum
  int shared_inner_ = -1, shared_silu_ = -1, shared_active_ = -1, shared_sum_ = -1;
  std::vector<Piece> pieces_;
};

}  // namespace rehearse::sim

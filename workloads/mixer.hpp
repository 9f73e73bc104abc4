// What stands in the place of attention and keeps a state of one size per sequence: a kind of it, by name. A layer of any kind is a norm, a
// projection in (workloads/operators/mixer.cpp), a causal convolution, the scan, a gated norm and a projection out; the scan is the kind's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "workloads/operators.hpp"

namespace rehearse::workloads {

// What one GPU scans: whole sequences of a share of the heads. Values: heads x head_dim of each token; keys, and as many queries: groups x
// state.
struct MixerShare {
  std::int64_t tokens = 0;
  std::int64_t heads = 0, head_dim = 0, groups = 0, state = 0, chunk = 0;
  double element = 2;  // bytes
  DType type = DType::bf16;
  std::int64_t conv = 0;     // taps
  double state_element = 2;  // bytes, of what serving keeps
  [[nodiscard]] double values() const { return static_cast<double>(heads * head_dim); }
  [[nodiscard]] double keys() const { return static_cast<double>(groups * state); }
  // Bytes that a convolution reads or writes of a token.
  [[nodiscard]] double convolved() const { return (values() + 2 * keys()) * element; }
  // Bytes of a sequence between two passes: its state, and of the convolution the tokens that the next one reaches; the latter also of
  // tokens that are tried.
  [[nodiscard]] double kept_state() const { return static_cast<double>(heads * head_dim * state) * state_element; }
  [[nodiscard]] double kept_convolved(int tried = 0) const { return static_cast<double>(conv - 1 + tried) * convolved(); }
  // Of a chunk's states, per token.
  [[nodiscard]] double states() const { return static_cast<double>(heads * head_dim * state) / static_cast<double>(chunk); }
};

class MixerKind {
 public:
  static constexpr std::string_view kind = "mixer";
  virtual ~MixerKind() = default;
  // Of each head what the projection in makes beside values, their gate, keys and queries; and its parameters beside matrices.
  [[nodiscard]] virtual int scalars() const = 0;
  [[nodiscard]] virtual int head_parameters() const = 0;
  [[nodiscard]] virtual bool conv_bias() const = 0;
  [[nodiscard]] virtual bool norm_per_head() const = 0;  // the gated norm's weights are a head's, which all share
  [[nodiscard]] virtual int default_chunk() const = 0;
  // Whether what was projected, tokens outside sequences, is copied to lie sequence by sequence, and the output back (MambaMixer's
  // rearrange and contiguous), where a micro-batch has several.
  [[nodiscard]] virtual bool copied_by_sequence() const = 0;
  // Kernels that update a state by a token of its sequence.
  [[nodiscard]] virtual int update_kernels() const = 0;
  // Forward floating-point operations of a token beside the projections, as Megatron-Core's num_floating_point_operations counts them.
  [[nodiscard]] virtual double model_flops(const MixerSpec& spec) const = 0;
  // The scan's kernels in execution order.
  [[nodiscard]] virtual std::vector<Operator> forward(const MixerShare& share) const = 0;
  [[nodiscard]] virtual std::vector<Operator> backward(const MixerShare& share) const = 0;
  // Bytes per token that stay for backward, from the projection's output on to the input of the projection out (which is not among them);
  // and what backward has beside them and beside gradients of the layer's input and output.
  [[nodiscard]] virtual double kept_bytes(const MixerShare& share) const = 0;
  [[nodiscard]] virtual double backward_bytes(const MixerShare& share) const = 0;
};

using MixerRegistry = config::Registry<MixerKind>;

// Outputs of the projection in, of all heads.
[[nodiscard]] std::int64_t mixer_columns(const MixerSpec& spec);
// Channels of the convolution, parameters of convolution, heads and gated norm, and tensors of a layer; tp: ranks that share it.
[[nodiscard]] std::int64_t mixer_channels(const MixerSpec& spec);
[[nodiscard]] double mixer_small_parameters(const MixerSpec& spec, std::int64_t tp = 1);
[[nodiscard]] int mixer_tensors(const MixerSpec& spec);

// What serving runs between the projections, in execution order: the tokens of prompts, each of which brings a state and leaves one; a
// token of every decoding sequence with those that are tried beside it, each of which leaves a state of its own (vLLM:
// causal_conv1d_update, then selective_state_update or the gates and fused_recurrent_gated_delta_rule; model_executor/layers/mamba,
// model_executor/layers/fla).
[[nodiscard]] std::vector<Operator> prompt_operators(const MixerSpec& spec, MixerShare share, double tokens, double prompts);
[[nodiscard]] std::vector<Operator> update_operators(const MixerSpec& spec, const MixerShare& share, double sequences, int tried);

// A product of a scan: of rows of n by k over all chunks and heads, and what its kernel moves.
[[nodiscard]] Operator scan_product(const MixerShare& share, std::string name, Pass pass, double flops, std::int64_t n, std::int64_t k,
                                    double bytes);

}  // namespace rehearse::workloads

// Gated DeltaNet (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464): each token first takes out of the state what its key finds there.
// Megatron-Core's GatedDeltaNet (megatron/core/ssm/gated_delta_net) calls chunk_gated_delta_rule of flash-linear-attention, whose kernels
// these are (fla/ops/gated_delta_rule/chunk.py); keys and queries, normed, are repeated for every head of values before.
#include "workloads/mixer.hpp"
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

constexpr double fp32_of_rule = 4;

// Keys, or queries, of every head.
double repeated_keys(const MixerShare& s) { return static_cast<double>(s.heads * s.state); }
// Decays and strengths in fp32, of each head.
double gates_of(const MixerShare& s) { return 2 * fp32_of_rule * static_cast<double>(s.heads); }
// The inverse of the chunk's triangle, of each head.
double triangle(const MixerShare& s) { return static_cast<double>(s.heads * s.chunk); }

// A chunk's products, per token: with the state, of positions over keys' or values' width, of positions alone.
double with_state(const MixerShare& s) { return 2 * s.values() * static_cast<double>(s.state); }
double over_keys(const MixerShare& s) { return 2 * repeated_keys(s) * static_cast<double>(s.chunk); }
double over_values(const MixerShare& s) { return 2 * s.values() * static_cast<double>(s.chunk); }
double over_positions(const MixerShare& s) { return 2 * triangle(s) * static_cast<double>(s.chunk); }

// chunk_fwd_h: the states at the chunks' beginnings and what is new of each value.
Operator states_passed(const MixerShare& s, Pass pass) {
  const double moved = s.element * (2 * repeated_keys(s) + 2 * s.values() + s.states()) + gates_of(s);
  const auto t = static_cast<double>(s.tokens);
  return scan_product(s, "delta_states", pass, t * 2 * with_state(s), s.head_dim, s.state, t * moved);
}

class GatedDelta : public MixerKind {
 public:
  [[nodiscard]] int scalars() const override { return 2; }          // strength and decay
  [[nodiscard]] int head_parameters() const override { return 2; }  // A, bias of dt
  [[nodiscard]] bool conv_bias() const override { return false; }
  [[nodiscard]] bool norm_per_head() const override { return true; }
  [[nodiscard]] int default_chunk() const override { return 64; }           // chunk_gated_delta_rule's
  [[nodiscard]] bool copied_by_sequence() const override { return false; }  // the copies of delta_inputs are
  [[nodiscard]] int update_kernels() const override { return 2; }           // gates; the rule

  // gdn_layer_flops in megatron/training/training.py: the convolution, and four products of a head's values with themselves.
  [[nodiscard]] double model_flops(const MixerSpec& spec) const override {
    const double channels = static_cast<double>(mixer_channels(spec));
    return 2 * (spec.conv * channels + 4.0 * spec.heads * spec.head_dim * spec.head_dim);
  }

  // chunk_gated_delta_rule_fwd behind what makes its inputs.
  [[nodiscard]] std::vector<Operator> forward(const MixerShare& s) const override {
    const Pass pass = Pass::forward;
    const auto t = static_cast<double>(s.tokens);
    const double k = repeated_keys(s) * s.element, v = s.values() * s.element;
    std::vector<Operator> all;
    all.push_back(memory_bound("delta_inputs", t * inputs(s), pass, 3));
    all.push_back(memory_bound("delta_cumsum", t * gates_of(s), pass));
    const double inverse = over_positions(s) / 3;  // forward substitution of a triangle
    all.push_back(scan_product(s, "delta_chunks", pass, t * (2 * over_keys(s) + over_values(s) + inverse), s.chunk, s.state,
                               t * (2 * k + 2 * v + triangle(s) * s.element + gates_of(s))));
    all.push_back(states_passed(s, pass));
    all.push_back(scan_product(s, "delta_output", pass, t * (with_state(s) + over_keys(s) + over_values(s)), s.head_dim, s.state,
                               t * (2 * k + 2 * v + s.states() * s.element + gates_of(s))));
    return all;
  }

  // chunk_gated_delta_rule_bwd.
  [[nodiscard]] std::vector<Operator> backward(const MixerShare& s) const override {
    const Pass pass = Pass::backward_input;
    const auto t = static_cast<double>(s.tokens);
    const double k = repeated_keys(s) * s.element, v = s.values() * s.element, a = triangle(s) * s.element;
    const double states = s.states() * s.element, gates = gates_of(s);
    std::vector<Operator> all;
    const auto add = [&](const char* name, double flops, std::int64_t n, std::int64_t inner, double bytes) {
      all.push_back(scan_product(s, name, pass, t * flops, n, inner, t * (bytes + gates)));
    };
    add("delta_recompute", over_keys(s) + over_values(s), s.head_dim, s.chunk, 2 * k + 2 * v + a);
    all.push_back(states_passed(s, pass));
    add("delta_dv_local", over_keys(s) + over_values(s), s.head_dim, s.chunk, 2 * k + 2 * v);
    add("delta_dstates", 3 * with_state(s), s.head_dim, s.state, 3 * k + 3 * v + states);
    add("delta_dqkw", 4 * with_state(s) + over_values(s) + 2 * over_keys(s), s.state, s.head_dim, 6 * k + 3 * v + 2 * states);
    add("delta_dwy", 4 * over_keys(s) + 2 * over_values(s) + 2 * over_positions(s), s.state, s.chunk, 3 * k + 3 * v + a);
    all.push_back(memory_bound("delta_sums", t * (3 * k + 2 * gates), pass, 3));
    all.push_back(memory_bound("delta_inputs", t * inputs(s), pass, 3));
    return all;
  }

  // As projected (values, gate, keys, queries, scalars) and what the convolution gave of it; keys and queries normed, then repeated, values
  // and gate copied; gates, the triangles and the rule's output, which the norm reads.
  [[nodiscard]] double kept_bytes(const MixerShare& s) const override {
    const double projected = 2 * s.values() + 2 * s.keys() + 2 * static_cast<double>(s.heads);
    const double made = 2 * s.keys() + 2 * repeated_keys(s) + 2 * s.values() + triangle(s) + s.values();
    return s.element * (projected + made) + gates_of(s);
  }
  // Gradients of queries, keys, values, the keys' share of the state and what was projected; that share and the values made of the state,
  // states and their gradients.
  [[nodiscard]] double backward_bytes(const MixerShare& s) const override {
    const double projected = 2 * s.values() + 2 * s.keys() + 2 * static_cast<double>(s.heads);
    return s.element * (projected + 4 * repeated_keys(s) + 4 * s.values() + 2 * s.states()) + gates_of(s);
  }

 private:
  // The convolution's output and the gate in; keys and queries normed and repeated, values and gate out, per token.
  static double inputs(const MixerShare& s) {
    return s.element * (2 * s.keys() + 2 * s.values() + 2 * repeated_keys(s) + 2 * s.values()) + gates_of(s);
  }
};

const MixerRegistry::Registration<GatedDelta> gated_delta_registration{"gated_delta"};

}  // namespace
}  // namespace rehearse::workloads

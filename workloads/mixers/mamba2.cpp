// Mamba-2 (Dao and Gu 2024, arXiv 2405.21060, section 6): the state space dual form, whose chunks are small attentions (C as queries, B as
// keys, x as values) and hand a state of head_dim x state on. The kernels are those that Megatron-Core's MambaMixer calls:
// mamba_split_conv1d_scan_combined of state-spaces/mamba (mamba_ssm/ops/triton/ssd_combined.py and what it imports).
#include "workloads/mixer.hpp"
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

constexpr double fp32_of_scan = 4;

// A block of threads makes one head's part of a chunk: keys, queries and scores that heads of a group share are read again by each, and the
// decays are exponentials in between. So many times what their bytes and FLOPs take at the rates of products: forward of 128 heads of 64
// with states of 128, one group and chunks of 256 takes 77 to 93 ns a token at 4,096 to 262,144 tokens on H100 (vllm-project/vllm pull
// request 27299, "Original"; vLLM's copy of the kernels), 10 of them in those that only move; its products would be 42 by the GPU's lines.
constexpr double against_products = 1.8;

Operator scan(const MixerShare& share, std::string name, Pass pass, double flops, std::int64_t n, std::int64_t k, double bytes) {
  Operator op = scan_product(share, std::move(name), pass, flops, n, k, bytes);
  op.times = against_products;
  return op;
}

// Time steps and their cumulated decays, in fp32, of each head.
double steps_of(const MixerShare& s) { return 2 * fp32_of_scan * static_cast<double>(s.heads); }

// B C^T of each group's chunks, which the kernels keep in fp32, per token.
double scores_of(const MixerShare& s) { return fp32_of_scan * static_cast<double>(s.groups * s.chunk); }

// Products of a chunk, per token: with the state, over the positions of the chunk of which a causal kernel takes half, and of each group.
double by_state(const MixerShare& s) { return 2 * s.values() * static_cast<double>(s.state); }
double within_chunk(const MixerShare& s) { return s.values() * static_cast<double>(s.chunk); }
double by_group(const MixerShare& s) { return 2 * static_cast<double>(s.groups * s.chunk * s.state); }

// _chunk_cumsum_fwd, _chunk_state_fwd, _state_passing_fwd, _bmm_chunk_fwd: states in fp32 between them and in 16 bits behind them. Backward
// runs them again, with fp32 behind them too.
void add_states(std::vector<Operator>& all, const MixerShare& s, Pass pass) {
  const auto t = static_cast<double>(s.tokens);
  const double steps = steps_of(s), x = s.values() * s.element, b = s.keys() * s.element, states = s.states();
  all.push_back(memory_bound("chunk_cumsum", t * (static_cast<double>(s.heads) * s.element + steps), pass));
  all.push_back(scan(s, "chunk_state", pass, t * by_state(s), s.state, s.chunk, t * (x + b + steps + fp32_of_scan * states)));
  const double passed = pass == Pass::forward ? s.element : fp32_of_scan;
  all.push_back(memory_bound("state_passing", t * states * (fp32_of_scan + passed), pass));
  all.push_back(scan(s, "bmm_chunk", pass, t * by_group(s), s.chunk, s.state, t * (2 * b + scores_of(s))));
}

class Mamba2 : public MixerKind {
 public:
  [[nodiscard]] int scalars() const override { return 1; }          // dt
  [[nodiscard]] int head_parameters() const override { return 3; }  // A, D, bias of dt
  [[nodiscard]] bool conv_bias() const override { return true; }
  [[nodiscard]] bool norm_per_head() const override { return false; }
  [[nodiscard]] int default_chunk() const override { return 128; }  // MambaMixer's
  [[nodiscard]] bool copied_by_sequence() const override { return true; }
  [[nodiscard]] int update_kernels() const override { return 1; }

  // mamba_layer_flops in megatron/training/training.py has 7 for each element of the state, and no convolution.
  [[nodiscard]] double model_flops(const MixerSpec& spec) const override { return 7.0 * spec.heads * spec.head_dim * spec.state; }

  [[nodiscard]] std::vector<Operator> forward(const MixerShare& s) const override {
    std::vector<Operator> all;
    add_states(all, s, Pass::forward);
    const auto t = static_cast<double>(s.tokens);
    const double moved = scores_of(s) + steps_of(s) + s.element * (2 * s.values() + s.keys() + s.states());
    all.push_back(scan(s, "chunk_scan", Pass::forward, t * (by_state(s) + within_chunk(s)), s.head_dim, s.chunk, t * moved));
    return all;
  }

  // _mamba_chunk_scan_combined_bwd.
  [[nodiscard]] std::vector<Operator> backward(const MixerShare& s) const override {
    const Pass pass = Pass::backward_input;
    const auto t = static_cast<double>(s.tokens);
    const double x = s.values() * s.element, b = s.keys() * s.element, states = s.states() * s.element, steps = steps_of(s);
    const double scores = scores_of(s), wide = fp32_of_scan * s.states(), gradient = fp32_of_scan * s.keys();
    std::vector<Operator> all;
    add_states(all, s, pass);
    const auto add = [&](const char* name, double flops, std::int64_t n, std::int64_t k, double bytes) {
      all.push_back(scan(s, name, pass, t * flops, n, k, t * bytes));
    };
    add("chunk_scan_dstates", by_state(s), s.state, s.chunk, x + b + steps + wide);
    all.push_back(memory_bound("state_passing_backward", t * (2 * wide + 2 * states), pass));
    add("chunk_scan_dx", by_state(s) + within_chunk(s), s.head_dim, s.chunk, 3 * x + b + scores + states + steps);
    add("chunk_state_db", by_state(s), s.state, s.head_dim, x + b + states + steps + gradient);
    add("chunk_scan_dc", by_state(s), s.state, s.head_dim, x + b + states + steps + gradient);
    add("chunk_scan_dcb", within_chunk(s), s.chunk, s.head_dim, 2 * x + scores + steps);
    add("bmm_chunk_backward", 2 * by_group(s), s.state, s.chunk, 2 * (scores + 2 * b + gradient));
    all.back().kernels = 2;
    add("chunk_scan_ddacs", within_chunk(s), s.chunk, s.head_dim, 2 * x + scores + steps);
    all.push_back(memory_bound("scan_sums", t * (4 * gradient + 2 * scores), pass, 3));  // of dB, dC, dCB over splits of a group's heads
    all.push_back(memory_bound("scan_decays", t * decays(s), pass, 9));
    all.push_back(memory_bound("chunk_cumsum_backward", t * 2 * steps, pass));
    return all;
  }

  // Gradients of the decays, in fp32, by PyTorch's operators: dt cloned; two cumulated sums, two flips, two sums; and what blocks of 32
  // positions gave, written and summed.
  static double decays(const MixerShare& s) {
    constexpr double passes = 2 * 2 + 2 * 2 + 2 * 3, block = 32;
    const auto heads = static_cast<double>(s.heads);
    return heads * (2 * s.element + fp32_of_scan * (passes + 2 * static_cast<double>(s.chunk) / block));
  }

  // z, x, B, C and dt as they were projected, and the scan's output before its norm with the norm's statistics.
  [[nodiscard]] double kept_bytes(const MixerShare& s) const override {
    return s.element * (3 * s.values() + 2 * s.keys() + static_cast<double>(s.heads)) + fp32_of_scan * static_cast<double>(s.groups);
  }
  // Gradients of all of that, the convolution's output once more, states and their gradients in both types, the scores and their gradient.
  [[nodiscard]] double backward_bytes(const MixerShare& s) const override {
    const double again = s.element * (s.values() + 2 * s.keys()) + 2 * (fp32_of_scan + s.element) * s.states() + 2 * scores_of(s);
    return kept_bytes(s) + again + steps_of(s);
  }
};

const MixerRegistry::Registration<Mamba2> mamba2_registration{"mamba2"};

}  // namespace
}  // namespace rehearse::workloads

#include "workloads/mixer.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {

std::int64_t mixer_channels(const MixerSpec& spec) {
  return std::int64_t{spec.heads} * spec.head_dim + std::int64_t{2} * spec.groups * spec.state;
}

std::int64_t mixer_columns(const MixerSpec& spec) {
  return mixer_channels(spec) + std::int64_t{spec.heads} * (spec.head_dim + MixerRegistry::get(spec.kind).scalars());
}

double mixer_small_parameters(const MixerSpec& spec, std::int64_t tp) {
  const MixerKind& kind = MixerRegistry::get(spec.kind);
  const double taps = spec.conv + (kind.conv_bias() ? 1 : 0), values = static_cast<double>(spec.heads) * spec.head_dim;
  const double cut = static_cast<double>(mixer_channels(spec)) * taps + static_cast<double>(spec.heads) * kind.head_parameters();
  const double norm = kind.norm_per_head() ? spec.head_dim : values / static_cast<double>(tp);
  return cut / static_cast<double>(tp) + norm;
}

// Two projections, the convolution, what is a head's, the gated norm's weights.
int mixer_tensors(const MixerSpec& spec) {
  const MixerKind& kind = MixerRegistry::get(spec.kind);
  return 2 + (kind.conv_bias() ? 2 : 1) + kind.head_parameters() + 1;
}

std::vector<Operator> prompt_operators(const MixerSpec& spec, MixerShare share, double tokens, double prompts) {
  share.tokens = std::max<std::int64_t>(1, std::llround(tokens));
  std::vector<Operator> all{memory_bound("causal_conv", 2 * tokens * share.convolved(), Pass::forward)};
  for (Operator& op : MixerRegistry::get(spec.kind).forward(share)) all.push_back(std::move(op));
  all.push_back(memory_bound("mixer_states", 2 * prompts * (share.kept_state() + share.kept_convolved()), Pass::forward, 2));
  return all;
}

std::vector<Operator> update_operators(const MixerSpec& spec, const MixerShare& share, double sequences, int tried) {
  const MixerKind& kind = MixerRegistry::get(spec.kind);
  const double tokens = sequences * (1 + tried);
  const double states = (sequences + tokens) * share.kept_state();
  const double beside =
      tokens * share.element * (2 * share.values() + 2 * share.keys() + static_cast<double>(share.heads) * kind.scalars());
  return {memory_bound("conv_update", 2 * sequences * share.kept_convolved(tried) + 2 * tokens * share.convolved(), Pass::forward),
          memory_bound("state_update", states + beside, Pass::forward, kind.update_kernels())};
}

Operator scan_product(const MixerShare& share, std::string name, Pass pass, double flops, std::int64_t n, std::int64_t k, double bytes) {
  Operator op;
  op.name = std::move(name);
  op.cls = OperatorClass::gemm;
  op.pass = pass;
  op.dtype = share.type;
  op.flops = flops;
  op.bytes = bytes;
  op.n = n;
  op.k = k;
  op.m = std::max<std::int64_t>(1, std::llround(flops / (2.0 * static_cast<double>(n) * static_cast<double>(k))));
  return op;
}

}  // namespace rehearse::workloads

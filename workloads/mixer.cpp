#include "workloads/mixer.hpp"

#include <algorithm>
#include <cmath>

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

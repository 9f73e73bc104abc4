// A layer's mixer: projections as Megatron-Core's MambaMixer and GatedDeltaNet place them (heads and groups over tp, the sequence exchanged
// for heads over cp), convolution, scan, gated norm.
#include "workloads/mixer.hpp"

#include <algorithm>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// x and weights in, y out; backward x and the gradient in, the gradient out, and forward once more (the activation behind it is kept by
// nobody).
Section convolution(const MixerShare& share) {
  const double once = static_cast<double>(share.tokens) * share.convolved();
  return pointwise("causal_conv", {.forward_bytes = 2 * once, .backward_bytes = 5 * once, .backward_kernels = 2});
}

// The scan's output and the gate in, their product out; backward those and the gradient in, two gradients out.
Section gated_norm(const MixerShare& share) {
  const double once = static_cast<double>(share.tokens) * share.values() * share.element;
  return pointwise("gated_norm", {.forward_bytes = 3 * once, .backward_bytes = 5 * once});
}

// What was projected and, behind the scan, its output, each in and out; backward their gradients.
Section by_sequence(const MixerSpec& spec, const Shard& shard, const MixerShare& share, bool back) {
  const MixerKind& kind = MixerRegistry::get(spec.kind);
  if (shard.batch == 1 || !kind.copied_by_sequence()) return {};
  const double projected = share.values() + static_cast<double>(share.heads) * kind.scalars() + share.convolved() / share.element;
  const double once = static_cast<double>(share.tokens) * (back ? share.values() : projected) * share.element;
  return pointwise(back ? "mixer_by_position" : "mixer_by_sequence", {.forward_bytes = 2 * once, .backward_bytes = 2 * once});
}

// Values, their gate, keys, queries and scalars, a call each; groups that are fewer than the ranks are repeated before.
std::vector<std::int64_t> exchanged_widths(const MixerSpec& spec, const Shard& shard, const MixerShare& share) {
  const std::int64_t values = share.heads * share.head_dim * shard.cp, keys = share.groups * share.state * shard.cp;
  return {values, values, keys, keys, share.heads * shard.cp * MixerRegistry::get(spec.kind).scalars()};
}

// From the projection in to the projection out.
Section mixer_core(const MixerSpec& spec, const Shard& shard) {
  const MixerKind& kind = MixerRegistry::get(spec.kind);
  const MixerShare share = mixer_share(spec, shard);
  const Section conv = convolution(share), norm = gated_norm(share), in = by_sequence(spec, shard, share, false),
                back = by_sequence(spec, shard, share, true);
  const std::vector<std::int64_t> widths = exchanged_widths(spec, shard, share), out{share.heads * share.head_dim * shard.cp};
  Shard plain = shard;
  plain.attention = shard.dense;
  Section core;
  const auto exchange = [&](std::vector<Item>& items, const char* name, const std::vector<std::int64_t>& of, Pass pass, bool to_heads) {
    if (shard.cp > 1) add_exchange(items, plain, name, of, pass, to_heads);
  };
  exchange(core.forward, "mixer all-to-all", widths, Pass::forward, true);
  append(core.forward, in.forward);
  append(core.forward, conv.forward);
  append(core.forward, kind.forward(share));
  append(core.forward, norm.forward);
  append(core.forward, back.forward);
  exchange(core.forward, "mixer output all-to-all", out, Pass::forward, false);
  exchange(core.backward, "mixer output gradient all-to-all", out, Pass::backward_input, true);
  append(core.backward, back.backward);
  append(core.backward, norm.backward);
  append(core.backward, kind.backward(share));
  append(core.backward, conv.backward);
  append(core.backward, in.backward);
  exchange(core.backward, "mixer gradient all-to-all", widths, Pass::backward_input, false);
  core.parameters = mixer_small_parameters(spec, shard.tp);
  return core;
}

// Alone, with the parameters of all that stands between the projections.
Section gated_norm_of(const Workload& workload, const Shard& shard) {
  const MixerSpec& spec = *workload.model.mixer;
  Section norm = gated_norm(mixer_share(spec, shard));
  norm.parameters = mixer_small_parameters(spec, shard.tp);
  return norm;
}

}  // namespace

MixerShare mixer_share(const MixerSpec& spec, const Shard& shard) {
  MixerShare share;
  share.tokens = shard.tokens * shard.cp;
  share.heads = spec.heads / (shard.tp * shard.cp);
  share.head_dim = spec.head_dim;
  share.groups = std::max<std::int64_t>(1, spec.groups / shard.tp / shard.cp);
  share.state = spec.state;
  share.chunk = std::min<std::int64_t>(spec.chunk, shard.context * shard.cp);
  share.element = shard.element;
  share.type = shard.dense;
  share.conv = spec.conv;
  return share;
}

std::vector<Section> mixer_sections(const Workload& workload, const Shard& shard, bool scans) {
  const MixerSpec& spec = *workload.model.mixer;
  Linear in{"mixer_in", shard.tokens, mixer_columns(spec) / shard.tp, shard.hidden, false};
  in.cast_input = norm_casts(workload, shard);
  in.input_found = norm_finds(workload, shard);
  in.input_beside = true;
  const Linear out{"mixer_out", shard.tokens, shard.hidden, std::int64_t{spec.heads} * spec.head_dim / shard.tp, false};
  std::vector<Section> sections{
      norm_of(workload, norm_before(workload, shard, "input_norm")), column_parallel(workload, shard, in, "mixer"),
      scans ? mixer_core(spec, shard) : gated_norm_of(workload, shard), row_parallel(workload, shard, out, "mixer")};
  add_residual(sections, workload, shard, "mixer", false);
  return sections;
}

}  // namespace rehearse::workloads

// The two (or, gated, three) matrices of the MLP and the activation between them.
#include "workloads/operators/adapters.hpp"

namespace rehearse::workloads {
namespace {

// In passes over the b * s * ffn/t intermediate tensor. Gated: both halves in, their product out; apart, silu (2) and product (3).
// Plain: in and out; apart, bias (2) and activation (2). Backward adds the output gradient.
Traffic activation_passes(bool gated, bool bias, bool fused) {
  if (gated && fused) return {.forward_bytes = 3, .backward_bytes = 5};
  if (gated) return {.forward_bytes = 5, .backward_bytes = 8, .forward_kernels = 2, .backward_kernels = 2};
  if (fused || !bias) return {.forward_bytes = 2, .backward_bytes = 3};
  return {.forward_bytes = 4, .backward_bytes = 3, .forward_kernels = 2};
}

}  // namespace

Linear mlp_input(const Workload& workload, const Shard& shard, std::string name, std::int64_t ffn) {
  const int matrices = workload.model.gated() ? 2 : 1;
  return {std::move(name), shard.tokens,          matrices * ffn,
          shard.hidden,    workload.model.biases, workload.fusions.separate_gate ? matrices : 1};
}

Section activation(const Workload& workload, const Shard& shard, double elements, bool fused, bool casts) {
  const double pass_bytes = elements * shard.element;
  Traffic traffic = activation_passes(workload.model.gated(), workload.model.biases, fused);
  if (casts) {  // the output, and backward the gradient of both halves
    const double saved = 1 - cast_bytes(workload, shard, true) / shard.element;
    traffic.forward_bytes -= saved;
    traffic.backward_bytes -= 2 * saved;
  }
  if (!fused) {
    traffic.forward_bytes += 2 * workload.fusions.activation_copies.forward;
    traffic.backward_bytes += 2 * workload.fusions.activation_copies.backward;
    traffic.forward_kernels += workload.fusions.activation_kernels.forward;
    traffic.backward_kernels += workload.fusions.activation_kernels.backward;
  }
  if (const auto kept = workload.precision.activation_input) {  // cast to be kept, and back again, both halves
    const double passes = 2 * (1 + bytes_of(*kept) / shard.element);
    traffic.forward_bytes += passes;
    traffic.backward_bytes += passes;
    ++traffic.forward_kernels;
    ++traffic.backward_kernels;
  }
  traffic.forward_bytes *= pass_bytes;
  traffic.backward_bytes *= pass_bytes;
  traffic.eager = !fused;
  return pointwise("activation", traffic);
}

std::vector<Section> mlp_sections(const Workload& workload, const Shard& shard) {
  const bool bias = workload.model.biases;
  Linear fc1 = mlp_input(workload, shard, "mlp_fc1", shard.ffn);
  fc1.adapters = fc1_adapters(workload, shard);
  const bool casts = workload.fusions.activation && workload.model.gated() && fuses_casts(workload, shard);
  fc1.cast_input = norm_casts(workload, shard);
  fc1.cast_gradient = casts;
  fc1.input_found = norm_finds(workload, shard);
  fc1.gradient_found = workload.fusions.activation && workload.model.gated() && finds_scales(workload, shard);
  fc1.input_beside = fc1.gradient_beside = true;
  Linear fc2{"mlp_fc2", shard.tokens, shard.hidden, shard.ffn, bias, 1, fc2_adapters(workload, shard), casts};
  fc2.input_found = fc1.gradient_found;
  fc2.input_beside = true;  // its gradient comes from the next layer, which is a graph of its own
  fc2.summed_later = merges_branches(workload, shard);
  const auto mlp = [](Section section) { return part_of(RecomputeModule::mlp, std::move(section)); };
  const RecomputeModule of_activation = workload.recompute.drops(RecomputeModule::mlp) ? RecomputeModule::mlp : RecomputeModule::mlp_act;
  std::vector<Section> sections;
  if (!workload.model.shares_norm()) sections.push_back(norm_of(workload, norm_before(workload, shard, "post_norm")));
  sections.push_back(makes(LayerOutput::linear_fc1, mlp(column_parallel(workload, shard, fc1, "mlp"))));
  sections.push_back(part_of(
      of_activation, activation(workload, shard, static_cast<double>(shard.tokens * shard.ffn), workload.fusions.activation, casts)));
  sections.push_back(makes(LayerOutput::linear_fc2, mlp(row_parallel(workload, shard, fc2, "mlp"))));
  if (workload.model.side_by_side()) {
    add_joined_residual(sections, workload, shard, bias);
  } else {
    add_residual(sections, workload, shard, "mlp", bias);
  }
  return sections;
}

}  // namespace rehearse::workloads

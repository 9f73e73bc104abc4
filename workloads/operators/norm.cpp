// Norms and the residual path: memory-bound kernels on the tokens outside the tensor-parallel region.
#include <algorithm>
#include <array>
#include <optional>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// RMSNorm written with PyTorch operators, per element in units of one pass over a 16-bit tensor (2 bytes): to fp32 (2+4), square (4+4),
// mean (4), product with the inverse root (4+4), to 16 bits (4+2), weight (2+2) = 36 bytes = 18 passes, where one kernel reads and writes
// once (2 passes).
constexpr double unfused_norm_passes = 18;
// Its backward as autograd runs it, operator by operator: weight (gradient 2+2; its own by a product 4+2 and a sum over the tokens 2), to
// fp32 (2+4), product (gradient 4+4; of the root by a product 8+4 and a sum 4), mean (written out, 4), square (exponent 1 4+4, twice that
// 4+4, times the gradient 8+4), both gradients of the input added (8+4), to 16 bits (4+2) = 92 bytes = 46 passes.
constexpr double unfused_norm_backward_passes = 46;
constexpr int unfused_norm_kernels = 6;

// Of fp32 under autocast, in bytes: square (4+4), mean (4), product (4+4), weight (4+4). Backward as above: what casts cost less,
// products with the weight cost more.
constexpr double wide_norm_bytes = 28, wide_norm_backward_bytes = 92;

// Bytes of an element. Fused backward reads the output gradient and the input and writes the input gradient.
Traffic norm_traffic(const Shard& shard, bool fused) {
  if (fused) {
    return {.forward_bytes = shard.state + shard.normed,
            .backward_bytes = shard.normed + 2 * shard.state,
            .forward_kernels = 1,
            .backward_kernels = 2};
  }
  const bool wide = shard.state > shard.element;
  return {.forward_bytes = wide ? wide_norm_bytes : unfused_norm_passes * shard.element,
          .backward_bytes = wide ? wide_norm_backward_bytes : unfused_norm_backward_passes * shard.element,
          .forward_kernels = unfused_norm_kernels,
          .backward_kernels = 2 * unfused_norm_kernels,
          .eager = true};
}

// Transformer Engine's tuned kernels (transformer_engine/common/normalization/rmsnorm and layernorm, REGISTER_NORM_LAUNCHER); other widths
// have general ones.
constexpr std::array<std::int64_t, 6> tuned_rmsnorms{512, 768, 1024, 2048, 4096, 8192};
constexpr std::array<std::int64_t, 25> tuned_layernorms{768,   1024,  1536,  2048,  2304,  3072,  3840,  4096,  5120,
                                                        6144,  8192,  10240, 12288, 12800, 15360, 16384, 18432, 20480,
                                                        24576, 25600, 30720, 32768, 40960, 49152, 65536};

bool is_tuned(Norm norm, std::int64_t width) {
  return norm == Norm::layernorm ? std::ranges::find(tuned_layernorms, width) != tuned_layernorms.end()
                                 : std::ranges::find(tuned_rmsnorms, width) != tuned_rmsnorms.end();
}

void take_longer(Section& section, const PassTimes& times) {
  for (Item& item : section.forward) std::get<Operator>(item).times = times.forward;
  for (Item& item : section.backward) std::get<Operator>(item).times = times.backward;
}

// Of a fused one: what is normed, and the gradient of what comes in.
void allocate(Section& section, const Shard& shard) {
  const auto elements = static_cast<double>(shard.spread_tokens * shard.hidden);
  for (Item& item : section.forward) std::get<Operator>(item).allocated_bytes = elements * shard.normed;
  for (Item& item : section.backward) std::get<Operator>(item).allocated_bytes = elements * shard.state;
}

// One byte per element for the mask of a dropout.
constexpr double norm_mask_byte = 1;

}  // namespace

Section norm(const Workload& workload, const Shard& shard, const std::string& name, std::optional<double> written) {
  const bool layernorm = workload.model.norm == Norm::layernorm;
  Traffic traffic = norm_traffic(shard, workload.fusions.norm || layernorm);
  if (written) traffic.forward_bytes += *written - shard.normed;
  traffic.forward_bytes *= static_cast<double>(shard.spread_tokens * shard.hidden);
  traffic.backward_bytes *= static_cast<double>(shard.spread_tokens * shard.hidden);
  Section section = pointwise(name, traffic);
  section.parameters = static_cast<double>(shard.hidden) * (layernorm ? 2 : 1);
  const bool untuned = workload.fusions.norm && !is_tuned(workload.model.norm, shard.hidden);
  if (untuned) take_longer(section, workload.fusions.untuned_norm_time);
  if (!traffic.eager) allocate(section, shard);
  return section;
}

bool norm_casts(const Workload& workload, const Shard& shard) {
  return (workload.fusions.norm || workload.model.norm == Norm::layernorm) && fuses_casts(workload, shard);
}

bool norm_finds(const Workload& workload, const Shard& shard) {
  return (workload.fusions.norm || workload.model.norm == Norm::layernorm) && finds_scales(workload, shard);
}

// What is gathered over tp behind it is transposed behind the gather.
Section norm_before(const Workload& workload, const Shard& shard, const std::string& name) {
  return norm(workload, shard, name, norm_casts(workload, shard) ? std::optional(cast_bytes(workload, shard, !shard.sp)) : std::nullopt);
}

Shard of_product(const Workload& workload, Shard shard) {
  if (!casts_for_norm(workload, shard)) shard.state = shard.normed = shard.element;
  return shard;
}

Section norm_of_product(const Workload& workload, const Shard& shard, const std::string& name) {
  Section section = norm(workload, of_product(workload, shard), name);
  if (!casts_for_norm(workload, shard)) return section;
  const double bytes = static_cast<double>(shard.spread_tokens * shard.hidden) * (shard.element + shard.state);
  section.forward.insert(section.forward.begin(), by_operators(false, memory_bound(name + " autocast", bytes, Pass::forward, 0)));
  section.backward.emplace_back(by_operators(false, memory_bound(name + " autocast", bytes, Pass::backward_input, 0)));
  return section;
}

namespace {

// Bias and dropout of a branch beside the sums that it ends in, `traffic` in bytes of an element of so many.
Section end_of_branch(const Workload& workload, const Shard& shard, const std::string& name, bool bias, Traffic traffic, double elements) {
  const bool separate = !workload.fusions.dropout_add;
  if (shard.dropout) {
    traffic.forward_bytes += norm_mask_byte + (separate ? 2 * shard.element : 0);
    traffic.backward_bytes += 2 * shard.element + norm_mask_byte;
    traffic.forward_kernels += separate ? 1 : 0;
    traffic.backward_kernels += 1;
  }
  if (bias && separate) {
    traffic.forward_bytes += 2 * shard.element;
    traffic.forward_kernels += 1;
  }
  traffic.forward_bytes *= elements;
  traffic.backward_bytes *= elements;
  traffic.eager = separate;
  return pointwise(name, traffic);
}

double spread_elements(const Shard& shard) { return static_cast<double>(shard.spread_tokens * shard.hidden); }

Section residual(const Workload& workload, const Shard& shard, const std::string& name, bool bias) {
  Traffic traffic;
  traffic.forward_bytes = shard.element + 2 * shard.state;  // the branch and the residual in, their sum out
  traffic.backward_bytes = shard.normed + 2 * shard.state;  // the gradients of branch and residual in, their sum out
  if (shard.casts_normed()) traffic.backward_bytes += shard.state + shard.element;  // the sum, for the branch's products
  return end_of_branch(workload, shard, name, bias, traffic, spread_elements(shard));
}

// What is added before it is summed over tp is there for all tokens.
double branch_elements(const Workload& workload, const Shard& shard) {
  return merges_branches(workload, shard) ? static_cast<double>(shard.tokens * shard.hidden) : spread_elements(shard);
}

// Attention beside the MLP ends in no sum: what a kernel fuses with one elsewhere is a kernel of its own here. A compiler has it in that of
// the sum that follows.
Section attention_alone(const Workload& workload, const Shard& shard, const std::string& name, bool bias) {
  const bool one_kernel = workload.fusions.dropout_add && !workload.fusions.compiled && (bias || shard.dropout);
  const Traffic traffic{.forward_bytes = one_kernel ? 2 * shard.element : 0, .forward_kernels = one_kernel ? 1 : 0, .backward_kernels = 0};
  return end_of_branch(workload, shard, name, bias, traffic, branch_elements(workload, shard));
}

// A compiler adds both branches to the residual in one kernel, where no sum over tp stands between.
bool adds_at_once(const Workload& workload, const Shard& shard) { return workload.fusions.compiled && !merges_branches(workload, shard); }

Section branches_added(const Workload& workload, const Shard& shard, bool bias) {
  const bool later = adds_at_once(workload, shard);
  const Traffic traffic{.forward_bytes = later ? 0 : 3 * shard.element, .forward_kernels = later ? 0 : 1, .backward_kernels = 0};
  return end_of_branch(workload, shard, "mlp_residual", bias, traffic, branch_elements(workload, shard));
}

// Backward: the gradients that the branches have for the layer's input, or for the one norm's output, are added to one another and to the
// residual's, in one kernel by a compiler.
Section layer_residual(const Workload& workload, const Shard& shard) {
  Traffic traffic;
  traffic.forward_bytes = (adds_at_once(workload, shard) ? 2 : 1) * shard.element + 2 * shard.state;
  traffic.backward_bytes = 2 * shard.normed + (workload.fusions.compiled ? 2 : 4) * shard.state;
  traffic.backward_kernels = workload.fusions.compiled ? 1 : 2;
  if (shard.casts_normed()) traffic.backward_bytes += shard.state + shard.element;  // the residual's, for the branches' products
  traffic.forward_bytes *= spread_elements(shard);
  traffic.backward_bytes *= spread_elements(shard);
  traffic.eager = !workload.fusions.dropout_add;
  return pointwise("layer_residual", traffic);
}

}  // namespace

void add_joined_residual(std::vector<Section>& sections, const Workload& workload, const Shard& shard, bool bias) {
  sections.push_back(branches_added(workload, shard, bias));
  if (merges_branches(workload, shard)) sections.push_back(merged_sum(workload, shard));
  sections.push_back(layer_residual(workload, shard));
}

void add_residual(std::vector<Section>& sections, const Workload& workload, const Shard& shard, const std::string& branch, bool bias) {
  if (workload.model.post_norms) sections.push_back(norm_of_product(workload, shard, branch + "_post_norm"));
  const auto end = workload.model.side_by_side() ? attention_alone : residual;
  sections.push_back(end(workload, shard, branch + "_residual", bias));
}

}  // namespace rehearse::workloads

// The feed-forward half of a layer with experts: router, permutation, routed and shared experts (docs/moe.md).
#include "workloads/expert_layer.hpp"
#include "workloads/operators/linear.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/operators/wire.hpp"

namespace rehearse::workloads {
namespace {

constexpr double fp32 = 4;

// What the host launches beside kernels that are counted elsewhere.
Section launched(const char* name, const PassKernels& kernels) {
  Section section;
  if (kernels.forward + kernels.backward == 0) return section;
  section.forward.emplace_back(memory_bound(name, 0, Pass::forward, kernels.forward));
  section.backward.emplace_back(memory_bound(name, 0, Pass::backward_input, kernels.backward));
  return section;
}

Section router(const Workload& workload, const Shard& shard) {
  Shard alone = shard;  // every tensor-parallel rank routes its own tokens
  alone.tp = 1;
  return output_linear(workload, alone, {"router", shard.spread_tokens, workload.model.moe->experts, shard.hidden, false}, "router");
}

// Scores in fp32: softmax or sigmoid (in, out), top-k (in), masked probabilities and the map of choices (out), balance loss (in).
Section choice(const Workload& workload, const Shard& shard) {
  const double scores = static_cast<double>(shard.spread_tokens) * workload.model.moe->experts * fp32;
  const PassKernels& kernels = workload.fusions.routing_kernels;
  return pointwise("routing", {5 * scores, 4 * scores, kernels.forward, kernels.backward});
}

// A product for each sequence of the micro-batch, in 16 bits whatever the layers are in.
Operator by_sequence(const char* name, const Shard& shard, Pass pass, std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op = product(name, pass, shard.dense, shard.element, m, n, k);
  op.flops *= static_cast<double>(shard.batch);
  op.bytes *= static_cast<double>(shard.batch);
  return op;
}

// Of a sequence's tokens and all slots that experts have for it: to slots by a mask of ones, which has no gradient; back by the weights of
// the pairs, which have one (dense_matmul in src/maxtext/layers/moe.py, AI-Hypercomputer/maxtext e591f30: "BSM,BSEC -> EBCM" and back).
Section by_masks(const Workload& workload, const Shard& shard, bool back) {
  const std::int64_t tokens = shard.spread_tokens / shard.batch, width = shard.hidden;
  const auto slots = static_cast<std::int64_t>(static_cast<double>(shard.sequence * shard.cp * workload.model.moe->top_k) *
                                               workload.experts.capacity_factor);
  const char* name = back ? "unpermute" : "permute";
  const auto to_slots = [&](Pass pass) { return by_sequence(name, shard, pass, slots, width, tokens); };
  const auto to_tokens = [&](Pass pass) { return by_sequence(name, shard, pass, tokens, width, slots); };
  Section section;
  section.forward.emplace_back(back ? to_tokens(Pass::forward) : to_slots(Pass::forward));
  section.backward.emplace_back(back ? to_slots(Pass::backward_input) : to_tokens(Pass::backward_input));
  if (back) section.backward.emplace_back(by_sequence(name, shard, Pass::backward_input, tokens, slots, width));
  return section;
}

// Copies of tokens, sorted by expert, for the all-to-all; afterwards added up again. The other dispatchers do this while they send.
// Without a kernel for it each copy is added to what is read and written again: tokens forward, gradients backward.
Section permutation(const Workload& workload, const Shard& shard, bool back) {
  if (workload.experts.dispatcher != Dispatcher::alltoall) return {};
  if (dispatches_by_masks(workload)) return by_masks(workload, shard, back);
  const double states = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
  const int copies = workload.model.moe->top_k;
  const double bytes = states * (1 + copies), added = workload.fusions.permutation ? bytes : states * (1 + 3 * copies);
  const PassKernels& kernels = workload.fusions.permutation_kernels;
  const double elements = static_cast<double>(shard.spread_tokens * shard.hidden) * copies;
  const PassCopies& adds = workload.fusions.token_adds;
  return pointwise(back ? "unpermute" : "permute", {back ? added : bytes, back ? bytes : added, kernels.forward, kernels.backward,
                                                    back ? adds.forward * elements : 0, back ? 0 : adds.backward * elements});
}

// HybridEP reads who sends what to whom, and writes where each token goes: 4 bytes for each token and rank, and of those for the rank's own
// experts 5 for each token and expert (metadata_preprocess_core in csrc/hybrid_ep/executor/executor.cu); a second kernel rounds the numbers
// of tokens up. Backward has them.
Section routing_scan(const Workload& workload, const Shard& shard) {
  if (!by_hybridep(workload)) return {};
  const auto tokens = static_cast<double>(shard.spread_tokens);
  const double places = tokens * (4 * workload.parallel.ep + 5 * workload.model.moe->experts);
  return pointwise(std::string(routing_scan_name),
                   {.forward_bytes = routing_map_bytes(workload) + places, .forward_kernels = 2, .backward_kernels = 0});
}

Section routed(const Workload& workload) {
  const MoeSpec& moe = *workload.model.moe;
  const workloads::Parallel& parallel = workload.parallel;
  Section section;
  section.forward.emplace_back(RoutedExperts{Pass::forward});
  section.backward.emplace_back(RoutedExperts{Pass::backward_input, true});
  const double ffn = static_cast<double>(moe.ffn) / parallel.etp, width = ffn * (workload.model.gated() ? 2 : 1);
  const auto h = static_cast<double>(workload.model.routed_width());
  const double biases = workload.model.biases ? width + h : 0;
  const int held = moe.experts / parallel.ep;
  section.parameters = section.expert_parameters = held * (h * (width + ffn) + biases);
  return section;
}

// Between the hidden size and the width that routed experts work in: duplicated over tp, each rank projects its own tokens
// (fc1_latent_proj and fc2_latent_proj in megatron/core/transformer/moe/moe_layer.py, NVIDIA/Megatron-LM d98e8a6).
Section narrowed(const Workload& workload, const Shard& shard) {
  if (!workload.model.narrows()) return {};
  Shard alone = shard;
  alone.tp = 1;
  const Linear down{"latent_fc1", shard.spread_tokens, workload.model.routed_width(), shard.hidden, workload.model.biases};
  return column_parallel(workload, alone, down, "experts");
}
Section widened(const Workload& workload, const Shard& shard) {
  if (!workload.model.narrows()) return {};
  Shard alone = shard;
  alone.tp = 1;
  const Linear up{latent_fc2, shard.spread_tokens, shard.hidden, workload.model.routed_width(), workload.model.biases};
  return row_parallel(workload, alone, up, "experts");
}

std::vector<Section> shared(const Workload& workload, const Shard& shard) {
  const int experts = workload.model.moe->shared;
  if (experts == 0) return {};
  const std::int64_t ffn = static_cast<std::int64_t>(experts) * workload.model.moe->ffn / shard.tp;
  const bool bias = workload.model.biases;
  const auto part = [](Section section) { return part_of(RecomputeModule::shared_experts, std::move(section)); };
  const Linear fc1 = mlp_input(workload, shard, "shared_fc1", ffn);
  return {part(column_parallel(workload, shard, fc1, "shared experts")),
          part(activation(workload, shard, static_cast<double>(shard.tokens * ffn), workload.fusions.activation)),
          part(row_parallel(workload, shard, {"shared_fc2", shard.tokens, shard.hidden, ffn, bias}, "shared experts"))};
}

}  // namespace

Section pairing(const Workload& workload) {
  return workload.overlap.ep ? launched("pairing", workload.fusions.pairing_kernels) : Section{};
}

namespace {

// Of attention and router: replayed as one graph they are one autograd node.
Section pairing_of_attention(const Workload& workload) {
  return workload.captures(GraphScope::attn) ? within(GraphScope::moe_preprocess, workload, pairing(workload)) : pairing(workload);
}

}  // namespace

std::vector<Section> moe_sections(const Workload& workload, const Shard& shard) {
  const auto routing = [&](Section section) { return within(GraphScope::moe_router, workload, std::move(section)); };
  const auto preprocessing = [&](Section section) { return within(GraphScope::moe_preprocess, workload, std::move(section)); };
  Shard sent = shard;  // as what travels
  sent.hidden = workload.model.routed_width();
  std::vector<Section> sections{routing(part_of(RecomputeModule::layernorm, norm(workload, shard, "post_norm"))),
                                routing(router(workload, shard)),
                                routing(of_experts(choice(workload, shard))),
                                of_experts(pairing_of_attention(workload)),
                                preprocessing(narrowed(workload, shard)),
                                preprocessing(of_experts(permutation(workload, sent, false))),
                                of_experts(wire_copies(workload, sent, static_cast<double>(shard.spread_tokens))),
                                of_experts(routing_scan(workload, shard)),
                                routed(workload),
                                of_experts(permutation(workload, sent, true)),
                                widened(workload, shard)};
  for (Section& section : shared(workload, shard)) sections.push_back(routing(std::move(section)));
  add_residual(sections, workload, shard, "mlp", workload.model.biases);
  return sections;
}

}  // namespace rehearse::workloads

// A module of a layer with its forward and backward items. Sections are listed in forward order; backward runs them in reverse.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/mixer.hpp"
#include "workloads/operators.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::workloads {

struct Section {
  std::vector<Item> forward;
  std::vector<Item> backward;  // in execution order
  double parameters = 0;
  double expert_parameters = 0;                          // of those, what belongs to routed experts
  double adapters = 0;                                   // of those, what belongs to adapters
  std::optional<RecomputeModule> module = std::nullopt;  // that it is part of
  std::optional<LayerOutput> output = std::nullopt;      // that it makes, or a part of it
};
[[nodiscard]] Section part_of(RecomputeModule module, Section section);
// The norm before a product, which `layernorm` runs again where it does at all.
[[nodiscard]] Section norm_of(const Workload& workload, Section section);
[[nodiscard]] Section makes(LayerOutput output, Section section);
// What the host issues as it does routing and experts (experts.issue of a stack).
[[nodiscard]] Section of_experts(Section section);
[[nodiscard]] BlockProgram of_experts(BlockProgram program);
// Part of a graph, where the plan captures what it belongs to.
[[nodiscard]] Section within(GraphScope scope, const Workload& workload, Section section);

// Memory-bound kernels: bytes moved forward and backward, the launches of each, and elements that are added to one by one; eager: they are
// PyTorch's own operators. A section without bytes has no item.
struct Traffic {
  double forward_bytes = 0, backward_bytes = 0;
  int forward_kernels = 1, backward_kernels = 1;
  double forward_adds = 0, backward_adds = 0;
  bool eager = false;
};
[[nodiscard]] Section pointwise(const std::string& name, const Traffic& traffic, OperatorClass cls = OperatorClass::memory_bound);
[[nodiscard]] Operator memory_bound(std::string name, double bytes, Pass pass, int kernels = 1);
// Casts to or from 8 or 4 bits, or transposes what was cast.
[[nodiscard]] Operator narrow_cast(std::string name, double bytes, Pass pass, int kernels = 1);
// Items, or operators, behind others.
template <class T>
void append(std::vector<Item>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}
// The same by PyTorch's own operators, unless a compiler has fused them.
[[nodiscard]] Operator by_operators(bool compiled, Operator kernel);

// Frozen weights of layers that are kept as products in this type read them.
[[nodiscard]] bool keeps_frozen(const Workload& workload, DType type);
// What puts a ring's steps together, kept as attention is.
inline constexpr std::string_view ring_joining = "ring_joining";
// What cuts tensors for an all-to-all over the context-parallel group, and what puts together what arrives.
inline constexpr std::string_view exchange_copies = "exchange_copies";
// The linear layer behind experts that are narrower than their layer, back to its width.
inline constexpr const char* latent_fc2 = "latent_fc2";

// Of the micro-batches, those whose gradients a kernel of their own adds to others: all, or where autograd adopts the first one's the
// rest, and of sums that are reduced in every micro-batch only the rank's shard. Experts' lie over fewer ranks.
[[nodiscard]] double added_share(const Workload& workload);
[[nodiscard]] double added_share_of_experts(const Workload& workload);

// In the place of what frozen weights have no gradients for: it takes no time.
[[nodiscard]] Operator frozen(std::string name);

// Behind the name of the layer whose weights a pass casts anew to 8 or 4 bits.
inline constexpr const char* weight_cast = " weight cast";
// Whether it is this layer's product, or the cast of the weights that it reads.
[[nodiscard]] bool is_product_of(const Operator& op, const std::string& layer);

// y = x w over m tokens with k inputs and n outputs on this GPU.
struct Linear {
  std::string name;
  std::int64_t m = 0, n = 0, k = 0;
  bool bias = false;
  int products = 1;                         // that make up y, each of the same x
  std::vector<std::int64_t> adapters = {};  // columns on this GPU of what each adapter beside it adds to
  bool cast_input = false;                  // what makes x writes it in the product's type
  bool cast_gradient = false;               // what makes the gradient of y likewise
  bool input_beside = false;                // what makes x is compiled in one graph with this layer, and is no product or attention
  bool gradient_beside = false;             // what makes the gradient of y likewise
  bool input_found = false;                 // what makes x finds its largest value beside that
  bool gradient_found = false;              // what makes the gradient of y likewise
  bool summed_later = false;                // row parallel: y is summed over tp with what is added to it
};

// Tensor-parallel linear layers with the collectives where Megatron-LM places them (Shoeybi et al. 2019, Korthikanti et al. 2022 figure 5).
// Column: gathers the sequence before the product and reduces the input gradient. Row: reduces the output, gathers the output gradient.
[[nodiscard]] Section column_parallel(const Workload& workload, const Shard& shard, const Linear& linear, const std::string& where);
[[nodiscard]] Section row_parallel(const Workload& workload, const Shard& shard, const Linear& linear, const std::string& where);
// Whether attention and the MLP beside it are added before one sum over tp, and that sum; backward gathers their gradient once.
[[nodiscard]] bool merges_branches(const Workload& workload, const Shard& shard);
[[nodiscard]] Section merged_sum(const Workload& workload, const Shard& shard);
// The first matrix of an MLP of this width, or where it is gated the two of gate and up.
[[nodiscard]] Linear mlp_input(const Workload& workload, const Shard& shard, std::string name, std::int64_t ffn);

// The same product for each of `groups` experts, whose rows m together are: a grouped GEMM. Not tensor parallel.
[[nodiscard]] Section grouped_linear(const Workload& workload, const Shard& shard, const Linear& linear, int groups);

// The output projection to the vocabulary: column parallel, in 16 bits.
[[nodiscard]] Section output_linear(const Workload& workload, const Shard& shard, const Linear& linear, const std::string& where);

// LayerNorm or RMSNorm of the tokens outside the tensor-parallel region; written: bytes of each element that it gives, where that is less
// than those of one that it reads.
[[nodiscard]] Section norm(const Workload& workload, const Shard& shard, const std::string& name, std::optional<double> written = {});
// The one over what products gave, in 16 bits: RMSNorm as it comes, LayerNorm cast to fp32 under autocast (casts_for_norm), and the
// gradient of that back; of_product: what is behind it.
[[nodiscard]] Section norm_of_product(const Workload& workload, const Shard& shard, const std::string& name);
[[nodiscard]] Shard of_product(const Workload& workload, Shard shard);
// The one before a column-parallel layer, which may cast for it, and whether it does.
[[nodiscard]] Section norm_before(const Workload& workload, const Shard& shard, const std::string& name);
[[nodiscard]] bool norm_casts(const Workload& workload, const Shard& shard);
// Whether it finds the largest value of what that layer casts.
[[nodiscard]] bool norm_finds(const Workload& workload, const Shard& shard);
// Bytes that a cast writes of each element of what a linear layer multiplies, for one product or, transposed, for the other as well.
[[nodiscard]] double cast_bytes(const Workload& workload, const Shard& shard, bool transposed);
// Whether a stack's norms and activations can write what products in this precision read: 8 bits, by scales that are known before (delayed)
// or belong to few values (MXFP8).
[[nodiscard]] bool may_fuse_casts(const Precision& precision);
// Whether they can find the largest value, by which the cast behind them scales: of tensors, and in 4 bits of blocks and tensors that
// nothing transforms.
[[nodiscard]] bool may_find_scales(const Precision& precision);
// Whether they do, and whether they do this.
[[nodiscard]] bool finds_scales(const Workload& workload, const Shard& shard);
[[nodiscard]] bool fuses_casts(const Workload& workload, const Shard& shard);

// What the host issues for rotary embedding that the stack does not fuse.
[[nodiscard]] PassKernels separate_rope(const Workload& workload);
// And for how long: in a loop over documents as for routing and experts.
[[nodiscard]] Section rotated_apart(const Workload& workload, Section section);
[[nodiscard]] std::vector<Section> attention_sections(const Workload& workload, const Shard& shard);
[[nodiscard]] std::vector<Section> mlp_sections(const Workload& workload, const Shard& shard);
[[nodiscard]] std::vector<Section> latent_attention_sections(const Workload& workload, const Shard& shard);  // MLA
// What the host does more for each piece of a layer (attention and router; experts) when two micro-batches are interleaved.
[[nodiscard]] Section pairing(const Workload& workload);
// Norm, router, routed experts (an item of their own), shared experts, residual.
[[nodiscard]] std::vector<Section> moe_sections(const Workload& workload, const Shard& shard);
// Activation function over rows x width elements, its gate beside it, in one kernel or operator by operator.
// casts: it writes, and in backward its gradient is written, as the products of linear layers read them.
[[nodiscard]] Section activation(const Workload& workload, const Shard& shard, double elements, bool fused, bool casts = false);
// Whether autocast makes unfused attention take the softmax of its scores in fp32.
[[nodiscard]] bool softmax_in_fp32(const Workload& workload);
[[nodiscard]] Section core_attention(const Workload& workload, const Shard& shard);
// Of all-to-all context parallelism: tensors of these widths of each token, a call each, and the copies around them; to_heads: the sequence
// is exchanged for heads, else back.
void add_exchange(std::vector<Item>& items, const Shard& shard, const char* name, const std::vector<std::int64_t>& widths, Pass pass,
                  bool to_heads);
// What stands in the place of attention (workloads/mixer.hpp), with convolution and scan or, where they are priced by sequence, without;
// and what of it a GPU scans.
[[nodiscard]] std::vector<Section> mixer_sections(const Workload& workload, const Shard& shard, bool scans = true);
[[nodiscard]] MixerShare mixer_share(const MixerSpec& spec, const Shard& shard);

// Of a branch that ends here: where the model has them its norm; bias, dropout and residual after a row-parallel layer, and the sum of the
// two gradients that meet there in backward. Of attention beside the MLP no sum.
void add_residual(std::vector<Section>& sections, const Workload& workload, const Shard& shard, const std::string& branch, bool bias);
// Where an MLP ends beside which attention stands: bias and dropout of the MLP, the sum of both branches, that over tp where they have one
// for both, and the residual; backward the sums of the three gradients that meet at the layer's input.
void add_joined_residual(std::vector<Section>& sections, const Workload& workload, const Shard& shard, bool bias);

[[nodiscard]] BlockProgram assemble(const std::vector<Section>& sections);
[[nodiscard]] std::vector<Item> as_recompute(std::vector<Item> items);

}  // namespace rehearse::workloads

// What one GPU computes and communicates for a layer, the embedding, the head and the optimizer: FLOPs, bytes moved, parameters,
// activations, after tensor, sequence and context parallelism. No time in here; sim/cost prices it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "workloads/plan.hpp"

namespace rehearse::workloads {

enum class OperatorClass : std::uint8_t { gemm, attention, memory_bound, embedding, loss, optimizer };
enum class Pass : std::uint8_t { forward, backward_input, backward_weight, recompute, update };

// One kernel (or a fused one) on one GPU for one micro-batch.
struct Operator {
  std::string name;  // "qkv", "core_attention", "mlp_fc1", "input_norm", ...
  OperatorClass cls = OperatorClass::gemm;
  Pass pass = Pass::forward;
  DType dtype = DType::bf16;
  double flops = 0;                  // multiply-add = 2
  double bytes = 0;                  // moved to and from device memory
  double adds = 0;                   // atomic adds to single elements in it
  std::int64_t m = 0, n = 0, k = 0;  // gemm: 2*m*n*k = flops
  // attention: one causal or full attention of batch x heads over query x key positions
  std::int64_t batch = 0, heads = 0, kv_heads = 0, query = 0, key = 0, head_dim = 0;
  bool causal = false;
  int kernels = 1;  // launches
  // Of its outputs, those that a library allocates by torch.empty (Transformer Engine's products, norms and attention), which PyTorch fills
  // first where algorithms are deterministic.
  double allocated_bytes = 0;
  int block_sums = 0;                              // of them those that add up what blocks have of a small weight's gradient
  double times = 1;                                // it takes so many times what the GPU's file says
  GroupedKernel grouped = GroupedKernel::library;  // gemm: of rows sorted by expert, by this kernel
  bool captured = false;                           // in a graph that is replayed: the host issues nothing
  bool batched = false;                            // gemm: one for each head of a sequence (unfused attention)
  bool by_blocks = false;                          // gemm in 8 bits, its operands scaled by blocks of values
  bool casts = false;                              // memory_bound: to or from 8 or 4 bits, or transposes what was cast
  bool whole = false;                              // gemm: router or head, whose weights have 16 bits in checkpoints of any width
  bool eager = false;                              // memory-bound kernels of PyTorch's own operators, one after another
  bool behind_gather = false;                      // not before the parameters of the next turn are there, where ZeRO-3 gathers them ahead
  bool of_experts = false;                         // of routing, permutations and experts, whose kernels have a host time of their own
};

enum class CollectiveKind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv };
[[nodiscard]] std::string_view name_of(CollectiveKind kind);  // "all-reduce", ...

// ep: ranks among which the experts are spread; etp: ranks that share each expert; edp: ranks that hold the same experts. to_host,
// from_host, host_memory: a GPU alone, with its host.
enum class GroupKind : std::uint8_t { tp, cp, dp, dp_cp, pp, embedding, shard, replicas, ep, etp, edp, to_host, from_host, host_memory };
inline constexpr int network_group_kinds = 11;           // those of several GPUs come first
[[nodiscard]] std::string_view name_of(GroupKind kind);  // "tp", ...; dp_cp, the group that gradients are reduced over, is "dp"

// A collective in the middle of a layer. `bytes` is the size of the full (gathered or reduced) buffer of one rank, as nccl-tests count:
// all-reduce: the buffer; all-gather: the output; reduce-scatter and all-to-all: the input; send_recv: the message, or what is copied to or
// from the host, or what the host's processors move through its memory.
struct Exchange;  // workloads/exchange.hpp
struct Communication {
  std::string name;  // "attention all-gather"
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::tp;
  double bytes = 0;
  Pass pass = Pass::forward;
  std::shared_ptr<const Exchange> exchange = nullptr;  // all-to-all: what each pair of members exchanges; none: equal parts
  bool for_later = false;                              // the product that follows does not need it
  bool captured = false;
  bool in_line = false;  // overlap.tp puts no product beside it
};

// Ring attention over the cp group: cp steps; step i computes attention against one key/value block while the next block travels.
struct RingAttention {
  Operator step;           // attention of one of the cp steps (they are equal: causal work is balanced by zig-zag placement)
  double block_bytes = 0;  // keys and values (forward) or keys, values and their gradients (backward) sent per step
  Pass pass = Pass::forward;
  [[nodiscard]] Communication block() const {
    Communication sent{"attention block", CollectiveKind::send_recv, GroupKind::cp, block_bytes, pass};
    sent.captured = step.captured;
    return sent;
  }
};

// What the host issues in one pass (forward, say) of one layer, embedding or head. It runs ahead of the GPU: only when all of it takes the
// host longer than the GPU does the GPU wait.
struct PassQueue {
  // A product and the collective beside it, each so many times one after the other, `together` of both at once. By default both once,
  // started together; equation (20) has n of either with n - 1 together, a ring (21) one transfer less than attentions.
  struct Pair {
    Operator product;
    Communication collective;
    int products = 1, collectives = 1, together = 1;
  };
  std::vector<Operator> operators;  // outside of pairs: what the GPU waits for the host in the pass is booked with them
  std::vector<Communication> calls;
  std::vector<Pair> pairs = {};
  int issued_calls = 0;  // without those in graphs; also those beside another pass's operators: the host gets no further ahead meanwhile
};

// Where the routed experts stand in a layer: dispatch, experts and combine, in chunks (workloads/expert_layer.hpp says what they are).
struct RoutedExperts {
  Pass pass = Pass::forward;      // backward_input: and in the same place the weight gradient, when it is not split off
  bool weight_gradients = false;  // backward_input only
  bool operator==(const RoutedExperts&) const = default;
};

using Item = std::variant<Operator, Communication, RingAttention, RoutedExperts>;

// In execution order. With cp > 1 attention is a RingAttention item, otherwise an Operator.
struct BlockProgram {
  std::vector<Item> forward;
  std::vector<Item> recompute;   // what runs again before backward under the given recompute setting; pass = recompute
  std::vector<Item> backward;    // input and weight gradients, told apart by `pass`
  double parameters = 0;         // held by this GPU (after tp; before ZeRO)
  double expert_parameters = 0;  // those of them that belong to routed experts, whose replicas are other ranks
  double adapters = 0;           // those of them that belong to adapters
};

// Of an optimizer on the host (equation 28), in bytes: gradients down, what its memory would move in the update's time, weights up.
struct HostUpdate {
  double gradients = 0, moved = 0, weights = 0;
  [[nodiscard]] bool happens() const { return moved > 0; }
};
enum class LayerKind : std::uint8_t { dense, experts, none };       // none: of one block, which is no MLP
enum class Reach : std::uint8_t { sequence, window, state, none };  // of a layer's attention; state: a mixer in its place
struct LayerShape {
  LayerKind kind = LayerKind::dense;
  Reach reach = Reach::sequence;
  auto operator<=>(const LayerShape&) const = default;
};
// MTP modules count on after the last layer.
[[nodiscard]] LayerShape shape_of(const Model& model, int layer);
// Whether it is one of those at the ends that stay in bf16 beside others in fewer bits; multi-token prediction is not.
[[nodiscard]] bool is_wide(const Workload& workload, int layer);
// What the programs of wide layers are made of.
[[nodiscard]] Workload of_wide_layers(const Workload& workload);

// What a step does once with all that this GPU holds, however the optimizer is shared out.
struct HeldParameters {
  double gradients = 0;                           // parameters whose gradients it has
  double layers = 0, experts = 0;                 // parameters of layers, and of those the routed experts'
  double dense_updated = 0, experts_updated = 0;  // of layers, after ZeRO: outside of routed experts, and theirs
  int tensors = 0;                                // of parameters that are updated
};

// Tensors of a layer's adapters.
[[nodiscard]] int adapter_tensors(const Workload& workload);

struct OptimizerProgram {
  std::vector<Operator> update;  // on this GPU's share, and what is done with all that it holds
  HostUpdate on_host;
};

// tp, sp, cp, micro-batch, precision and recompute are taken from the workload. recomputed says whether this layer is recomputed in full
// (workload.recompute.kind == full and the layer is among the recomputed ones).
[[nodiscard]] BlockProgram layer_program(const Workload& workload, bool recomputed, LayerKind kind = LayerKind::dense,
                                         Reach reach = Reach::sequence);
// Of all adapters of the model, on all GPUs.
[[nodiscard]] double adapter_parameters(const Workload& workload);
// A multi-token-prediction module (DeepSeek-V3 report, section 2.2): the next token's embedding joined to the hidden states, and one more
// layer. holds_embedding: a copy of the table lies on this stage too.
[[nodiscard]] BlockProgram prediction_program(const Workload& workload, bool recomputed, bool holds_embedding);
[[nodiscard]] BlockProgram embedding_program(const Workload& workload);  // token and position look-up, and the sp/tp reduction
[[nodiscard]] BlockProgram head_program(const Workload& workload);       // final norm, logits, vocabulary-parallel cross entropy
// Over `parameters` (after ZeRO), clipping norm included. Adam reads gradients, reads and writes master weights and moments, writes
// weights. Muon (Jordan et al. 2024) does so of one moment for the matrices of layers, and makes each nearly orthogonal by five steps of
// Newton and Schulz in 16 bits; what is no layer's stays Adam's.
[[nodiscard]] OptimizerProgram optimizer_program(const Workload& workload, double parameters, const HeldParameters& held = {});
// Bytes a pipeline stage sends to the next one per micro-batch and GPU (the activations; gradients have the same size).
[[nodiscard]] double pipeline_message_bytes(const Workload& workload);

// Activation bytes that forward leaves for backward, per layer and micro-batch on one GPU (Korthikanti et al. 2022, equations 1-6,
// generalised to GQA, gated MLPs, flash attention and cp).
[[nodiscard]] double layer_activation_bytes(const Workload& workload, bool recomputed, LayerKind kind = LayerKind::dense,
                                            Reach reach = Reach::sequence);
// Of a layer with experts, for each (token, expert) pair that this GPU's experts get, beside the bytes above.
[[nodiscard]] double received_activation_bytes(const Workload& workload, bool recomputed);
// Those bytes by tensor where nothing is computed again, since backward gives them back on its way through the experts.
struct PairTensors {
  double input = 0;    // of the first product, and copies that stay before it
  double inner = 0;    // between the products, the last one's input among them
  double active = 0;   // the last one's input
  double outputs = 0;  // what the gradient of the pairs' weights reads
  [[nodiscard]] double all() const { return input + inner + outputs; }
};
[[nodiscard]] PairTensors pair_tensors(const Workload& workload);

}  // namespace rehearse::workloads

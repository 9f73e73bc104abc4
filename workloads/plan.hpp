// How a model is trained: the parallel plan, the batch and the optimisations, as the job file states them (docs/job-format.md). Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/model.hpp"

namespace rehearse::workloads {

enum class DType { fp32, bf16, fp16, fp8, fp4 };
[[nodiscard]] double bytes_of(DType type);  // 4, 2, 2, 1, 0.5
[[nodiscard]] std::string_view name_of(DType type);
[[nodiscard]] constexpr bool is_narrow(DType type) { return type == DType::fp8 || type == DType::fp4; }

// How attention sees the whole sequence under context parallelism: keys and values pass round a ring (ring attention), are gathered before
// (Llama 3), or the sequence is exchanged for heads before and after (DeepSpeed-Ulysses).
enum class ContextComm { ring, all_gather, all_to_all };

struct Parallel {
  int tp = 1, cp = 1, pp = 1, dp = 1, ep = 1, etp = 1, vpp = 1;
  ContextComm cp_comm = ContextComm::ring;
  bool sp = false;                                               // sequence parallelism on the tp group
  bool whole_messages = false;                                   // each rank of tp sends all of the activations (a habit of the stack)
  std::vector<std::string> order{"tp", "cp", "ep", "dp", "pp"};  // innermost first
  std::vector<int> layers_per_stage;  // of each model chunk in forward order (looping schedules: k*pp + s is chunk k of stage s); empty =
                                      // even, remainder to the middle

  // Ranks of a stage that hold the same experts.
  [[nodiscard]] int expert_replicas() const { return std::max(1, tp * cp * dp / (etp * ep)); }
};

struct Batch {
  int global = 1, micro = 1, sequence = 1;
  int document = 0;  // tokens of each of the documents that a sequence is packed of, and that attention stays within; 0: it is one

  [[nodiscard]] int context() const { return document > 0 ? std::min(document, sequence) : sequence; }  // that attention sees
  [[nodiscard]] int documents() const { return document > 0 ? micro * ((sequence + context() - 1) / context()) : 1; }  // of a micro-batch
};

// How products in 8 bits get their scales, by the names of Megatron-Core's --fp8-recipe and of torchao's recipes: one of a tensor from
// steps before, or from the tensor itself, whose largest value is looked for first; one for each row of what a product sums along, which
// rowwise_with_gw_hp leaves out of weight gradients: their products stay in 16 bits; one for each 128 values, or (OCP's MX formats) for
// each 32. In 4 bits, nvfp4: one for each 16 values and one of the tensor itself (Transformer Engine's NVFP4BlockScaling).
enum class Scaling : std::uint8_t { delayed, tensorwise, rowwise, rowwise_with_gw_hp, blockwise, mxfp8, nvfp4 };
[[nodiscard]] constexpr bool by_rows(Scaling recipe) { return recipe == Scaling::rowwise || recipe == Scaling::rowwise_with_gw_hp; }

struct Precision {
  DType compute = DType::bf16;                       // of the matrix products
  DType weights = DType::bf16;                       // as stored and communicated
  DType gradients = DType::fp32;                     // as accumulated and reduced
  DType optimizer = DType::fp32;                     // master weights
  DType moments = DType::fp32;                       // both moments of Adam
  std::optional<DType> attention = std::nullopt;     // of core attention; none: as compute, but in 16 bits where that has fewer
  std::optional<DType> param_gather = std::nullopt;  // in which replicas keep and gather the weights of layers; none: as weights
  Scaling recipe = Scaling::delayed;
  int bf16_at_start = 0, bf16_at_end = 0;                // layers at either end whose products are in bf16
  std::optional<DType> head = std::nullopt;              // of the head's products; none: as compute, but in 16 bits where that has fewer
  std::optional<DType> activation_input = std::nullopt;  // in which an MLP keeps what its activation function reads; none: as it is
  std::optional<DType> experts = std::nullopt;           // of the products of routed experts; none: as compute
  [[nodiscard]] DType of_experts() const { return experts.value_or(compute); }
  [[nodiscard]] bool in_fp8() const { return compute == DType::fp8 || experts == DType::fp8; }  // some products of layers
  [[nodiscard]] bool in_fp4() const { return compute == DType::fp4 || experts == DType::fp4; }
  [[nodiscard]] int wide_layers() const { return bf16_at_start + bf16_at_end; }
  // Attention in 8 bits is of what Transformer Engine's autocast holds, which leaves these layers out.
  [[nodiscard]] Precision of_wide_layers() const {
    Precision wide = *this;
    wide.compute = DType::bf16;
    wide.experts.reset();
    wide.recipe = Scaling::delayed;
    if (attention && is_narrow(*attention)) wide.attention.reset();
    return wide;
  }
};

enum class Attention { flash, unfused };
enum class RecomputeKind { none, selective, full };
// What selective recomputation can drop and compute again, by the names of Megatron-Core's --recompute-modules.
enum class RecomputeModule { core_attn, layernorm, mla_up_proj, mlp, mlp_act, moe_act, shared_experts };
[[nodiscard]] bool has_module(const Model& model, RecomputeModule module);
// What a layer that is recomputed in full may keep all the same, by the names of Megatron-Core's modules: queries, keys and values as
// attention reads them, the output of attention, of its projection, and of the products of a dense MLP (jax.checkpoint's policies,
// PyTorch's selective checkpointing); expert_fc2: what experts give, a row for each pair, before it is added up.
enum class LayerOutput : std::uint8_t { linear_qkv, core_attention, linear_proj, linear_fc1, linear_fc2, expert_fc2 };
[[nodiscard]] bool has_output(const Model& model, LayerOutput output);
struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  std::vector<RecomputeModule> modules = {};  // kind selective; none named: core attention
  int full_layers = -1;                       // kind full: the first N layers of every GPU's share; -1 = all
  std::vector<LayerOutput> kept = {};         // kind full
  bool shards_inputs = false;                 // kind full: each rank of tp keeps its part of a layer's input, and backward gathers it
  // kind selective without modules: attention and every second product are kept, all else is computed again; of products in 8 bits none,
  // unless `narrow_too` (habits of the stack)
  bool by_product = false, narrow_too = false;
  bool stops_early = false;  // kind full: nothing is computed again after the last tensor that backward reads (a habit of the stack)
  [[nodiscard]] bool every_second_product() const { return by_product && kind == RecomputeKind::selective && modules.empty(); }
  [[nodiscard]] bool keeps(LayerOutput output) const { return std::find(kept.begin(), kept.end(), output) != kept.end(); }
  [[nodiscard]] bool drops(RecomputeModule module) const {
    if (kind != RecomputeKind::selective || every_second_product()) return false;
    return modules.empty() ? module == RecomputeModule::core_attn : std::find(modules.begin(), modules.end(), module) != modules.end();
  }
};

// What low-rank adapters may stand beside, by the names of Megatron-Bridge's LoRA, which has one for a fused linear layer, and its
// CanonicalLoRA, which has one for each matrix in it.
enum class LoraTarget : std::uint8_t {
  linear_qkv,
  linear_q,
  linear_k,
  linear_v,
  linear_proj,
  linear_fc1,
  linear_fc1_gate,
  linear_fc1_up,
  linear_fc2
};

// Bytes of a weight that bitsandbytes or torchao keep as NormalFloat 4 (Dettmers et al. 2023, arXiv 2305.14314, section 3): half a byte,
// the 8-bit scale of its block of 64, and the fp32 scale of 256 such blocks.
inline constexpr double nf4_value = 0.5, nf4_bytes = nf4_value + 1.0 / 64 + 4.0 / (64 * 256);

// Low-rank adapters (Hu et al. 2021, arXiv 2106.09685): y = x w + s (x a) b, where a and b are trained and all else is frozen.
struct Lora {
  int rank = 0;  // columns of a and rows of b; 0: no adapters, all weights are trained
  std::vector<LoraTarget> targets{LoraTarget::linear_qkv, LoraTarget::linear_proj, LoraTarget::linear_fc1, LoraTarget::linear_fc2};
  double dropout = 0;                           // probability, of their inputs
  std::optional<DType> weights = std::nullopt;  // of a and b, and of all around them; none: as the layer has its own in 16 bits
  bool nf4 = false;                             // the frozen matrices of layers are kept in 4 bits (QLoRA)
  bool operator==(const Lora&) const = default;
  [[nodiscard]] bool on() const { return rank > 0; }
  [[nodiscard]] bool adapts(LoraTarget target) const { return on() && std::find(targets.begin(), targets.end(), target) != targets.end(); }
};

enum class OptimizerKind : std::uint8_t { adam, muon };

// What ZeRO-3 gathers once more for the backward of a layer that was computed again in full: nothing; adapters that are units of their own
// in it; the whole layer, where the checkpoint stands around its unit and backward calls that as forward does (with re-entrance).
enum class GatheredAgain : std::uint8_t { none, adapters, all };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::adam;
  int zero_stage = 0;   // none 0, zero1 (distributed optimizer), zero2, zero3 (FSDP)
  int shard_group = 0;  // ranks over which ZeRO shards; 0 = dp*cp
  // ZeRO-2 and 3: gradients lie whole until the last micro-batch, behind which they are reduced (FSDP's no_sync)
  bool no_sync = false;
  bool on_cpu = false;
  // Habits of the stack. ZeRO-3: one collective per parameter tensor, or matrix of an adapter, beside nothing; ZeRO-1 and 2: every rank
  // gets the whole sum of the gradients.
  bool by_tensor = false, by_adapter = false, all_reduces = false;
  GatheredAgain gathered_again = GatheredAgain::none;  // another
  bool by_owner = false;  // ZeRO-1 and 2: whole tensors belong to ranks, which broadcast them one after another
  bool copies = false;    // a habit too: ZeRO-2 and 3 copy weights out of what was gathered, and gradients into what is reduced
  bool flat = false;      // the other: weights are views of what was gathered, whose gradients are joined, cast and divided (FSDP1)
  bool root = false;      // ZeRO-3: embedding, last norm and head are one unit, which stays gathered until the last backward is over (FSDP)
  bool joins_at_once = false;  // before the next unit's parameters are asked for; else, with ZeRO-3, when they are there
  double host_rate = 1;        // of the host memory's, what an update there reaches
  [[nodiscard]] bool muon() const { return kind == OptimizerKind::muon; }
};

struct Overlap {
  bool tp = false;
  int tp_splits = 4;
  bool cp = true;
  bool ep = false;
  bool pp = true;
  bool dp_gradients = false;
  bool dp_parameters = false;
  bool delay_wgrad = false;  // experts: weight gradients behind the start of the exchange that follows the input gradients
};

// How tokens reach their experts and come back: one message per pair of ranks; every rank gets all tokens of its group; or over the network
// once per domain and token, and from there over the scale-up fabric (DeepEP).
enum class Dispatcher { alltoall, allgather, hierarchical };

// How the ranks of an expert-parallel group differ in where they send their tokens: all in the layer's proportions; by chance, every token
// choosing by the layer's popularity; or each by a popularity of its own.
enum class Senders { alike, sampled, own };

// Tokens that an expert gets in a layer for a micro-batch, out of a file.
struct RoutedTokens {
  int step = 0, layer = 0, microbatch = 0, expert = 0;
  double tokens = 0;
  int sender = 0;  // Senders::own: the place in the expert-parallel group of the rank that they come from
};

// How the routed experts of MoE layers work (docs/moe.md).
struct ExpertPlan {
  std::string routing = "balanced";  // a registered name (workloads/routing.hpp)
  double skew = 0;                   // zipf: exponent; dirichlet: concentration; the load-balancing loss
  Senders senders = Senders::alike;
  std::vector<RoutedTokens> counts;  // of routing: counts, sorted by step, layer, micro-batch, sender, expert
  std::uint64_t seed = 1;            // of random routing
  double capacity_factor = 0;        // an expert takes at most so many times its balanced share; 0: all that come
  int pad_to = 0;                    // every expert's rows are filled up to a multiple of so many; to_capacity: to what it takes at most
  static constexpr int to_capacity = -1;
  int nodes_per_token = 0;  // the most domains that one token's experts may lie in; 0: any number
  Dispatcher dispatcher = Dispatcher::alltoall;
  int chunks = 1;                           // pieces of a layer's tokens whose exchange and computation overlap; 0: tuned to memory
  std::vector<int> thresholds{1, 2, 4, 8};  // what tuning chooses from, ascending
  bool chunk_recompute = false;             // backward brings every chunk's tokens back and runs its experts' forward again
  std::vector<int> layer_chunks;            // [layer, then MTP layers] what tuning chose; empty: `chunks` everywhere
  [[nodiscard]] int chunks_of(int layer) const { return layer_chunks.empty() ? chunks : layer_chunks[static_cast<std::size_t>(layer)]; }
};

// How finely a step is cut into operations.
enum class Granularity { stage, layer, op };

// Launches of a module.
struct PassKernels {
  int forward = 1, backward = 1;
};

// Times that a tensor is read and written.
struct PassCopies {
  double forward = 0, backward = 0;
};

// So many times as long.
struct PassTimes {
  double forward = 1, backward = 1;
};

// Kernels that multiply rows sorted by expert, all experts at once: as fast as dense products (a vendor's library), PyTorch's own, or
// MaxText's on TPUs. What of a GPU's line each reaches is the GPU's.
enum class GroupedKernel : std::uint8_t { library, torch, megablox, streams, turbo };

// Kernels that send tokens to their experts themselves (Dispatcher::hierarchical): what they send beside them, and whether they deliver
// them sorted by expert (docs/moe.md).
enum class DispatchKernels : std::uint8_t { deepep, hybridep };

// Kernels that the training stack fuses. Each fusion that is missing moves its tensors through device memory more often
// (docs/operators.md).
struct KernelFusions {
  bool softmax = true;                  // unfused attention: scale, mask and softmax in one kernel
  bool norm = true;                     // RMSNorm in one kernel (LayerNorm always is)
  bool activation = true;               // bias and activation, or gate and product, in one kernel
  bool dropout_add = true;              // bias, dropout and residual in one kernel
  bool rope = true;                     // rotary embedding in one kernel
  bool cross_entropy = true;            // vocabulary-parallel loss without fp32 intermediates
  bool gradient_accumulation = true;    // weight-gradient GEMM adds into the gradient buffer
  bool optimizer = true;                // whole Adam update in one pass
  bool log_softmax = false;             // the loss of a whole vocabulary is torch.nn.functional.cross_entropy, fused or not
  bool adopts_gradients = false;        // the first micro-batch's gradients become what later ones are added to
  bool whole_logits = false;            // gathered over tp: every rank computes the loss of the whole vocabulary
  bool whole_head = false;              // every rank of tp has the whole table and head, and computes all of the logits and the loss
  int vocab_multiple = 128;             // words that the vocabulary is padded to whole multiples of, for each rank of tp
  bool remakes_logits = false;          // the loss keeps no logits: backward computes them again
  int loss_pieces = 1;                  // head and loss work on so many parts of the tokens one after another, forward and backward at once
  bool widens_pieces = false;           // each part's gradient of the table is cast to fp32 and added to the sum by operators
  bool repeats_kv = false;              // keys and values are copied for every query head before flash attention
  bool joined_norms = false;            // norms before attention's and dense MLPs' first product are a part of its module: drops_norm()
  bool attention_copied = false;        // flash attention keeps its output, of which the projection reads a copy in another order
  bool packed_qkv = false;              // the product stays whole beside what is rotated and made contiguous of it
  bool keeps_gathered = false;          // sequence parallelism: what is gathered for products stays until their backward
  bool separate_qkv = false;            // queries, keys and values are three products of one input
  bool separate_gate = false;           // a gated MLP's first two matrices are two products
  bool fused_adapters = false;          // LoRA: products scale what they give, and add it to what is there
  bool reduces_by_product = false;      // without sequence parallelism: separate products reduce their input gradients one by one
  bool gathers_by_product = false;      // with it: they gather their input, and scatter its gradient, one by one
  bool copies_shared = false;           // without it: separate products copy their input, all-reduces their gradient
  bool merges_branches = false;         // attention beside the MLP: both are added before one sum over tp
  bool joins_gathered = false;          // sequence parallelism: a copy joins what was gathered, and cuts what is scattered
  bool autocast = false;                // weights and hidden states are fp32, and products read copies in 16 bits: autocasts()
  bool compiled = false;                // chains of pointwise operators are one kernel
  bool grouped_gemm = true;             // one kernel for all of a rank's experts; otherwise each expert has its own
  bool low_precision_dispatch = false;  // 8-bit layers: tokens travel to their experts in 8 bits
  bool permutation = true;              // tokens are sorted by expert, and added up again, by a kernel each
  bool gathers_counts = false;          // what each rank has for each expert is gathered before tokens are dispatched
  bool exchanges_weights = false;       // after the all-to-all of tokens another one has their weights
  bool stacked_experts = false;         // one tensor has the weights of all experts; without grouped products each adds to a whole gradient
  bool replays_dispatch = false;        // full recomputation takes what was dispatched and combined from memory
  bool eager_experts = false;           // their activation is two operators also where a compiler fuses what is around them
  bool fills_blocks = false;            // their rows are filled up to whole blocks for products in 8 or 4 bits, where nothing before has
  bool kept_copies = false;  // dispatcher allgather: gathered tokens and the copies that are sorted stay (torch.gather saves its input)
  // What the host issues, in kernels: to route a layer's tokens; for each of the two permutations around the all-to-all; for each of the
  // two sorts around the experts that another dispatcher leaves to it; more for each piece of a layer (attention and router; experts) when
  // forward and backward of two micro-batches are interleaved (overlap.ep).
  PassKernels routing_kernels{6, 4}, permutation_kernels{2, 1}, sorting_kernels{0, 0}, pairing_kernels{0, 0};
  // The same for each expert, beside its products, where they are no grouped ones: it finds its tokens, gathers, weights and adds them up.
  PassKernels loop_kernels{0, 0};
  // Pointwise operators around a layer's experts beside permutation, activation and sums: of the states of pairs of token and expert; of
  // what the experts' first product gives.
  PassCopies pair_copies, product_copies;
  // Where states of pairs are added to those of tokens by atomic adds, element by element (scatter_add, index_add_, the gradient of an
  // index): how often around the all-to-all, and where tokens are sorted around the experts.
  PassCopies token_adds, sort_adds;
  double expert_activation_kept = 0;  // tensors of its width that an activation of several operators keeps for its weights and offsets
  double kept_outputs = 0;            // bytes an element of what experts give that the gradient of the pairs' weights keeps
  // Reads and writes of what their first and their second product gives, where experts have biases: expert by expert, of each of which the
  // host knows the rows, unless biases are gathered by token.
  PassCopies gate_bias_copies, bias_copies;
  bool gathered_biases = false;
  DispatchKernels dispatch_kernels = DispatchKernels::deepep;
  int wire_multiple = 1;  // kernels that dispatch tokens themselves send states in whole multiples of so many elements
  // Of what their first product gives, where the model clamps both halves of it.
  PassCopies clamp_copies;
  // Rotary embedding that is not fused: what the host issues for queries and keys, and reads and writes of both; or document by document
  // where sequences are packed.
  PassKernels rope_kernels{8, 8};
  PassCopies rope_copies{4.5, 4.5};
  bool rope_by_document = false;
  // An activation function of several operators, in layers without experts and in shared ones: more that the host issues, more reads and
  // writes of tensors of the MLP's width, and how many more of these stay until backward.
  PassKernels activation_kernels{0, 0};
  PassCopies activation_copies;
  double activation_kept = 0;
  int update_kernels = 0;  // of an update that is not fused, for each tensor of parameters; 0: torch's foreach kernels, over all of them
  PassCopies loss_copies;  // of the fp32 logits, by a loss that is not fused, beside Megatron-LM's operators
  PassCopies fused_loss_copies;  // of the same, by a loss that is fused in several kernels, beside those of one
  // Of norms over a width that Transformer Engine has no tuned kernels for, against what the GPU's file says.
  PassTimes untuned_norm_time;
  PassTimes head_norm_time;    // the same of LayerNorm over the queries and keys of each head
  bool sums_by_block = false;  // norms over heads: few threads add up what blocks have of their weights' gradients
  // overlap.tp: a product's own rows beside the gather of the others, then those; no other product is cut.
  bool own_tokens_first = false;
  bool zeroes_gradients = false;  // the buffer of all gradients is set to zero once per step
  int gradient_checks = 0;        // of each bucket's norm before it is reduced, each waited for by the host; 0: none is made
  // Several replicas: the buckets that are reduced are divided, cast to the weights' type and set to zero by operators of their own.
  bool copies_buckets = false;
  bool casts_weights = false;  // products in 8 or 4 bits: weights are cast once per step, as they are and transposed
  bool fused_casts = false;    // norms and gated activations write the 8 bits that the next product reads, or the one before in backward
  bool transposes_frozen = false;                         // frozen weights in 8 bits are transposed anew for every product of backward
  GroupedKernel grouped_kernel = GroupedKernel::library;  // of its products of all experts at once
  bool any_order = false;  // 8 bits by one scale: products read both operands as they lie, and no copy is transposed (the GPU's)
};

// What of a layer is replayed as a CUDA graph, by the names of Megatron-Core's --cuda-graph-scope: attention with its norm and
// projections; a dense MLP; norm, router and shared experts; the permutation of tokens.
enum class GraphScope : std::uint8_t { attn, mlp, mamba, moe_router, moe_preprocess };

struct Workload {
  Model model;
  Parallel parallel;
  Batch batch;
  Precision precision;
  Attention attention = Attention::flash;
  std::string schedule = "1f1b";
  Recompute recompute;
  Lora lora = {};
  Optimizer optimizer;
  ExpertPlan experts;
  bool offload_activations = false;
  int offload_layers = -1;       // of every GPU's share, the first so many; -1: all
  double offload_share = 1;      // of their activations' bytes
  bool offload_weights = false;  // ZeRO-3's shards, beside an optimizer on the host
  std::vector<GraphScope> graphs = {};
  Overlap overlap;
  KernelFusions fusions;

  [[nodiscard]] bool captures(GraphScope scope) const { return std::find(graphs.begin(), graphs.end(), scope) != graphs.end(); }
  [[nodiscard]] DType trained_weights() const { return lora.on() && lora.weights ? *lora.weights : precision.weights; }
  [[nodiscard]] int gpus() const { return parallel.tp * parallel.cp * parallel.pp * parallel.dp; }
  [[nodiscard]] int microbatches() const { return batch.global / (parallel.dp * batch.micro); }  // per replica
};

// Whether recompute: {modules: [layernorm]} runs a norm again and drops what it gave. joined: the norm before the first product of
// attention that is not latent, of a mixer or of a dense MLP, which a stack may have in that product's module (joined_norms).
[[nodiscard]] inline bool drops_norm(const Workload& workload, bool joined) {
  return workload.recompute.drops(RecomputeModule::layernorm) && !(joined && workload.fusions.joined_norms);
}

// Which layers and ends a pipeline stage holds, per model chunk (virtual stage).
struct Chunk {
  int first_layer = 0;
  int layers = 0;
  bool embedding = false;  // the first chunk of the model
  bool head = false;       // the last chunk of the model: final norm, head and loss
};
// [stage][chunk], after layers_per_stage or the even split (remainder to the middle stages), where the schedule puts them.
[[nodiscard]] std::vector<std::vector<Chunk>> split_layers(const Workload& workload);

// Floating-point operations of forward + backward for one sequence by the convention of model_flops_per_sequence. With adapters, which are
// not counted, frozen matrices have no weight gradients: two thirds of theirs (Megatron-Bridge's flop_utils.py).
[[nodiscard]] double step_flops_per_sequence(const Workload& workload, bool causal_half);

// Whether the embedding and the head are on the same GPU: without pipeline, and where the schedule leads a micro-batch back or both ways.
[[nodiscard]] bool ends_meet(const Workload& workload);

}  // namespace rehearse::workloads

// The sizes that one GPU sees of a workload, after tensor, sequence and context parallelism.
#pragma once

#include <cstdint>

#include "workloads/operators.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

struct Shard {
  std::int64_t batch = 0;          // sequences of a micro-batch
  std::int64_t sequence = 0;       // positions on this context-parallel rank
  std::int64_t tokens = 0;         // batch * sequence
  std::int64_t context = 0;        // of the positions those of one document: the sequence, unless it is packed of several
  std::int64_t spread_tokens = 0;  // tokens of the operators outside the tensor-parallel region: tokens / tp under sequence parallelism
  std::int64_t tp = 1, cp = 1;
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;  // kv_heads >= 1: fewer key/value heads than tp are replicated
  std::int64_t query_width = 0;                        // heads * head_dim
  std::int64_t kv_width = 0;                           // kv_heads * head_dim, of the keys or of the values
  std::int64_t ffn = 0;                                // intermediate size
  std::int64_t window = 0;                             // positions that attention is confined to; 0: the whole sequence
  std::int64_t head_tp = 1;                            // over which table and head are cut: tp, or 1 where every rank has them whole
  std::int64_t vocab = 0;                              // padded to a multiple of 128 * head_tp, divided by that
  std::int64_t loss_vocab = 0;                         // of the logits that the loss sees: vocab, or all of it where they are gathered
  bool sp = false;
  bool dropout = false;        // masks and their kernels
  double element = 2;          // bytes of an activation
  double state = 2;            // of a hidden state between layers: 4 under autocast
  double normed = 2;           // of what a norm gives: as hidden states, in 16 bits where a compiler casts in its kernel
  DType linear = DType::bf16;  // of the linear layers, or of the routed experts'
  DType dense = DType::bf16;   // of the head, and of core attention unless it is named: 16 bits when the linear layers use 8 or 4
  DType attention = DType::bf16;

  [[nodiscard]] bool gathers_logits() const { return loss_vocab > vocab; }
  // Products read copies of it that autocast makes in a kernel each.
  [[nodiscard]] bool casts_normed() const { return normed > element; }
  [[nodiscard]] bool low_precision() const { return is_narrow(linear); }
};

// Whether autocast casts to fp32 what a norm reads of products.
[[nodiscard]] bool casts_for_norm(const Workload& workload, const Shard& shard);

// Per element, what a norm of PyTorch's operators keeps more than one kernel that keeps its input: RMSNorm has its input in fp32, in place
// of its own type, and the normed input before the weight. Of 16 bits 4 + 2 for 2, of fp32 (its copy is the input itself) 4 + 4 for 4.
[[nodiscard]] double unfused_norm_bytes(const Workload& workload);
// Whether the stack's mixed precision is torch.autocast here: a habit. Of weights in fp32, also where ZeRO-3 gathers them so (FSDP without
// a MixedPrecisionPolicy); or, the same below ZeRO-3, of weights said to be in 16 bits beside masters in fp32.
[[nodiscard]] bool autocasts(const Workload& workload);
// Whether keys and values are copied for every query head before flash attention, in place of which these are kept.
[[nodiscard]] inline bool repeats_kv(const Workload& workload, const Shard& shard) {
  return workload.fusions.repeats_kv && shard.kv_heads < shard.heads && shard.cp == 1 && workload.attention == Attention::flash;
}
// Of a layer, what a rank has of it between layers.
[[nodiscard]] double layer_input_bytes(const Workload& workload, const Shard& shard);
// Of a weight as products read it: as it is kept, or in autocast's copy.
[[nodiscard]] double product_weight_bytes(const Workload& workload);

// Throws InputError when heads, intermediate size or sequence cannot be divided as the plan asks.
[[nodiscard]] Shard shard_of(const Workload& workload);
// Of a layer whose attention reaches so far; without attention it has no heads.
[[nodiscard]] Shard shard_of(const Workload& workload, Reach reach);

// Of a rank's routed experts, which may work in a narrower width than the layer's, and whose products may be in another precision than
// those of its rest.
[[nodiscard]] Shard expert_shard_of(const Workload& workload);

// Rows of the vocabulary after padding to whole multiples, of as many for each rank of tp (Megatron-LM's make-vocab-size-divisible-by,
// 128).
[[nodiscard]] std::int64_t padded_vocabulary(int vocab, int tp, int multiple);

}  // namespace rehearse::workloads

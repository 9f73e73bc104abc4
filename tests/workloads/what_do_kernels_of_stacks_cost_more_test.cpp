// What a stack's own kernels take more than those that are counted for all: of a loss that is not fused or is in pieces, of norms without
// tuned kernels, and of norms over heads.
#include <gtest/gtest.h>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

constexpr double batch_tokens = 2 * 4096, vocabulary = 128256;

Workload llama_of_width(int hidden) { return llama(4, hidden, 32, 8, 14336, 128256, 4096, 2); }

// A copy is a read and a write of 4 bytes; a fused loss has none.
TEST(LossCopies, AreOfTheLogitsInFp32) {
  Workload plain = llama_of_width(4096), more = plain;
  more.fusions.loss_copies = {4.5, 1.5};
  EXPECT_EQ(find(head_program(more).forward, "cross_entropy").bytes, find(head_program(plain).forward, "cross_entropy").bytes);
  plain.fusions.cross_entropy = more.fusions.cross_entropy = false;
  const BlockProgram with = head_program(more), without = head_program(plain);
  EXPECT_EQ(find(with.forward, "cross_entropy").bytes - find(without.forward, "cross_entropy").bytes, 36 * batch_tokens * vocabulary);
  EXPECT_EQ(find(with.backward, "cross_entropy").bytes - find(without.backward, "cross_entropy").bytes, 12 * batch_tokens * vocabulary);
}

// The same of a fused loss, by copies of its own.
TEST(FusedLossCopies, AreOfTheFusedLossAlone) {
  Workload plain = llama_of_width(4096), more = plain;
  more.fusions.fused_loss_copies = {1.75, 0.5};
  const double logits = batch_tokens * vocabulary;
  const BlockProgram with = head_program(more), without = head_program(plain);
  EXPECT_EQ(find(with.forward, "cross_entropy").bytes - find(without.forward, "cross_entropy").bytes, 14 * logits);
  EXPECT_EQ(find(with.backward, "cross_entropy").bytes - find(without.backward, "cross_entropy").bytes, 4 * logits);
  plain.fusions.cross_entropy = more.fusions.cross_entropy = false;
  EXPECT_EQ(find(head_program(more).forward, "cross_entropy").bytes, find(head_program(plain).forward, "cross_entropy").bytes);
}

// Queries' and keys' weights are summed over the blocks apart, in backward, by a stack that does so for a fused RMSNorm.
TEST(HeadNorms, AddUpWhatBlocksHaveOfTheirWeights) {
  Workload headed = llama_of_width(4096);
  headed.model.qk_norm = true;
  const auto sums = [&](const char* name) { return find(layer_program(headed, false).backward, name).block_sums; };
  EXPECT_EQ(sums("qk_norm"), 0);
  headed.fusions.sums_by_block = true;
  EXPECT_EQ(sums("qk_norm"), 2);
  EXPECT_EQ(sums("input_norm"), 0);
  EXPECT_EQ(find(layer_program(headed, false).forward, "qk_norm").block_sums, 0);
  headed.fusions.norm = false;
  EXPECT_EQ(sums("qk_norm"), 0);
  headed.fusions.norm = true;
  headed.model.norm = Norm::layernorm;
  EXPECT_EQ(sums("qk_norm"), 0);
}

// In 16 bits: what products, fused norms and flash attention write, a weight's gradient where it is not added to the buffer; PyTorch's own
// operators, the head among them, allocate without torch.empty. 32 heads of 128, 8 of keys and values.
TEST(AllocatedOutputs, AreThoseOfALibrarysKernels) {
  Workload llama = llama_of_width(4096);
  const BlockProgram added = layer_program(llama, false);
  const auto written = [](const std::vector<Item>& items, const char* name, Pass pass) {
    double bytes = 0;
    for (const Item& item : items) {
      const auto* op = std::get_if<Operator>(&item);
      if (op != nullptr && op->name == name && op->pass == pass) bytes += op->allocated_bytes;
    }
    return bytes;
  };
  const double hidden = 2 * batch_tokens * 4096, qkv = 1.5 * hidden;
  EXPECT_EQ(written(added.forward, "qkv", Pass::forward), qkv);
  EXPECT_EQ(written(added.forward, "input_norm", Pass::forward), hidden);
  EXPECT_EQ(written(added.forward, "core_attention", Pass::forward), hidden);
  EXPECT_EQ(written(added.forward, "activation", Pass::forward), 0);
  EXPECT_EQ(written(added.backward, "qkv", Pass::backward_input), hidden);
  EXPECT_EQ(written(added.backward, "core_attention", Pass::backward_input), qkv);
  EXPECT_EQ(written(added.backward, "qkv", Pass::backward_weight), 0);
  llama.fusions.gradient_accumulation = llama.fusions.norm = false;
  const BlockProgram apart = layer_program(llama, false);
  EXPECT_EQ(written(apart.backward, "qkv", Pass::backward_weight), 2.0 * 4096 * 6144);
  EXPECT_EQ(written(apart.forward, "input_norm", Pass::forward), 0);
  EXPECT_EQ(written(head_program(llama).forward, "logits", Pass::forward), 0);
  EXPECT_EQ(written(head_program(llama).backward, "logits", Pass::backward_weight), 0);
}

// torch.nn.functional.cross_entropy, bytes a logit of 16 bits. Apart: 2 + 4 to fp32, three reads and a write of 4; backward zeros of 4,
// three reads and a write of 4, 4 + 2 back. Compiled: two reads of 2, backward a read and a write. Where each rank of tp has a part of the
// vocabulary there is no such operator.
TEST(TorchLoss, ReadsLogitsAsItsKernelsDo) {
  Workload torch = llama_of_width(4096);
  torch.fusions.log_softmax = true;
  const double logits = batch_tokens * vocabulary;
  for (const bool fused : {true, false}) {
    torch.fusions.cross_entropy = fused;
    EXPECT_EQ(find(head_program(torch).forward, "cross_entropy").bytes, (fused ? 4 : 22) * logits);
    EXPECT_EQ(find(head_program(torch).backward, "cross_entropy").bytes, (fused ? 4 : 26) * logits);
    Workload parts = torch;
    parts.parallel.tp = 2;
    const double of_part = find(head_program(parts).forward, "cross_entropy").bytes;
    parts.fusions.log_softmax = false;
    EXPECT_EQ(find(head_program(parts).forward, "cross_entropy").bytes, of_part);
  }
  torch.precision.compute = DType::fp32;  // logits in fp32 are not cast
  EXPECT_EQ(find(head_program(torch).forward, "cross_entropy").bytes, 16 * logits);
  EXPECT_EQ(find(head_program(torch).backward, "cross_entropy").bytes, 20 * logits);
}

// 4,096 has tuned kernels and 5,120 has not; what is not fused is no kernel of Transformer Engine's.
TEST(UntunedNorms, TakeLongerByTheirWidth) {
  for (const bool fused : {true, false}) {
    Workload tuned = llama_of_width(4096), general = llama_of_width(5120);
    for (Workload* w : {&tuned, &general}) {
      w->fusions.norm = fused;
      w->fusions.untuned_norm_time = {2.6, 17.9};
    }
    EXPECT_EQ(find(head_program(tuned).forward, "final_norm").times, 1);
    EXPECT_EQ(find(head_program(tuned).backward, "final_norm").times, 1);
    EXPECT_EQ(find(head_program(general).forward, "final_norm").times, fused ? 2.6 : 1);
    EXPECT_EQ(find(head_program(general).backward, "final_norm").times, fused ? 17.9 : 1);
  }
}

// LayerNorm has tuned kernels for other widths: 5,120 and 1,536 among them, not GPT-2 XL's 1,600 nor 512.
TEST(UntunedNorms, HaveOtherWidthsForLayerNorm) {
  for (const std::int64_t width : {512, 1536, 1600, 5120}) {
    Workload w = llama_of_width(width);
    w.model.norm = Norm::layernorm;
    w.fusions.norm = true;
    w.fusions.untuned_norm_time = {2.2, 1.3};
    const bool tuned = width == 1536 || width == 5120;
    EXPECT_EQ(find(head_program(w).forward, "final_norm").times, tuned ? 1 : 2.2);
    EXPECT_EQ(find(head_program(w).backward, "final_norm").times, tuned ? 1 : 1.3);
  }
}

}  // namespace
}  // namespace rehearse::workloads::testing

#include <gtest/gtest.h>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

constexpr double rows = 2.0 * 1024, states = rows * 1024;

// Micro-batch 2, sequence 1,024, hidden 1,024, norms in one kernel each, eager.
Workload eager(bool autocast) {
  Workload workload = llama(4, 1024, 16, 4, 2816, 32000, 1024, 2);
  workload.fusions.autocast = autocast;
  workload.fusions.separate_qkv = workload.fusions.separate_gate = true;
  return workload;
}

// Hidden states are fp32: a norm reads and writes 4 bytes an element, and three passes of them backward.
TEST(Autocast, NormsAndSumsPassOverHiddenStatesInFp32) {
  const BlockProgram layer = layer_program(eager(true), false);
  EXPECT_EQ(find(layer.forward, "input_norm").bytes, states * (4 + 4));
  EXPECT_EQ(find(layer.backward, "input_norm").bytes, states * 3 * 4);
  // The branch comes in 2 bytes; backward the sum of two gradients in 4 is cast for the branch's product.
  EXPECT_EQ(find(layer.forward, "mlp_residual").bytes, states * (2 + 4 + 4));
  EXPECT_EQ(find(layer.backward, "mlp_residual").bytes, states * (3 * 4 + 4 + 2));
}

// Of the three products of attention and the two of the MLP each casts the normed input (4 + 2), its gradient comes back (2 + 4) and is
// added up in fp32.
TEST(Autocast, EveryProductCastsItsInput) {
  const BlockProgram layer = layer_program(eager(true), false);
  EXPECT_EQ(find(layer.forward, "qkv autocast").bytes, 3 * states * 6);
  EXPECT_EQ(find(layer.backward, "qkv autocast").bytes, 3 * states * 6);
  EXPECT_EQ(find(layer.forward, "mlp_fc1 autocast").bytes, 2 * states * 6);
  EXPECT_EQ(find(layer.backward, "qkv input gradient sum").bytes, 2 * states * 3 * 4);
  EXPECT_EQ(find(head_program(eager(true)).forward, "logits autocast").bytes, states * 6);
  // The host's time of the operators that are counted holds that of their casts.
  EXPECT_EQ(find(layer.forward, "qkv autocast").kernels, 0);
  // Inputs of row-parallel products are in 16 bits already.
  for (const Operator& op : operators(layer.forward)) EXPECT_NE(op.name, "mlp_fc2 autocast");
}

// RMSNorm of operators: square, mean, product and weight, all of fp32, without the casts: 28 bytes an element where 16 bits take 36.
TEST(Autocast, NormsOfOperatorsCastNothing) {
  Workload narrow = eager(false), wide = eager(true);
  narrow.fusions.norm = wide.fusions.norm = false;
  EXPECT_EQ(find(layer_program(narrow, false).forward, "input_norm").bytes, states * 36);
  EXPECT_EQ(find(layer_program(wide, false).forward, "input_norm").bytes, states * 28);
}

// A compiler's norm reads fp32 and writes what the products read.
TEST(Autocast, ACompilerCastsInTheNorm) {
  Workload compiled = eager(true);
  compiled.fusions.compiled = true;
  const BlockProgram layer = layer_program(compiled, false);
  EXPECT_EQ(find(layer.forward, "input_norm").bytes, states * (4 + 2));
  EXPECT_EQ(find(layer.backward, "input_norm").bytes, states * (2 + 4 + 4));
  EXPECT_EQ(find(layer.forward, "mlp_residual").bytes, states * (2 + 4 + 4));
  for (const Operator& op : operators(layer.forward)) EXPECT_FALSE(op.name.ends_with("autocast"));
}

// LayerNorm over queries and keys is in fp32 as well: what the product gave is cast for it.
TEST(Autocast, LayerNormOverHeadsIsInFp32) {
  Workload workload = eager(true);
  workload.model.qk_norm = true;
  workload.model.norm = Norm::layernorm;
  const double elements = rows * (1024 + 256);
  const BlockProgram layer = layer_program(workload, false);
  EXPECT_EQ(find(layer.forward, "qk_norm autocast").bytes, elements * 6);
  EXPECT_EQ(find(layer.forward, "qk_norm").bytes, elements * 8);
  workload.model.norm = Norm::rmsnorm;
  EXPECT_EQ(find(layer_program(workload, false).forward, "qk_norm").bytes, elements * 4);
}

// RMSNorm reads and writes what products gave as it is, in 16 bits: behind a branch, and of latent queries, keys and values, whose products
// cast nothing.
TEST(Autocast, RmsNormOverWhatProductsGaveIsInSixteenBits) {
  Workload workload = eager(true);
  workload.model.post_norms = true;
  EXPECT_EQ(find(layer_program(workload, false).forward, "attention_post_norm").bytes, states * (2 + 2));
  workload.model.mla = MlaSpec{};
  workload.model.mla->q_lora = 384;
  workload.model.mla->kv_lora = 128;
  workload.model.mla->qk_nope = workload.model.mla->v = 64;
  workload.model.mla->qk_rope = 32;
  const BlockProgram layer = layer_program(workload, false);
  EXPECT_EQ(find(layer.forward, "kv_norm").bytes, rows * 128 * (2 + 2));
  EXPECT_EQ(find(layer.forward, "kv_down autocast").bytes, states * (4 + 2));
  for (const Operator& op : operators(layer.forward)) EXPECT_NE(op.name, "kv_up autocast");
}

// Products in 8 bits: what comes gathered is narrow, so that fp32 is cast before it; nothing is where the norm wrote 8 bits.
TEST(Autocast, OfProductsInEightBitsComesBeforeTheirCast) {
  Workload workload = eager(true);
  workload.precision.weights = DType::fp32;
  workload.precision.compute = DType::fp8;
  workload.parallel.tp = 4;
  workload.parallel.sp = true;
  EXPECT_EQ(find(layer_program(workload, false).forward, "qkv autocast").bytes, 3 * states / 4 * (4 + 2));
  workload.fusions.fused_casts = true;
  for (const Operator& op : operators(layer_program(workload, false).forward)) EXPECT_NE(op.name, "qkv autocast");
}

// The table is in fp32, and so is what its ranks add up, and what stages send each other.
TEST(Autocast, EmbeddingsAndMessagesAreInFp32) {
  Workload workload = eager(true);
  workload.parallel.tp = 4;
  EXPECT_EQ(communications(embedding_program(workload).forward).front().bytes, states * 4);
  EXPECT_EQ(pipeline_message_bytes(workload), states * 4 / 4);
  workload.parallel.sp = true;
  EXPECT_EQ(communications(embedding_program(workload).backward).front().bytes, states * 4);
}

// Over tp hidden states are gathered as they are, and gradients of them reduced in fp32.
TEST(Autocast, TensorParallelismMovesHiddenStatesInFp32) {
  Workload workload = eager(true);
  workload.parallel.tp = 4;
  for (const bool sp : {false, true}) {
    workload.parallel.sp = sp;
    const BlockProgram layer = layer_program(workload, false);
    for (const Communication& call : communications(layer.backward)) {
      if (call.name.ends_with(sp ? "reduce-scatter" : "all-reduce")) {
        EXPECT_EQ(call.bytes, states * 4) << call.name;
      }
    }
    // Outputs are in 16 bits.
    EXPECT_EQ(communications(layer.forward).back().bytes, states * 2);
  }
}

}  // namespace
}  // namespace rehearse::workloads::testing

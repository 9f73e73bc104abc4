// Tensors that a layer keeps in stacks without fused norms, and in those whose gathers autograd sees.
#include <gtest/gtest.h>

#include "places.hpp"
#include "workloads/operators.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::tests {
namespace {

using workloads::Workload;

// LLaMA 2 7B, tp 4: s h = 2048 x 4096 of one sequence.
Workload kept_by(bool sp) {
  Workload w;
  w.model = workloads::read_model(config::Node::load_file(REHEARSE_SOURCE_DIR "/workloads/models/llama2-7b.yaml"), "llama2-7b");
  w.parallel.tp = 4;
  w.parallel.sp = sp;
  w.batch = {8, 1, 2048};
  return w;
}
constexpr double states = 2048.0 * 4096;

// x in fp32, squared and multiplied by the inverse root, and the 16-bit product that the weight is multiplied with, 4 + 2 bytes, where one
// kernel keeps x in 16 bits: of two norms. PyTorch on one H100 allocates so (tests/measured/cases/transformers.yaml).
TEST(WhatStacksKeepOfActivations, AnUnfusedRmsNormKeepsTwoCopiesForItsInput) {
  for (const bool sp : {false, true}) {
    Workload w = kept_by(sp);
    const double fused = workloads::layer_activation_bytes(w, false);
    w.fusions.norm = false;
    EXPECT_EQ(workloads::layer_activation_bytes(w, false) - fused, 2 * 4 * states / (sp ? 4 : 1));
    w.model.norm = workloads::Norm::layernorm;  // one kernel in any stack
    EXPECT_EQ(workloads::layer_activation_bytes(w, false), fused);
  }
}

// Two heads of keys and values here for eight of queries, of 128: copies of both are six heads wider each, but where core attention is
// computed again, which copies them again.
TEST(WhatStacksKeepOfActivations, KeysAndValuesAreCopiedForEveryHead) {
  Workload w = kept_by(false);
  w.model.kv_heads = 8;
  const auto more = [&] {
    w.fusions.repeats_kv = false;
    const double once = workloads::layer_activation_bytes(w, false);
    w.fusions.repeats_kv = true;
    return workloads::layer_activation_bytes(w, false) - once;
  };
  EXPECT_EQ(more(), 2048 * 2 * 2 * 6 * 128.0);
  w.recompute = {.kind = workloads::RecomputeKind::selective, .modules = {workloads::RecomputeModule::core_attn}};
  EXPECT_EQ(more(), 0);
}

TEST(WhatStacksKeepOfActivations, RecomputationDropsThem) {
  Workload w = kept_by(false);
  w.recompute = {.kind = workloads::RecomputeKind::full, .full_layers = -1};
  const double fused = workloads::layer_activation_bytes(w, true);
  w.fusions.norm = false;
  EXPECT_EQ(workloads::layer_activation_bytes(w, true), fused);
}

// Under autocast x is in fp32 already and is kept as it is, and the product is in fp32 too: 4 + 4 bytes for one kernel's 4.
TEST(WhatStacksKeepOfActivations, AnUnfusedRmsNormOfFp32KeepsOneMore) {
  Workload w = kept_by(false);
  w.fusions.autocast = true;
  const double fused = workloads::layer_activation_bytes(w, false);
  w.fusions.norm = false;
  EXPECT_EQ(workloads::layer_activation_bytes(w, false) - fused, 2 * 4 * states);
}

// The inputs of qkv and fc1 of all tokens instead of a fourth of them.
TEST(WhatStacksKeepOfActivations, GatheredInputsThatAreKept) {
  Workload w = kept_by(true);
  const double spread = workloads::layer_activation_bytes(w, false);
  w.fusions.keeps_gathered = true;
  EXPECT_EQ(workloads::layer_activation_bytes(w, false) - spread, 2 * 2 * states * 3 / 4);
  w.parallel.sp = false;
  Workload plain = kept_by(false);
  EXPECT_EQ(workloads::layer_activation_bytes(w, false), workloads::layer_activation_bytes(plain, false));
}

// torch.autocast over fp32 hidden states: both norms' inputs in 4 bytes, and each of the three and two products that read a normed input
// casts it anew. A compiler keeps one copy, and one of the two inputs in 16 bits.
TEST(WhatStacksKeepOfActivations, AutocastCastsForEveryProduct) {
  Workload w = kept_by(false);
  w.parallel.tp = 1;
  const double plain = workloads::layer_activation_bytes(w, false);
  w.fusions.autocast = true;
  EXPECT_EQ(workloads::layer_activation_bytes(w, false) - plain, (2 * 2 + 2 * (2 + 1)) * states);
  w.fusions.compiled = true;
  EXPECT_EQ(workloads::layer_activation_bytes(w, false) - plain, 2 * states);
  w.optimizer.zero_stage = 3;  // FSDP sets the types, not autocast
  EXPECT_EQ(workloads::layer_activation_bytes(w, false), plain);
}

// Experts between hooks are no part of what a compiler fuses: the function's output stays for its product with the other half.
TEST(WhatStacksKeepOfActivations, EagerExpertsInACompiledBlock) {
  Workload w = kept_by(false);
  w.parallel.tp = 1;
  w.model.activation = workloads::Activation::swiglu;
  w.model.moe = workloads::MoeSpec{.experts = 8, .top_k = 2, .ffn = 512};
  const double pair = workloads::received_activation_bytes(w, false);
  w.fusions.pair_copies = {7, 12};
  w.fusions.compiled = true;
  EXPECT_EQ(workloads::received_activation_bytes(w, false), pair);  // of the router and permutations around a fused activation
  w.fusions.eager_experts = true;
  EXPECT_EQ(workloads::received_activation_bytes(w, false) - pair, 512 * 2);
  EXPECT_EQ(workloads::received_activation_bytes(w, true), 0);
  w.fusions.activation = false;  // which keeps as much
  EXPECT_EQ(workloads::received_activation_bytes(w, false) - pair, 512 * 2);
}

// Outputs that the gradient of their weights reads; and where recomputation exchanges nothing, what came with each exchange.
TEST(WhatStacksKeepOfActivations, WhatExpertsGaveAndGot) {
  Workload w = kept_by(false);
  w.parallel.tp = 1;
  w.model.moe = workloads::MoeSpec{.experts = 8, .top_k = 2, .ffn = 512};
  const double pair = workloads::received_activation_bytes(w, false);
  w.fusions.kept_outputs = 4;
  EXPECT_EQ(workloads::received_activation_bytes(w, false) - pair, 4.0 * w.model.hidden);
  w.parallel.ep = w.parallel.dp = 4;
  w.batch.global = 4 * w.batch.micro;
  EXPECT_EQ(workloads::received_activation_bytes(w, true), 0);
  const double input = workloads::layer_activation_bytes(w, true, workloads::LayerKind::experts);
  w.fusions.replays_dispatch = true;
  EXPECT_EQ(workloads::received_activation_bytes(w, true), 2.0 * w.model.hidden);
  EXPECT_EQ(workloads::layer_activation_bytes(w, true, workloads::LayerKind::experts), 2 * input);  // as large as the layer's input
  w.parallel.ep = 1;                                                                                // nothing is dispatched
  EXPECT_EQ(workloads::received_activation_bytes(w, true), 0);
  EXPECT_EQ(workloads::layer_activation_bytes(w, true, workloads::LayerKind::experts), input);
}

// Of each pair of token and expert the inputs of both products, as they are multiplied; what the layer keeps outside of its experts stays.
TEST(WhatStacksKeepOfActivations, InputsOfExpertsInTheirPrecision) {
  Workload w = kept_by(false);
  w.parallel.tp = 1;
  w.model.moe = workloads::MoeSpec{.experts = 8, .top_k = 2, .ffn = 512};
  const double pair = workloads::received_activation_bytes(w, false);
  const double layer = workloads::layer_activation_bytes(w, false, workloads::LayerKind::experts);
  w.precision.experts = workloads::DType::fp8;
  EXPECT_EQ(workloads::received_activation_bytes(w, false) - pair, -(w.model.hidden + 512.0));
  EXPECT_EQ(workloads::layer_activation_bytes(w, false, workloads::LayerKind::experts), layer);
  w.precision.compute = workloads::DType::fp8;
  w.precision.experts = workloads::DType::bf16;
  EXPECT_EQ(workloads::received_activation_bytes(w, false), pair);
  EXPECT_NE(workloads::layer_activation_bytes(w, false, workloads::LayerKind::experts), layer);
}

// The input of the head's products as it is multiplied: narrower or wider than what the others read.
TEST(WhatStacksKeepOfActivations, TheHeadsInputInItsOwnType) {
  Workload w = kept_by(false);
  const auto kept = [&w] {
    const workloads::StageProgram stage = workloads::stage_programs(w).front();
    return workloads::unit_memory(w, {}, stage.chunks[0].back()).activations;
  };
  const double in_16_bits = kept();
  w.precision.head = workloads::DType::fp8;
  EXPECT_EQ(kept() - in_16_bits, -states);
  w.precision.head = workloads::DType::fp32;
  EXPECT_EQ(kept() - in_16_bits, 2 * states);
}

// Logits that backward computes again are there while either pass is at work, not between them; in pieces the gradients of the input and of
// the table are backward's then.
TEST(WhatStacksKeepOfActivations, NoLogitsThatAreComputedAgain) {
  Workload w = kept_by(false);
  const auto head = [&w] {
    const workloads::StageProgram stage = workloads::stage_programs(w).front();
    return workloads::unit_memory(w, {}, stage.chunks[0].back());
  };
  const auto of = [&](int pieces, bool remakes) {
    w.fusions.loss_pieces = pieces;
    w.fusions.remakes_logits = remakes;
    return head();
  };
  constexpr double words = 32256 / 4, logits = 2 * 2048 * words, table = 2 * 4096 * words;  // 16 bits, of one rank of four
  const workloads::UnitMemory kept = of(1, false), again = of(1, true), in_pieces = of(4, false), pieces_again = of(4, true);
  EXPECT_EQ(kept.activations - again.activations, logits);
  EXPECT_EQ(again.forward_temporary - kept.forward_temporary, logits);
  EXPECT_EQ(again.backward_temporary - kept.backward_temporary, logits);
  EXPECT_EQ(in_pieces.activations - pieces_again.activations, table);
  EXPECT_EQ(pieces_again.backward_temporary - in_pieces.backward_temporary, logits / 4);
}

// Megatron-LM's sharded cross entropy: logits in 16 bits, their copy in fp32 and that less its largest, 10 bytes a logit, until it worked
// in place on the copy, 6; compiled, it does so too. When the table's gradient is made only the logits' gradient is left, so that it lies
// where the copy was. Logits in fp32 have no copy but the one that is not in place.
TEST(WhatStacksKeepOfActivations, ProbabilitiesInPlaceOfTheCopyOfLogits) {
  Workload w = kept_by(false);
  constexpr double logits = 2048 * 32256.0 / 4, gradients_of_states = 2 * 2 * states;
  workloads::MemoryHabits habits;
  const auto head = [&](bool fused, double loss_bytes) {
    w.fusions.cross_entropy = fused;
    habits.loss_bytes = loss_bytes;
    return workloads::unit_memory(w, habits, workloads::stage_programs(w).front().chunks[0].back());
  };
  const auto forward = [](const workloads::UnitMemory& of) { return of.activations + of.forward_temporary; };
  const auto backward = [](const workloads::UnitMemory& of) { return of.activations + of.backward_temporary + of.weight_temporary; };
  const double kept = head(false, 0).activations - 4 * logits;
  EXPECT_EQ(forward(head(false, 0)), kept + 10 * logits);
  EXPECT_EQ(backward(head(false, 0)), kept + 6 * logits + gradients_of_states);
  EXPECT_EQ(backward(head(false, 6)), kept + 6 * logits + gradients_of_states);
  EXPECT_LT(forward(head(false, 6)), backward(head(false, 6)));
  EXPECT_EQ(backward(head(true, 6)), backward(head(false, 6)));
  w.fusions.gradient_accumulation = false;
  EXPECT_EQ(backward(head(false, 6)), kept + 6 * logits + gradients_of_states);  // 4 x 16.5 million logits, 2 x 33 million weights
  w.precision.compute = workloads::DType::fp32;
  const double exact = head(true, 0).activations - 4 * logits;
  EXPECT_EQ(forward(head(false, 0)), exact + 8 * logits);
}

// Pieces that are compiled apart keep all logits in 16 bits, and under autocast a cast of the table each, until backward, which then makes
// the gradients of the input and of the table; a piece's own gradient of the table lies beside the sum, under autocast in 16 bits and in
// fp32.
TEST(WhatStacksKeepOfActivations, LogitsAndCastsOfPiecesThatAreCompiledApart) {
  Workload w = kept_by(false);
  w.fusions.loss_pieces = 4;
  w.fusions.gradient_accumulation = false;
  const auto head = [&w](bool apart) {
    const workloads::StageProgram stage = workloads::stage_programs(w).front();
    workloads::MemoryHabits habits;
    habits.pieces_apart = apart;
    return workloads::unit_memory(w, habits, stage.chunks[0].back());
  };
  constexpr double words = 32256 / 4, logits = 2 * 2048 * words, table = 2 * 4096 * words;  // 16 bits, of one rank of four
  EXPECT_EQ(head(true).activations - head(false).activations, logits - table);
  EXPECT_EQ(head(true).weight_temporary - head(false).weight_temporary, table);
  w.fusions.autocast = true;
  ASSERT_TRUE(workloads::autocasts(w));
  EXPECT_EQ(head(true).activations - head(false).activations, logits + (4 - 1) * table);
  EXPECT_EQ(head(true).weight_temporary - head(false).weight_temporary, (1 + 2) * table);
}

}  // namespace
}  // namespace rehearse::tests

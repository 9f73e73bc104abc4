// What is there at the moment at which a unit's backward holds most: tensors that are given back on the way are not added to those that
// come after them.
#include <gtest/gtest.h>

#include "places.hpp"
#include "workloads/operators.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::tests {
namespace {

using workloads::MemoryHabits;
using workloads::UnitMemory;
using workloads::Workload;

constexpr double llama_hidden = 4096, llama_words = 32000, llama_tokens = 2048;

// Llama 2 7B on one GPU in 16 bits, one sequence of 2048; autograd makes the gradients of its matrices, which go after the update.
Workload one_gpu() {
  Workload w;
  w.model = workloads::read_model(config::Node::load_file(REHEARSE_SOURCE_DIR "/workloads/models/llama2-7b.yaml"), "llama2-7b");
  w.batch = {1, 1, static_cast<int>(llama_tokens)};
  w.fusions.gradient_accumulation = false;
  return w;
}
MemoryHabits freed() {
  MemoryHabits habits;
  habits.gradients_freed = true;
  return habits;
}

UnitMemory experts_of(const Workload& w, const MemoryHabits& habits, double pairs) {
  const workloads::StageProgram stage = workloads::stage_programs(w).front();
  return workloads::unit_memory(w, habits, stage.chunks[0][1]).with_tokens(pairs);
}

// Where outputs are weighted the last product's input (f e) and what the pairs' weights read (h e) are gone around the activation, for
// three gradients of f; where the activation is multiplied with the weight again there are four beside all that forward made. The last
// matrices' gradient is whole by then, 8 h f e; around the first product all 24 h f e are, and of what forward made its input alone.
TEST(WhatBackwardGivesBack, ExpertsTensorsFollowOneAnother) {
  Workload w = one_gpu();
  constexpr double ffn = 14336, e = 2;
  w.model.moe = workloads::MoeSpec{.experts = 8, .top_k = 2, .ffn = static_cast<int>(ffn)};
  const auto taken = [&](const MemoryHabits& habits, double pairs) {
    const UnitMemory all = experts_of(w, habits, pairs), none = experts_of(w, MemoryHabits{}, 0);
    return all.backward_temporary + all.weight_temporary - none.backward_temporary;
  };
  const double matrix = experts_of(w, MemoryHabits{}, 0).weight_temporary;  // the largest of one expert
  EXPECT_EQ(taken(MemoryHabits{}, 1000) - matrix, 1000 * 4 * ffn * e);
  w.fusions.kept_outputs = 2;
  EXPECT_EQ(taken(MemoryHabits{}, 1000) - matrix, 1000 * (2 * ffn - llama_hidden) * e);
  EXPECT_EQ(taken(freed(), 32768), 32768 * (2 * ffn - llama_hidden) * e + 8 * llama_hidden * ffn * e);  // many pairs
  // Few: the input stays, of its product gradients of both sides are there; both halves, the activation's output and outputs went.
  EXPECT_EQ(taken(freed(), 100), 24 * llama_hidden * ffn * e + 100 * (llama_hidden + 2 * ffn - (3 * ffn + llama_hidden)) * e);
}

// Dropout's backward makes the second gradient of the scores' size when the product with the values, which read dropout's output, is over:
// of 2 + 1 + 2 bytes that forward left of a score, and two gradients of 2, 7 are there at most; without dropout all of 2 + 2 x 2.
TEST(WhatBackwardGivesBack, DropoutsOutputIsGoneBeforeTheSecondGradientOfScores) {
  Workload w = one_gpu();
  w.attention = workloads::Attention::unfused;
  const auto backward = [&](double dropout) {
    w.model.dropout = dropout;
    return workloads::unit_memory(w, {}, workloads::stage_programs(w).front().chunks[0][1]).backward_temporary;
  };
  constexpr double scores = 32 * llama_tokens * llama_tokens;
  EXPECT_EQ(backward(0) - backward(0.1), 2 * scores);
}

// The embedding's gradient is the one that the update reads; a table that the head shares has the head's already.
TEST(WhatBackwardGivesBack, TheEmbeddingsGradientIsItsOwn) {
  Workload w = one_gpu();
  const auto embedding = [&](const MemoryHabits& habits) {
    return workloads::unit_memory(w, habits, workloads::stage_programs(w).front().chunks[0][0]).weight_temporary;
  };
  EXPECT_EQ(embedding(freed()), 0);
  EXPECT_EQ(embedding(MemoryHabits{}), llama_words * llama_hidden * 2);  // added to the sum
  w.model.tied_embeddings = true;
  EXPECT_EQ(embedding(freed()), llama_words * llama_hidden * 2);
}

// FSDP2 copies the head's gradients, 2 + 4 bytes, when the last norm's backward is over: of the loss nothing is left. What the head holds
// at most is the larger of the two.
TEST(WhatBackwardGivesBack, LogitsAreGoneWhenTheHeadIsReduced) {
  Workload w = one_gpu();
  w.optimizer.zero_stage = 3;
  w.optimizer.copies = true;
  MemoryHabits habits = freed();
  habits.sharded_master = true;
  habits.loss_bytes = 4;
  const auto head = [&](double sequence) {
    w.batch.sequence = static_cast<int>(sequence);
    const workloads::Unit unit = workloads::stage_programs(w).front().chunks[0].back();
    return workloads::unit_memory(w, habits, unit).with_replicas(workloads::replica_sync(w), workloads::exchanged_at_once(w, habits, unit));
  };
  EXPECT_EQ(head(4 * llama_tokens).bucket, 0);
  const UnitMemory few = head(llama_tokens);
  const double logits = llama_tokens * llama_words * habits.loss_bytes,
               gradients = (llama_words + 1) * llama_hidden * (2 + 4);  // with the norm's
  EXPECT_EQ(logits + few.weight_temporary + few.bucket, gradients);
}

// The last product's output goes into the residual alone, and a compiler does not save what no gradient reads; a norm behind it does.
TEST(WhatBackwardGivesBack, ACompilerSavesNoProductThatNobodyReads) {
  Workload w = one_gpu();
  w.recompute = {.kind = workloads::RecomputeKind::selective, .by_product = true};
  ASSERT_TRUE(w.recompute.every_second_product());
  const double eager = workloads::layer_activation_bytes(w, false);
  w.fusions.compiled = true;
  EXPECT_EQ(eager - workloads::layer_activation_bytes(w, false), llama_tokens * llama_hidden * 2);
}

// Compiled, of the MLP's gradients that of its product alone takes room of its own.
TEST(WhatBackwardGivesBack, ACompilerWritesOverBothHalves) {
  Workload w = one_gpu();
  w.fusions.activation = true;
  const auto layer = [&] { return workloads::unit_memory(w, {}, workloads::stage_programs(w).front().chunks[0][1]).backward_temporary; };
  const double apart = layer();
  w.fusions.compiled = true;
  // then attention's are the most: context, queries, keys and values of 4096 each
  EXPECT_EQ(apart - layer(), llama_tokens * (3 * 11008 - 4 * llama_hidden) * 2);
}

}  // namespace
}  // namespace rehearse::tests

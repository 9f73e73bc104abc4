#include <gtest/gtest.h>

#include <algorithm>

#include "operators_workloads.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

// Layers cut over tp, table and head whole: what a GPU alone does at both ends, and no exchange there.
TEST(WholeHead, EveryRankDoesWhatOneGpuDoesAtBothEnds) {
  Workload cut = parallel(8, false);
  cut.fusions.whole_head = true;
  const Workload alone = parallel(1, false);
  for (const auto program : {&head_program, &embedding_program}) {
    const BlockProgram whole = program(cut), one = program(alone);
    EXPECT_EQ(bytes(whole.forward), bytes(one.forward));
    EXPECT_EQ(bytes(whole.backward), bytes(one.backward));
    EXPECT_EQ(flops(whole.forward), flops(one.forward));
    EXPECT_EQ(flops(whole.backward), flops(one.backward));
    EXPECT_EQ(whole.parameters, one.parameters);
    EXPECT_TRUE(communications(whole.forward).empty());
    EXPECT_TRUE(communications(whole.backward).empty());
  }
  EXPECT_LT(layer_program(cut, false).parameters, layer_program(alone, false).parameters);
}

// GPT-2's 50,257 words: a multiple of 128 for each rank (Megatron-LM's make-vocab-size-divisible-by), or as few as can be cut.
TEST(WholeHead, ComputesThePaddedVocabulary) {
  Workload workload = parallel(1, false);
  workload.model.vocab = 50257;
  const auto words = [&](int tp, int multiple) {
    workload.parallel.tp = tp;
    workload.fusions.vocab_multiple = multiple;
    return shard_of(workload).vocab * tp;
  };
  EXPECT_EQ(words(1, 128), 50304);
  EXPECT_EQ(words(8, 128), 51200);
  EXPECT_EQ(words(1, 1), 50257);
  EXPECT_EQ(words(8, 1), 50264);
  EXPECT_EQ(words(1, 64), 50304);
}

// A loss that keeps no logits: their product once more, first of all in backward.
TEST(WholeHead, LogitsThatAreNotKeptAreComputedTwice) {
  Workload workload = parallel(1, false);
  const BlockProgram kept = head_program(workload);
  workload.fusions.remakes_logits = true;
  const BlockProgram again = head_program(workload);
  const Operator logits = find(again.forward, "logits");
  EXPECT_EQ(flops(again.backward), flops(kept.backward) + logits.flops);
  EXPECT_EQ(bytes(again.backward), bytes(kept.backward) + logits.bytes);
  EXPECT_EQ(flops(again.forward), flops(kept.forward));
  const Operator first = std::get<Operator>(again.backward.front());
  EXPECT_EQ(first.name, "logits");
  EXPECT_EQ(first.pass, Pass::backward_input);
  EXPECT_EQ(operators(again.backward).at(1).name, "cross_entropy") << "which reads them";
}

// Where every rank computes the loss of all logits, these are gathered again as well.
TEST(WholeHead, LogitsThatAreNotKeptAreGatheredTwice) {
  Workload workload = parallel(8, false);
  workload.fusions.whole_logits = true;
  const auto gathers = [&] {
    const std::vector<Communication> calls = communications(head_program(workload).backward);
    return std::ranges::count_if(calls, [](const Communication& call) { return call.name == "head logits all-gather"; });
  };
  EXPECT_EQ(gathers(), 0);
  workload.fusions.remakes_logits = true;
  EXPECT_EQ(gathers(), 1);
}

// A whole table is a whole tensor of its owner.
TEST(WholeHead, OwnersHoldWholeTables) {
  Workload workload = parallel(8, false);
  workload.optimizer.zero_stage = 1;
  workload.optimizer.by_owner = true;
  workload.parallel.dp = workload.optimizer.shard_group = 4;
  const double cut = replica_sync(workload).largest_tensor;
  workload.fusions.whole_head = true;
  EXPECT_EQ(replica_sync(workload).largest_tensor, 8 * cut);
}

}  // namespace
}  // namespace rehearse::workloads::testing

// torchtitan's selective checkpointing (selective_by_product) under sequence parallelism: reduce-scatters are on its list, so that what
// they gave is kept, and none of them runs again.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

constexpr double own_tokens = 1024, all_tokens = 2048, width = 4096;

Workload in_sequences(bool compiled) {
  Workload w = llama(4, 4096, 32, 8, 14336, 32000, 2048, 1);
  w.parallel.tp = 2;
  w.parallel.sp = true;
  w.fusions.compiled = compiled;
  w.recompute = {.kind = RecomputeKind::selective, .by_product = true};
  return w;
}

bool runs_again(const Workload& workload, const std::string& product) {
  return std::ranges::any_of(operators(layer_program(workload, false).recompute), [&](const Operator& op) { return op.name == product; });
}

// In 16 bits the layer's input and the projection's reduce-scatter, of this rank's tokens; of all tokens queries, values, the context, one
// half of fc1, with 4 bytes a head of statistics; of fc2, which a compiler leaves, its output and what its reduce-scatter gave.
TEST(SelectiveByProduct, KeepsWhatReduceScattersGive) {
  const double inside = all_tokens * (2 * (2048 + 512 + 2048 + 7168) + 4 * 16);
  const double states = 2 * own_tokens * width;
  EXPECT_EQ(layer_activation_bytes(in_sequences(true), false), inside + 2 * states);
  EXPECT_EQ(layer_activation_bytes(in_sequences(false), false), inside + 3 * states + 2 * all_tokens * width);
}

TEST(SelectiveByProduct, RunsNoReduceScatterAgain) {
  for (const bool compiled : {false, true}) {
    const Workload workload = in_sequences(compiled);
    for (const Item& item : layer_program(workload, false).recompute) {
      const auto* communication = std::get_if<Communication>(&item);
      EXPECT_TRUE(communication == nullptr || communication->kind != CollectiveKind::reduce_scatter) << communication->name;
    }
    EXPECT_EQ(runs_again(workload, "attention_projection"), !compiled) << "whose output nobody reads";
    EXPECT_TRUE(runs_again(workload, "mlp_fc1"));
  }
}

}  // namespace
}  // namespace rehearse::workloads::testing

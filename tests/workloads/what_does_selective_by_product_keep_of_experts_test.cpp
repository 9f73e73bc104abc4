// torchtitan's selective checkpointing (selective_by_product) of layers with experts: its list has no grouped product, and all-to-alls.
#include <gtest/gtest.h>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

Workload with_experts(int ep) {
  Workload w = llama(4, 2048, 32, 4, 6144, 151936, 4096, 2);
  w.model.head_dim = 128;
  w.model.moe = MoeSpec{.experts = 128, .top_k = 8, .shared = 0, .ffn = 768};
  w.parallel.ep = ep;
  w.parallel.dp = ep;
  w.recompute = {.kind = RecomputeKind::selective, .by_product = true};
  return w;
}

TEST(SelectiveByProduct, KeepsNoProductOfExperts) {
  const Workload w = with_experts(1);
  // Per token the layer's input, queries, values and the context in 16 bits, and 4 bytes of statistics for each head.
  const double per_token = 2.0 * (2048 + 4096 + 512 + 4096) + 4 * 32;
  EXPECT_EQ(layer_activation_bytes(w, false, LayerKind::experts), 2 * 4096 * per_token);
  EXPECT_EQ(received_activation_bytes(w, false), 0);
}

TEST(SelectiveByProduct, KeepsWhatAllToAllsBring) {
  const Workload alone = with_experts(1), spread = with_experts(8);
  EXPECT_EQ(layer_activation_bytes(spread, false, LayerKind::experts) - layer_activation_bytes(alone, false, LayerKind::experts),
            2.0 * 4096 * 8 * 2048 * 2);
  EXPECT_EQ(received_activation_bytes(spread, false), 2048 * 2);
}

}  // namespace
}  // namespace rehearse::workloads::testing

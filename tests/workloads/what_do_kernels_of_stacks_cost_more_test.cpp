// What a stack's own kernels take more than those that are counted for all: of a loss that is not fused, and of norms without tuned
// kernels.
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

}  // namespace
}  // namespace rehearse::workloads::testing

#include <gtest/gtest.h>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

// 16 heads of 64 and 4 of keys and values: each tensor of 256 columns is read and one of 1,024 written, backward the other way round.
// Compiled, keys are written and their gradients read 768 columns wider where they are rotated, and values read and written. Under context
// parallelism they travel as they are.
TEST(OperatorBytes, KeysAndValuesMayBeCopiedForEveryHead) {
  constexpr double tokens = 2.0 * 1024;  // micro-batch 2, sequence 1024
  Workload workload = llama(4, 1024, 16, 4, 2816, 32000, 1024, 2);
  const auto forward = [&] { return layer_program(workload, false).forward; };
  const double once = find(forward(), "core_attention").bytes;
  workload.fusions.repeats_kv = true;
  for (const bool compiled : {false, true}) {
    workload.fusions.compiled = compiled;
    const double bytes = tokens * 2 * (compiled ? 2 * 1024 : 2 * (1024 + 256));
    EXPECT_EQ(find(forward(), "key/value repeat").bytes, bytes);
    EXPECT_EQ(find(forward(), "key/value repeat").kernels, compiled ? 1 : 2);
    EXPECT_EQ(find(layer_program(workload, false).backward, "key/value repeat").bytes, bytes);
  }
  EXPECT_EQ(find(forward(), "core_attention").bytes - once, tokens * 2 * 2 * (1024 - 256));
  EXPECT_EQ(find(forward(), "core_attention").kv_heads, 16);
  const auto repeats = [&] {
    int count = 0;
    for (const Operator& op : operators(forward())) count += op.name == "key/value repeat" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(repeats(), 1);
  workload.parallel.cp = 2;
  EXPECT_EQ(repeats(), 0);
  workload.parallel.cp = 1;
  workload.model.kv_heads = 16;
  EXPECT_EQ(repeats(), 0);
}

}  // namespace
}  // namespace rehearse::workloads::testing

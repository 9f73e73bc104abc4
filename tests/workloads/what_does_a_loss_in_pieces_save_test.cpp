// Head and loss on a part of the tokens at a time (Liger's fused linear cross entropy, torchtitan's chunked loss).
#include <gtest/gtest.h>

#include "operators_workloads.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads::testing {
namespace {

constexpr double positions = 2 * 4096, hidden_width = 4096, entries = 128256;

Workload in_pieces(int pieces) {
  Workload w = llama(4, 4096, 32, 8, 14336, 128256, 4096, 2);
  w.fusions.loss_pieces = pieces;
  return w;
}

struct Totals {
  double flops = 0, bytes = 0;
  int kernels = 0;
};
Totals products(const std::vector<Item>& items, const char* name) {
  Totals sum;
  for (const Item& item : items) {
    const auto* op = std::get_if<Operator>(&item);
    if (op == nullptr || op->name != name) continue;
    sum.flops += op->flops;
    sum.bytes += op->bytes;
    sum.kernels += op->kernels;
  }
  return sum;
}

UnitMemory head_of(const Workload& w, double loss_bytes = 0) {
  MemoryHabits habits;
  habits.loss_bytes = loss_bytes;
  Unit head;
  head.kind = UnitKind::head;
  return unit_memory(w, habits, head);
}

// The same arithmetic, the table once more for every further part: read twice, and its gradient read and written.
TEST(LossInPieces, ReadsTheTableForEachPart) {
  const BlockProgram whole = head_program(in_pieces(1)), parts = head_program(in_pieces(8));
  const Totals forward = products(whole.forward, "logits"), forward_parts = products(parts.forward, "logits");
  EXPECT_EQ(forward_parts.flops, forward.flops);
  EXPECT_EQ(forward_parts.bytes - forward.bytes, 7 * 2 * entries * hidden_width);
  EXPECT_EQ(forward_parts.kernels, 8 * forward.kernels);
  const Totals backward = products(whole.backward, "logits"), backward_parts = products(parts.backward, "logits");
  EXPECT_EQ(backward_parts.flops, backward.flops);
  EXPECT_EQ(backward_parts.bytes - backward.bytes, 7 * 3 * 2 * entries * hidden_width);
  EXPECT_EQ(products(parts.forward, "cross_entropy").bytes, products(whole.forward, "cross_entropy").bytes);
}

// Liger's sum by operators: a part's gradient written, read, written in fp32, read, and added to the sum, 2 + 2 + 4 + 4 + 2 + 2 bytes.
TEST(LossInPieces, MayAddUpItsTableGradientByOperators) {
  Workload widening = in_pieces(8);
  widening.fusions.widens_pieces = true;
  const BlockProgram parts = head_program(in_pieces(8)), wide = head_program(widening);
  const double table = entries * hidden_width;
  const double added = products(wide.backward, "logits").bytes - products(parts.backward, "logits").bytes;
  EXPECT_EQ(added, -7 * 2 * table);  // each product writes what it makes, and adds it to nothing
  EXPECT_EQ(products(wide.backward, "table gradient sum").bytes, 8 * (2 + 4 + 4 + 2 + 2) * table);
  EXPECT_EQ(products(wide.backward, "table gradient sum").kernels, 2 * 8);
  widening.lora.rank = 16;  // a frozen table has no gradient
  EXPECT_EQ(products(head_program(widening).backward, "table gradient sum").kernels, 0);
}

// What waits for backward are gradients of the hidden states and of the table, whatever the vocabulary times the tokens.
TEST(LossInPieces, KeepsNoLogits) {
  const UnitMemory eight = head_of(in_pieces(8)), sixteen = head_of(in_pieces(16));
  EXPECT_EQ(eight.activations, 2 * positions * hidden_width * 2 + entries * hidden_width * 2);
  EXPECT_EQ(sixteen.activations, eight.activations);
  EXPECT_EQ(eight.forward_temporary - sixteen.forward_temporary, positions * entries / 16 * 2);  // the fused loss: logits in 16 bits
  const UnitMemory exact = head_of(in_pieces(8), 12);
  EXPECT_EQ(exact.forward_temporary - eight.forward_temporary, positions * entries / 8 * (12 - 2));
  const UnitMemory whole = head_of(in_pieces(1), 12);
  EXPECT_LT(exact.activations + exact.forward_temporary, (whole.activations + whole.backward_temporary) / 4);
}

}  // namespace
}  // namespace rehearse::workloads::testing

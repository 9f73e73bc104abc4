// overlap.tp: which products run beside which collectives, whole or in pieces, and what the host issues of both.
#include <gtest/gtest.h>

#include <algorithm>

#include "operators_workloads.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

using Names = std::vector<std::string>;

// The reduction of an input gradient does not wait for the weight gradient, nor that for it.
// The gather of the input for the weight gradient beside the input gradient, whose reduction runs beside the weight gradient.
TEST(BesideCollectives, OverlapPutsCollectivesOfBackwardBesideProductsThatDoNotNeedThem) {
  Workload workload = parallel(8, true);
  workload.overlap.tp = true;
  const auto stages = stage_programs(workload, Granularity::op);
  std::vector<std::string> pairs;
  for (const Segment& segment : stages[0].chunks[0][1].program->backward) {
    const auto* beside = std::get_if<BesideSegment>(&segment);
    if (beside == nullptr) continue;
    const bool gather = beside->collective.kind == CollectiveKind::all_gather;
    EXPECT_EQ(beside->product.pass, gather ? Pass::backward_input : Pass::backward_weight);
    pairs.push_back(beside->collective.name + " beside " + beside->product.name);
  }
  EXPECT_EQ(pairs, (Names{"mlp all-gather beside mlp_fc1", "mlp reduce-scatter beside mlp_fc1", "attention all-gather beside qkv",
                          "attention reduce-scatter beside qkv"}));
}

// nanotron's: of eight ranks each computes its eighth of the rows while it gathers the others, and waits for what it scatters in forward.
TEST(BesideCollectives, OwnTokensComeFirstAndNothingElseIsCut) {
  Workload workload = parallel(8, true);
  workload.overlap.tp = true;
  workload.fusions.own_tokens_first = true;
  const auto stages = stage_programs(workload, Granularity::op);
  Names order;
  double qkv_rows = 0;
  for (const Segment& segment : stages[0].chunks[0][1].program->forward) {
    EXPECT_FALSE(std::holds_alternative<SplitSegment>(segment));
    if (const auto* beside = std::get_if<BesideSegment>(&segment)) {
      order.push_back(beside->collective.name + " beside " + beside->product.name);
      if (beside->product.name == "qkv") qkv_rows = static_cast<double>(beside->product.m);
    } else if (const auto* call = std::get_if<CallSegment>(&segment)) {
      order.push_back(call->what.name);
    } else if (const auto* compute = std::get_if<ComputeSegment>(&segment); compute->operators.front().cls == OperatorClass::gemm) {
      order.push_back(compute->name);
      if (compute->name != "qkv") continue;
      EXPECT_DOUBLE_EQ(static_cast<double>(compute->operators.front().m), 7 * qkv_rows);
      EXPECT_EQ(compute->operators.front().kernels, 2);
    }
  }
  EXPECT_EQ(order, (Names{"attention all-gather beside qkv", "qkv", "attention_projection", "attention reduce-scatter",
                          "mlp all-gather beside mlp_fc1", "mlp_fc1", "mlp_fc2", "mlp reduce-scatter"}));
}

// Whatever runs beside what, a pass has the same products and the host issues all of it: two pairs and what is left of their products here.
TEST(BesideCollectives, PairsAreInTheQueueOfTheirPass) {
  Workload workload = parallel(8, true);
  const auto flops_and_calls = [&] {
    const auto stages = stage_programs(workload, Granularity::layer);
    const std::vector<Segment>& forward = stages[0].chunks[0][1].program->forward;
    const PassQueue& queue = *std::get<ComputeSegment>(*std::ranges::find_if(forward, [](const Segment& segment) {
                                return std::holds_alternative<ComputeSegment>(segment);
                              })).queue;
    double flops = 0;
    for (const Operator& op : queue.operators) flops += op.flops;
    for (const PassQueue::Pair& pair : queue.pairs) flops += pair.products * pair.product.flops;
    return std::pair(flops, queue.calls.size() + queue.pairs.size());
  };
  const auto [flops, calls] = flops_and_calls();
  workload.overlap.tp = true;
  const auto [in_pieces, calls_in_pieces] = flops_and_calls();
  workload.fusions.own_tokens_first = true;
  const auto [own_first, calls_own_first] = flops_and_calls();
  EXPECT_NEAR(in_pieces, flops, 1e-9 * flops);
  EXPECT_NEAR(own_first, flops, 1e-9 * flops);
  EXPECT_EQ(std::vector({calls, calls_in_pieces, calls_own_first}), std::vector<std::size_t>(3, 4));
}

}  // namespace
}  // namespace rehearse::workloads::testing

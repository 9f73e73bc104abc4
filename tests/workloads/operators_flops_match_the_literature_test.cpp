#include <gtest/gtest.h>

#include <random>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

// Sums of integers below 2^53 in another order: rounding only.
constexpr double rounding = 1e-12;

void expect_same(double actual, double expected) { EXPECT_NEAR(actual / expected, 1, rounding); }

double backward_flops(const BlockProgram& program) { return flops(program.backward); }

TEST(OperatorFlops, ForwardOfAGptLayerIs24BSH2) {
  // qkv 6 b s h^2, scores and values 4 b s^2 h, projection 2 b s h^2, MLP 16 b s h^2: 24 b s h^2 (1 + s/(6h)).
  const Workload workload = gpt(24, 2304, 24, 51200, 2048, 4);
  const double b = 4, s = 2048, h = 2304;
  expect_same(flops(layer_program(workload, false).forward), 24 * b * s * h * h * (1 + s / (6 * h)));
}

TEST(OperatorFlops, StepWithFullRecomputationIsEquation3OfNarayanan) {
  // Narayanan et al. 2021, equation 3: 96 B s l h^2 (1 + s/(6h) + V/(16 l h)); the head is not recomputed.
  const double l = 30, h = 3072, s = 2048, v = 51200, b = 2;
  Workload workload = gpt(30, 3072, 32, 51200, 2048, 2);
  workload.recompute.kind = RecomputeKind::full;
  const BlockProgram layer = layer_program(workload, true);
  const BlockProgram head = head_program(workload);
  const double layer_flops = flops(layer.forward) + flops(layer.recompute) + backward_flops(layer);
  const double total = l * layer_flops + flops(head.forward) + backward_flops(head);
  expect_same(total, 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)));
}

TEST(OperatorFlops, StepWithoutRecomputationIsEquation7OfKorthikanti) {
  // Korthikanti et al. 2022, equation 7: 72 B L s h^2 (1 + s/(6h) + v/(12 h L)).
  const double l = 48, h = 6144, s = 2048, v = 51200, b = 4;
  const Workload workload = gpt(48, 6144, 64, 51200, 2048, 4);
  const BlockProgram layer = layer_program(workload, false);
  const BlockProgram head = head_program(workload);
  const double total = l * (flops(layer.forward) + backward_flops(layer)) + flops(head.forward) + backward_flops(head);
  const double expected = 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
  expect_same(total, expected);
  expect_same(b * model_flops_per_sequence(workload.model, 2048, false), expected);
}

// As Megatron-LM counts them: a layer, 2 h^2 of the product that joins hidden state and embedding, and the head once more.
TEST(OperatorFlops, PredictionModulesCountAmongModelFlops) {
  Workload workload = gpt(12, 2048, 16, 51200, 2048, 1);
  const double before = model_flops_per_sequence(workload.model, 2048, false);
  workload.model.mtp = 2;
  const BlockProgram module = prediction_program(workload, false, false), head = head_program(workload);
  const double one = flops(module.forward) + backward_flops(module) + flops(head.forward) + backward_flops(head);
  expect_same(model_flops_per_sequence(workload.model, 2048, false) - before, 2 * one);
  workload.model.vocab = 0;  // no head to share: the step has no modules either
  const double without = model_flops_per_sequence(workload.model, 2048, false);
  workload.model.mtp = 0;
  expect_same(without, model_flops_per_sequence(workload.model, 2048, false));
}

TEST(OperatorFlops, SelectiveRecomputationAddsEquation8OfKorthikanti) {
  // Equation 8: 72 B L s h^2 (1 + s/(6h)) plus the forward of core attention once more, 4 B L s^2 h: s/(18h) of 72 B L s h^2.
  Workload workload = gpt(1, 12288, 96, 51200, 2048, 1);
  workload.recompute.kind = RecomputeKind::selective;
  expect_same(flops(layer_program(workload, false).recompute), 4.0 * 2048 * 2048 * 12288);
}

TEST(OperatorFlops, CausalFlashSkipsHalfAndRecomputesScoresInBackward) {
  // Forward 4 b s^2 (a d) / 2; backward five products instead of two.
  const Workload workload = llama(32, 4096, 32, 8, 14336, 128256, 8192, 2);
  const BlockProgram layer = layer_program(workload, false);
  const double forward = 4.0 * 2 * 8192 * 8192 * 4096 / 2;
  EXPECT_EQ(find(layer.forward, "core_attention").flops, forward);
  EXPECT_EQ(find(layer.backward, "core_attention").flops, 2.5 * forward);
  EXPECT_TRUE(find(layer.forward, "core_attention").causal);
}

TEST(OperatorFlops, CausalModelFlopsCountHalfOfTheSquare) {
  // Attention is 12 L s^2 h per sequence in full.
  const Model model = llama(32, 4096, 32, 8, 14336, 128256, 8192, 1).model;
  const double attention = 12.0 * 32 * 8192 * 8192 * 4096;
  expect_same(model_flops_per_sequence(model, 8192, false) - model_flops_per_sequence(model, 8192, true), attention / 2);
}

TEST(OperatorFlops, GroupedQueriesShrinkQkvByTheirShare) {
  // (a + 2 kv) / (3 a): 8 of 64 heads give (64 + 16) / 192 = 5/12 of multi-head attention.
  const double mha = find(layer_program(llama(80, 8192, 64, 64, 28672, 32000, 4096, 1), false).forward, "qkv").flops;
  const double gqa = find(layer_program(llama(80, 8192, 64, 8, 28672, 32000, 4096, 1), false).forward, "qkv").flops;
  const double mqa = find(layer_program(llama(80, 8192, 64, 1, 28672, 32000, 4096, 1), false).forward, "qkv").flops;
  expect_same(gqa / mha, 5.0 / 12);
  expect_same(mqa / mha, 66.0 / 192);
}

TEST(OperatorFlops, HalvingTheSequenceHalvesLinearLayersAndQuartersAttention) {
  const BlockProgram whole = layer_program(llama(1, 4096, 32, 8, 14336, 32000, 8192, 1), false);
  const BlockProgram half = layer_program(llama(1, 4096, 32, 8, 14336, 32000, 4096, 1), false);
  for (const char* name : {"qkv", "attention_projection", "mlp_fc1", "mlp_fc2"}) {
    EXPECT_EQ(find(half.forward, name).flops * 2, find(whole.forward, name).flops) << name;
  }
  EXPECT_EQ(find(half.forward, "core_attention").flops * 4, find(whole.forward, "core_attention").flops);
}

TEST(OperatorFlops, AddUpOverTensorAndContextRanksForRandomModels) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 50; ++trial) {
    const int tp = 1 << pick(0, 3), cp = 1 << pick(0, 2), kv_heads = tp * pick(1, 4), heads = kv_heads * pick(1, 4);
    Workload workload = llama(1, heads * 16 * pick(1, 8), heads, kv_heads, tp * 64 * pick(1, 32), 128 * tp * pick(1, 9),
                              tp * cp * 64 * pick(1, 9), pick(1, 4));
    const BlockProgram one = layer_program(workload, false);
    const BlockProgram one_head = head_program(workload);
    workload.parallel.tp = tp;
    workload.parallel.cp = cp;
    workload.parallel.sp = pick(0, 1) == 1;
    const BlockProgram part = layer_program(workload, false);
    SCOPED_TRACE("trial " + std::to_string(trial));
    expect_same(tp * cp * flops_with_rings(part.forward, cp), flops(one.forward));
    expect_same(tp * cp * flops_with_rings(part.backward, cp), flops(one.backward));
    expect_same(tp * cp * flops(head_program(workload).forward), flops(one_head.forward));
  }
}

TEST(OperatorFlops, ShapesOfProductsAgreeWithTheirFlops) {
  for (const Workload& workload : {gpt(2, 1024, 16, 51200, 512, 2), llama(2, 1024, 16, 4, 2816, 32000, 512, 3)}) {
    const BlockProgram layer = layer_program(workload, false);
    for (const auto& items : {layer.forward, layer.backward, head_program(workload).backward}) {
      for (const Operator& op : operators(items)) {
        if (op.cls != OperatorClass::gemm) continue;
        EXPECT_EQ(op.flops, 2.0 * static_cast<double>(op.m * op.n * op.k)) << op.name;
      }
    }
  }
}

TEST(OperatorFlops, WeightAndInputGradientsOfLinearLayersEachCostOneForward) {
  const BlockProgram layer = layer_program(gpt(1, 2048, 16, 51200, 1024, 1), false);
  const double linear = 24.0 * 1024 * 2048 * 2048;
  expect_same(flops(layer.backward, Pass::backward_weight), linear);
  expect_same(flops(layer.backward, Pass::backward_input), linear + 2 * 4.0 * 1024 * 1024 * 2048);
}

}  // namespace
}  // namespace rehearse::workloads::testing

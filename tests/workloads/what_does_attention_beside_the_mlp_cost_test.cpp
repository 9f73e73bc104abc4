// Layers whose attention stands beside their MLP (parallel_residual): parameters as published, what is computed, exchanged, moved and kept
// against layers that have one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "config/node.hpp"
#include "operators_workloads.hpp"
#include "tests/config/refusal.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::workloads::testing {
namespace {

using Names = std::vector<std::string>;

Model described(const std::string& text) { return read_model(config::Node::load_text(text, "model.yaml"), "m"); }

Workload beside(ParallelResidual how, Workload workload) {
  workload.model.parallel_residual = how;
  return workload;
}

double sum_of(const std::vector<Communication>& calls) {
  double bytes = 0;
  for (const Communication& call : calls) bytes += call.bytes;
  return bytes;
}

double residual_bytes(const std::vector<Item>& items) {
  double bytes = 0;
  for (const Operator& op : operators(items)) bytes += op.name.ends_with("_residual") ? op.bytes : 0;
  return bytes;
}

TEST(AttentionBesideTheMlp, FalconsHaveOneNorm) {
  // Falcon 7B, safetensors metadata of the release: 6,921,720,704. A second norm would be 9,088 parameters more a layer.
  const Model falcon = described(
      "{layers: 32, hidden: 4544, heads: 71, kv_heads: 1, ffn: 18176, activation: gelu, biases: false, vocab: 65024, tied_embeddings: "
      "true, "
      "parallel_residual: one_norm}");
  EXPECT_EQ(count_parameters(falcon).total, 6'921'720'704);
}

// What a GPU holds is what the count says.
TEST(AttentionBesideTheMlp, IsHeldByLayers) {
  for (const auto how : {ParallelResidual::none, ParallelResidual::one_norm, ParallelResidual::two_norms}) {
    const Workload w = beside(how, llama(4, 1024, 16, 4, 2816, 32000, 2048, 1));
    EXPECT_EQ(layer_program(w, false).parameters, count_parameters(w.model).layer);
  }
}

// GPT-NeoX (megatron/model/transformer.py, gpt_j_residual): both are added before one all-reduce; in backward each first product reduces
// the gradient of its own input.
TEST(AttentionBesideTheMlp, IsSummedOverTpAtOnceWhereTheStackDoes) {
  Workload w = beside(ParallelResidual::two_norms, parallel(8, false));
  w.fusions.merges_branches = true;
  const BlockProgram layer = layer_program(w, true);
  const Names forward{"qkv", "core_attention", "attention_projection", "mlp_fc1", "mlp_fc2", "layer all-reduce"};
  EXPECT_EQ(skeleton(layer.forward), forward);
  EXPECT_EQ(skeleton(layer.recompute), forward);
  EXPECT_EQ(skeleton(layer.backward),
            (Names{"mlp_fc2", "mlp_fc2 (weights)", "mlp_fc1", "mlp all-reduce", "mlp_fc1 (weights)", "attention_projection",
                   "attention_projection (weights)", "core_attention", "qkv", "attention all-reduce", "qkv (weights)"}));
  w.parallel.sp = true;
  const BlockProgram spread = layer_program(w, false);
  EXPECT_EQ(skeleton(spread.forward), (Names{"attention all-gather", "qkv", "core_attention", "attention_projection", "mlp all-gather",
                                             "mlp_fc1", "mlp_fc2", "layer reduce-scatter"}));
  EXPECT_EQ(skeleton(spread.backward).front(), "layer all-gather");
  EXPECT_EQ(std::ranges::count(skeleton(spread.backward), "attention all-gather"), 1);  // that of qkv's input, for its weights
}

TEST(AttentionBesideTheMlp, IsSummedByItselfElsewhere) {
  const BlockProgram apart = layer_program(parallel(8, false), false),
                     both = layer_program(beside(ParallelResidual::one_norm, parallel(8, false)), false);
  EXPECT_EQ(skeleton(both.forward), skeleton(apart.forward));
  EXPECT_EQ(skeleton(both.backward), skeleton(apart.backward));
}

// Passes over b s h elements of 16 bits. Apart each residual has two in and one out, forward and backward. Side by side the branches are
// added to one another and then to the layer's input, and backward has two sums of two gradients: as many. A compiler adds three at once.
TEST(AttentionBesideTheMlp, AddsAsManyTensors) {
  const double pass = 2.0 * 2 * 2048 * 4096;
  Workload w = llama(32, 4096, 32, 8, 14336, 128256, 2048, 2);
  for (const auto how : {ParallelResidual::none, ParallelResidual::one_norm, ParallelResidual::two_norms}) {
    w.fusions.compiled = false;
    const BlockProgram layer = layer_program(beside(how, w), false);
    EXPECT_EQ(residual_bytes(layer.forward), 6 * pass);
    EXPECT_EQ(residual_bytes(layer.backward), 6 * pass);
    w.fusions.compiled = true;
    const BlockProgram compiled = layer_program(beside(how, w), false);
    EXPECT_EQ(residual_bytes(compiled.forward), (how == ParallelResidual::none ? 6 : 4) * pass);
    EXPECT_EQ(residual_bytes(compiled.backward), (how == ParallelResidual::none ? 6 : 4) * pass);
  }
}

// Biases: of operators two passes each wherever they are; fused they are in the kernel of the sum, which attention has none of here.
TEST(AttentionBesideTheMlp, AddsBiasesByThemselves) {
  const double pass = 2.0 * 2048 * 1024;
  Workload w = gpt(4, 1024, 16, 51200, 2048, 1);
  w.model.dropout = 0;
  const auto forward = [&](ParallelResidual how, bool fused) {
    w.fusions.dropout_add = fused;
    return residual_bytes(layer_program(beside(how, w), false).forward);
  };
  EXPECT_EQ(forward(ParallelResidual::none, true), 6 * pass);
  EXPECT_EQ(forward(ParallelResidual::two_norms, true), 8 * pass);
  EXPECT_EQ(forward(ParallelResidual::none, false), 10 * pass);
  EXPECT_EQ(forward(ParallelResidual::two_norms, false), 10 * pass);
}

// 16 bits of each element: the hidden state between attention and MLP is gone, and with one norm what the second gave.
TEST(AttentionBesideTheMlp, KeepsLess) {
  const Workload w = llama(32, 4096, 32, 8, 14336, 128256, 2048, 2);
  const auto kept = [](const Workload& of) { return layer_activation_bytes(of, false); };
  const double state = 2.0 * 2 * 2048 * 4096;
  EXPECT_EQ(kept(w) - kept(beside(ParallelResidual::two_norms, w)), state);
  EXPECT_EQ(kept(w) - kept(beside(ParallelResidual::one_norm, w)), 2 * state);
  EXPECT_EQ(layer_activation_bytes(w, true), layer_activation_bytes(beside(ParallelResidual::one_norm, w), true));
  // A norm of operators has a copy of its input in fp32, and the normed input before the weight.
  Workload apart = w;
  apart.fusions.norm = false;
  EXPECT_EQ(kept(beside(ParallelResidual::two_norms, apart)) - kept(beside(ParallelResidual::one_norm, apart)), (2 + 4 + 2) / 2 * state);
  // Products in 8 bits each keep what they cast.
  Workload narrow = w;
  narrow.precision.compute = DType::fp8;
  EXPECT_EQ(kept(narrow) - kept(beside(ParallelResidual::one_norm, narrow)), state);
}

// Whatever the plan: as many FLOPs, never more memory, one hidden state a layer less over tp where the stack adds first.
TEST(AttentionBesideTheMlp, ComputesWhatLayersAloneCompute) {
  std::mt19937 random(11);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  for (int i = 0; i < 300; ++i) {
    Workload w = parallel(1 << pick(0, 3), pick(0, 1) == 1, 1 << pick(0, 1));
    w.model.dropout = pick(0, 1) == 1 ? 0.1 : 0;
    w.model.norm = pick(0, 1) == 1 ? Norm::layernorm : Norm::rmsnorm;
    w.fusions.norm = pick(0, 1) == 1;
    w.fusions.dropout_add = pick(0, 1) == 1;
    w.fusions.autocast = pick(0, 1) == 1;
    w.fusions.compiled = pick(0, 3) == 0;
    w.fusions.keeps_gathered = pick(0, 1) == 1;
    w.recompute.kind = pick(0, 1) == 1 ? RecomputeKind::full : RecomputeKind::none;
    Workload both = beside(pick(0, 1) == 1 ? ParallelResidual::one_norm : ParallelResidual::two_norms, w);
    both.fusions.merges_branches = pick(0, 1) == 1;
    const bool again = w.recompute.kind == RecomputeKind::full;
    const BlockProgram apart = layer_program(w, again), side = layer_program(both, again);
    for (const auto items : {&BlockProgram::forward, &BlockProgram::recompute, &BlockProgram::backward}) {
      EXPECT_EQ(flops(side.*items), flops(apart.*items)) << i;
    }
    const double state = w.parallel.tp == 1 ? 0 : communications(apart.forward).back().bytes;
    const double saved = both.fusions.merges_branches ? state : 0;
    EXPECT_EQ(sum_of(communications(apart.forward)) - sum_of(communications(side.forward)), saved) << i;
    EXPECT_EQ(sum_of(communications(apart.backward)) - sum_of(communications(side.backward)), w.parallel.sp ? saved : 0) << i;
    EXPECT_LE(layer_activation_bytes(both, again), layer_activation_bytes(w, again) + (both.model.dropout > 0 ? 2 * state : 0)) << i;
    const double norm = both.model.shares_norm() ? 4096.0 * (w.model.norm == Norm::layernorm ? 2 : 1) : 0;
    EXPECT_EQ(apart.parameters - side.parameters, norm) << i;
  }
}

// An engine's layer has one call in the place of two.
TEST(AttentionBesideTheMlp, IsServedSo) {
  InstancePlan plan;
  plan.model = llama(32, 4096, 32, 8, 14336, 128256, 2048, 1).model;
  plan.tp = 4;
  KernelFusions fusions;
  EXPECT_EQ(pass_operators(plan, fusions).layers.front().calls.size(), 2);
  plan.model.parallel_residual = ParallelResidual::one_norm;
  EXPECT_EQ(pass_operators(plan, fusions).layers.front().calls.size(), 2);
  fusions.merges_branches = true;
  const LayerOperators layer = pass_operators(plan, fusions).layers.front();
  ASSERT_EQ(layer.calls.size(), 1);
  EXPECT_EQ(layer.calls.front().at(10).bytes, 10 * 4096 * 2.0);
  const auto norms = std::ranges::count_if(layer.operators, [](const TokenOperator& line) { return line.shape.name.ends_with("_norm"); });
  EXPECT_EQ(norms, 1);
}

TEST(AttentionBesideTheMlp, IsRefusedWhereItIsNotSimulated) {
  const auto refused = [](const std::string& more) {
    return config::refusal_of([&] {
      return described("{layers: 2, hidden: 64, ffn: 64, activation: swiglu, vocab: 1, parallel_residual: one_norm, " + more + "}");
    });
  };
  EXPECT_NE(refused("heads: 0").find("model.yaml:1:83: error: attention beside the MLP is not simulated of models with heads: 0"),
            std::string::npos)
      << refused("heads: 0");
  EXPECT_NE(refused("heads: 4, moe: {experts: 4, top_k: 1, ffn: 8}").find("models with experts (moe)"), std::string::npos);
  EXPECT_NE(refused("heads: 4, mla: {kv_lora: 8, qk_nope: 8, qk_rope: 8, v: 8}").find("models with latent attention (mla)"),
            std::string::npos);
  EXPECT_NE(refused("heads: 4, post_norms: true").find("models with norms behind both (post_norms)"), std::string::npos);
  EXPECT_NE(config::refusal_of([] {
              return described("{layers: 2, hidden: 64, heads: 4, ffn: 64, activation: swiglu, vocab: 1, parallel_residual: yes}");
            }).find("one_norm"),
            std::string::npos);
}

}  // namespace
}  // namespace rehearse::workloads::testing

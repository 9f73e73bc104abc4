// Casts to 8 bits that other kernels do (fused_casts), and frozen weights that are kept in them: what moves, from the shapes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "operators_workloads.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

constexpr double hidden = 4096, ffn = 14336, cast_tokens = 2048;

Workload in_eight_bits() {
  Workload workload = llama(4, 4096, 32, 8, 14336, 32000, 2048, 1);
  workload.precision.compute = DType::fp8;
  return workload;
}
Workload with_adapters() {
  Workload workload = in_eight_bits();
  workload.lora.rank = 16;
  workload.lora.targets = {LoraTarget::linear_qkv};
  return workload;
}

bool has(const std::vector<Item>& items, const std::string& name) {
  const std::vector<Operator> all = operators(items);
  return std::ranges::any_of(all, [&](const Operator& op) { return op.name == name; });
}
// Names of what casts, and what of it does so to or from 8 bits.
std::pair<int, int> casts_of(const BlockProgram& layer) {
  std::pair<int, int> casts;
  for (const std::vector<Item>* items : {&layer.forward, &layer.backward}) {
    for (const Operator& op : operators(*items)) {
      casts.first += op.name.ends_with(" cast") || op.name.ends_with(" transpose") ? 1 : 0;
      casts.second += op.casts ? 1 : 0;
    }
  }
  return casts;
}
double weights_cast(const Workload& workload) {
  double sum = 0;
  for (const Operator& op : optimizer_program(workload, 1e6, {1e6, 2e9}).update) sum += op.name == "weights_cast" ? op.bytes : 0;
  return sum;
}

// Trained, both orders are written: 2 bytes in the place of the 16 bits of the same value. What falls away are the casts, 2 in and 2 out.
TEST(FusedCasts, AreThoseOfNormsAndGatedActivations) {
  Workload workload = in_eight_bits();
  const BlockProgram apart = layer_program(workload, false);
  workload.fusions.fused_casts = true;
  const BlockProgram fused = layer_program(workload, false);
  for (const char* name : {"qkv cast", "mlp_fc1 cast", "mlp_fc2 cast"}) {
    EXPECT_TRUE(has(apart.forward, name)) << name;
    EXPECT_FALSE(has(fused.forward, name)) << name;
  }
  EXPECT_TRUE(has(fused.forward, "attention_projection cast"));
  EXPECT_FALSE(has(fused.backward, "mlp_fc1 cast"));
  for (const char* name : {"qkv cast", "attention_projection cast", "mlp_fc2 cast"}) EXPECT_TRUE(has(fused.backward, name)) << name;
  EXPECT_EQ(bytes(apart.forward) - bytes(fused.forward), cast_tokens * (2 * hidden + ffn) * (2 + 2));
  EXPECT_EQ(bytes(apart.backward) - bytes(fused.backward), cast_tokens * 2 * ffn * (2 + 2));
}

// Frozen, products need one order: a byte for each value.
TEST(FusedCasts, BesideFrozenWeightsWriteOneOrder) {
  Workload workload = with_adapters();
  workload.fusions.fused_casts = true;
  const BlockProgram fused = layer_program(workload, false);
  EXPECT_EQ(find(fused.forward, "post_norm").bytes, cast_tokens * hidden * (2 + 1));
  EXPECT_EQ(find(fused.forward, "activation").bytes, cast_tokens * ffn * (2 * 2 + 1));
  EXPECT_EQ(find(fused.backward, "activation").bytes, cast_tokens * ffn * (2 + 2 * 2 + 2 * 1));
}

// A scale of the whole tensor is known when all of it is there: norms and activations find the largest value, which a cast reads again for
// otherwise, and write 16 bits. So do operators of their own.
TEST(FusedCasts, NeedScalesThatAreKnownBefore) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = Scaling::tensorwise;
  const double apart = bytes(layer_program(workload, false).forward);
  workload.fusions.fused_casts = true;
  EXPECT_EQ(apart - bytes(layer_program(workload, false).forward), cast_tokens * (2 * hidden + ffn) * 2);
  workload.precision.recipe = Scaling::mxfp8;
  EXPECT_FALSE(has(layer_program(workload, false).forward, "mlp_fc2 cast"));
  workload.fusions.activation = workload.fusions.norm = false;
  EXPECT_TRUE(has(layer_program(workload, false).forward, "mlp_fc2 cast"));
  EXPECT_TRUE(has(layer_program(workload, false).forward, "qkv cast"));
}

// What takes a stack's cast_time: its own kernels, not adapters' casts between FP32 and 16 bits.
TEST(Casts, AreThoseToEightBitsAlone) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = Scaling::tensorwise;
  workload.parallel.tp = 2;
  workload.parallel.sp = true;
  workload.precision.attention = DType::fp8;
  const auto [named, narrow] = casts_of(layer_program(workload, false));
  EXPECT_GT(narrow, 10);
  EXPECT_EQ(named, narrow);
  Workload adapted = llama(4, 4096, 32, 8, 14336, 32000, 2048, 1);
  adapted.lora = with_adapters().lora;
  adapted.lora.weights = DType::fp32;
  const auto [of_adapters, none] = casts_of(layer_program(adapted, false));
  EXPECT_GT(of_adapters, 0);
  EXPECT_EQ(none, 0);
}

TEST(FrozenWeights, KeptInEightBitsAreNotCast) {
  Workload kept = with_adapters();
  kept.fusions.casts_weights = true;
  EXPECT_EQ(weights_cast(kept), 2e9 * (2 + 2)) << "kept in 16 bits";
  kept.precision.param_gather = DType::fp8;
  EXPECT_EQ(weights_cast(kept), 0);
  kept.lora = {};
  EXPECT_EQ(weights_cast(kept), 2e9 * (2 + 2)) << "trained";
}

// torchao's scales are found from what is there: a weight of 16 bits is read for the largest value, read and written by rows in forward,
// and read and written by columns in backward, 2 + 2 + 1 and 2 + 1 bytes (torchao/testing/training/roofline_utils.py, tensorwise).
TEST(WeightsInEightBits, AreCastInEachPassUnlessOnceAStep) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = Scaling::tensorwise;
  const BlockProgram anew = layer_program(workload, false);
  EXPECT_EQ(find(anew.forward, "mlp_fc2 weight cast").bytes, ffn * hidden * (2 + 2 + 1));
  EXPECT_EQ(find(anew.forward, "mlp_fc2 weight cast").kernels, 2);
  EXPECT_EQ(find(anew.backward, "mlp_fc2 weight cast").bytes, ffn * hidden * (2 + 1));
  EXPECT_EQ(find(anew.backward, "mlp_fc1 weight cast").bytes, 2 * ffn * hidden * (2 + 1));
  workload.precision.recipe = Scaling::mxfp8;
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 weight cast").bytes, ffn * hidden * (2 + 1 + 1.0 / 32));
  workload.precision.recipe = Scaling::delayed;
  EXPECT_FALSE(has(layer_program(workload, false).forward, "mlp_fc2 weight cast")) << "scales are known before";
  workload.precision.recipe = Scaling::tensorwise;
  workload.fusions.casts_weights = true;
  EXPECT_FALSE(has(layer_program(workload, false).forward, "mlp_fc2 weight cast"));
  EXPECT_FALSE(has(layer_program(workload, false).backward, "mlp_fc2 weight cast"));
}

// Cast before it is gathered, a weight comes by rows: backward's product reads a transposed copy, of a byte in and a byte out.
TEST(WeightsInEightBits, GatheredInThemAreTransposedForBackward) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = Scaling::tensorwise;
  workload.precision.param_gather = DType::fp8;
  workload.optimizer.zero_stage = 3;
  const BlockProgram gathered = layer_program(workload, false);
  EXPECT_FALSE(has(gathered.forward, "mlp_fc2 weight cast"));
  EXPECT_FALSE(has(gathered.backward, "mlp_fc2 weight cast"));
  EXPECT_EQ(find(gathered.backward, "mlp_fc2 weight transpose").bytes, ffn * hidden * 2);
}

// A layer that is computed again casts again, but for the last product, which nobody computes again.
TEST(WeightsInEightBits, AreCastAgainForProductsThatAreComputedAgain) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = Scaling::tensorwise;
  workload.recompute.stops_early = true;
  const BlockProgram again = layer_program(workload, true);
  EXPECT_EQ(find(again.recompute, "mlp_fc1 weight cast").bytes, 2 * ffn * hidden * (2 + 2 + 1));
  EXPECT_FALSE(has(again.recompute, "mlp_fc2 weight cast"));
}

// The kernel that makes a tensor finds its largest value where one graph has both: one read of two. Attention's output comes from a kernel
// of its own, and the gradient of the layer's output from the next layer.
TEST(LargestValues, AreFoundByWhatACompilerFuses) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = Scaling::tensorwise;
  workload.fusions.compiled = true;
  const BlockProgram compiled = layer_program(workload, false);
  for (const char* name : {"qkv cast", "mlp_fc1 cast"})
    EXPECT_EQ(find(compiled.forward, name).bytes, cast_tokens * hidden * (2 + 2)) << name;
  EXPECT_EQ(find(compiled.forward, "mlp_fc2 cast").bytes, cast_tokens * ffn * (2 + 2));
  EXPECT_EQ(find(compiled.forward, "attention_projection cast").bytes, cast_tokens * hidden * (2 + 2 + 2));
  EXPECT_EQ(find(compiled.backward, "mlp_fc1 cast").bytes, cast_tokens * 2 * ffn * (2 + 2));
  EXPECT_EQ(find(compiled.backward, "attention_projection cast").bytes, cast_tokens * hidden * (2 + 2));
  EXPECT_EQ(find(compiled.backward, "mlp_fc2 cast").bytes, cast_tokens * hidden * (2 + 2 + 2));
}

// Of a token, bytes in 16 bits less those of casts: inputs of qkv, fc1 and fc2 have one byte each in the place of two. The projection
// has one beside the two of attention's output, which flash attention keeps anyway (as many queries as the layer is wide).
constexpr double spared = hidden + hidden + ffn - hidden;

double spared_by_casts(Scaling recipe, bool compiled, bool once_a_step) {
  Workload workload = in_eight_bits();
  workload.precision.recipe = recipe;
  workload.fusions.compiled = compiled;
  workload.fusions.casts_weights = once_a_step;
  const double narrow = layer_activation_bytes(workload, false, LayerKind::dense);
  workload.precision.compute = DType::bf16;
  return (layer_activation_bytes(workload, false, LayerKind::dense) - narrow) / cast_tokens;
}

// Transformer Engine keeps what it has cast, torchao (whose scales are never delayed) what it was given, of which backward makes a cast.
TEST(KeptInputs, AreThoseThatTheStackSaves) {
  for (const Scaling recipe : {Scaling::delayed, Scaling::tensorwise}) EXPECT_DOUBLE_EQ(spared_by_casts(recipe, false, true), spared);
  EXPECT_DOUBLE_EQ(spared_by_casts(Scaling::delayed, false, false), spared);
  for (const Scaling recipe : {Scaling::tensorwise, Scaling::rowwise, Scaling::blockwise, Scaling::mxfp8})
    EXPECT_EQ(spared_by_casts(recipe, false, false), 0);
}

// A compiler saves the cast that both passes read; by rows and by blocks each has a cast of its own.
TEST(KeptInputs, AreCastsOfACompilerWhereBackwardReadsTheSame) {
  EXPECT_DOUBLE_EQ(spared_by_casts(Scaling::tensorwise, true, false), spared);
  for (const Scaling recipe : {Scaling::rowwise, Scaling::rowwise_with_gw_hp, Scaling::mxfp8})
    EXPECT_EQ(spared_by_casts(recipe, true, false), 0);
}

// Read and written once for each product of backward.
TEST(FrozenWeights, MayBeTransposedAnew) {
  Workload workload = with_adapters();
  workload.fusions.transposes_frozen = true;
  EXPECT_FALSE(has(layer_program(workload, false).backward, "mlp_fc2 weight transpose"));
  workload.precision.param_gather = DType::fp8;
  const BlockProgram anew = layer_program(workload, false);
  EXPECT_EQ(find(anew.backward, "mlp_fc2 weight transpose").bytes, ffn * hidden * 2);
  EXPECT_EQ(find(anew.backward, "mlp_fc1 weight transpose").bytes, 2 * ffn * hidden * 2);
  EXPECT_FALSE(has(anew.forward, "mlp_fc2 weight transpose"));
}

// What a stack's cast_time is of: casts and transposes of what products in 8 bits read, those of weights once a step, of attention; no cast
// between 16 and 32 bits, of autocast's or an adapter's.
TEST(Casts, OfAutocastAndAdaptersAreOthers) {
  const auto narrowing_in = [](const std::vector<Operator>& all) {
    return std::ranges::count_if(all, [](const Operator& op) { return op.casts; });
  };
  Workload workload = in_eight_bits();
  workload.precision.attention = DType::fp8;
  const BlockProgram layer = layer_program(workload, false);
  for (const char* name : {"qkv cast", "mlp_fc2 cast", "attention cast"}) EXPECT_TRUE(find(layer.forward, name).casts) << name;
  EXPECT_EQ(narrowing_in(operators(layer.forward)), 4 + 2);   // of each product's input; attention's inputs and output
  EXPECT_EQ(narrowing_in(operators(layer.backward)), 4 + 2);  // of each gradient
  workload.fusions.casts_weights = true;
  EXPECT_EQ(narrowing_in(optimizer_program(workload, 1e6, {1e6, 2e9}).update), 1);

  Workload adapters = with_adapters();
  adapters.precision.compute = DType::bf16;
  adapters.lora.weights = DType::fp32;
  const BlockProgram adapted = layer_program(adapters, false);
  EXPECT_FALSE(find(adapted.forward, "qkv_lora cast").casts);
  EXPECT_EQ(narrowing_in(operators(adapted.forward)) + narrowing_in(operators(adapted.backward)), 0);

  Workload autocast = llama(4, 4096, 32, 8, 14336, 32000, 2048, 1);
  autocast.fusions.autocast = true;
  const std::vector<StageProgram> stages = stage_programs(autocast, Granularity::op);
  int casts = 0;
  for (const Unit& unit : stages.front().chunks.front()) {
    for (const Segment& segment : unit.program->backward) {
      const auto* computed = std::get_if<ComputeSegment>(&segment);
      if (computed == nullptr) continue;
      EXPECT_EQ(narrowing_in(computed->operators), 0) << unit.name << " " << computed->name;
      casts += unit.kind == UnitKind::layer && computed->name == "gradient cast" ? 1 : 0;
    }
  }
  EXPECT_EQ(casts, 4);  // of each layer
}

}  // namespace
}  // namespace rehearse::workloads::testing

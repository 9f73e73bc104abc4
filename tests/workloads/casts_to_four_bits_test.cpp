// What Transformer Engine's casts to 4 bits move, and to 8 bits where products read operands in either order; layers at the ends that stay
// in 16 bits. From the shapes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "operators_workloads.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads::testing {
namespace {

constexpr double cast_width = 4096, cast_inner = 14336, cast_rows = 2048;

Workload of_type(DType type, Scaling recipe) {
  Workload workload = llama(4, 4096, 32, 8, 14336, 32000, 2048, 1);
  workload.precision.compute = type;
  workload.precision.recipe = recipe;
  workload.fusions.casts_weights = true;
  return workload;
}

double weights_cast_of(const Workload& workload) {
  double sum = 0;
  for (const Operator& op : optimizer_program(workload, 1e6, {1e6, 1}).update) sum += op.name == "weights_cast" ? op.bytes : 0;
  return sum;
}

// Half a byte and a scale of a byte for 16 values.
constexpr double four_bits = 0.5 + 1.0 / 16;

// The largest values of a tensor and of its transform, rows, and columns behind the transform: three kernels that read 16 bits each.
TEST(CastsToFourBits, ReadThreeTimesBehindATransform) {
  const BlockProgram layer = layer_program(of_type(DType::fp4, Scaling::nvfp4), false);
  for (const char* name : {"qkv cast", "attention_projection cast", "mlp_fc1 cast"}) {
    EXPECT_EQ(find(layer.forward, name).bytes, cast_rows * cast_width * (3 * 2 + 2 * four_bits)) << name;
    EXPECT_EQ(find(layer.forward, name).kernels, 3) << name;
  }
  EXPECT_EQ(find(layer.backward, "mlp_fc1 cast").bytes, cast_rows * 2 * cast_inner * (3 * 2 + 2 * four_bits));
}

// Without it the largest value, and one kernel for rows and columns. What makes a tensor may have found the former.
TEST(CastsToFourBits, ReadTwiceWithoutOne) {
  Workload workload = of_type(DType::fp4, Scaling::blockwise);
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2 * 2 + 2 * four_bits));
  workload.fusions.fused_casts = true;
  const BlockProgram found = layer_program(workload, false);
  EXPECT_EQ(find(found.forward, "qkv cast").bytes, cast_rows * cast_width * (2 + 2 * four_bits));
  EXPECT_EQ(find(found.forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2 + 2 * four_bits));
  EXPECT_EQ(find(found.backward, "mlp_fc1 cast").bytes, cast_rows * 2 * cast_inner * (2 + 2 * four_bits));
  EXPECT_EQ(find(found.forward, "attention_projection cast").bytes, cast_rows * cast_width * (2 * 2 + 2 * four_bits));
  workload.precision.recipe = Scaling::nvfp4;
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (3 * 2 + 2 * four_bits));
}

// Beside frozen weights no product reads columns, and nothing is transformed.
TEST(CastsToFourBits, WriteRowsAloneBesideFrozenWeights) {
  Workload workload = of_type(DType::fp4, Scaling::nvfp4);
  workload.lora.rank = 16;
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2 * 2 + four_bits));
}

// A weight's largest value, then both orders.
TEST(CastsToFourBits, OfWeightsLookForTheLargestValueToo) {
  EXPECT_EQ(weights_cast_of(of_type(DType::fp4, Scaling::nvfp4)), 2 + 2 + 2 * four_bits);
  EXPECT_EQ(weights_cast_of(of_type(DType::fp8, Scaling::tensorwise)), 2 + 2 + 2);
  EXPECT_EQ(weights_cast_of(of_type(DType::fp8, Scaling::mxfp8)), 2 + 2 * (1 + 1.0 / 32));
}

// torchao's kernels in Triton count as many bytes as they take time: largest values, then both orders at once, a gradient's rounded at
// random. A weight is cast in forward alone, in both orders, of which backward reads one; an input is kept cast.
TEST(CastsToFourBits, OfTorchaoTakeTheTimeOfItsKernels) {
  Workload workload = of_type(DType::fp4, Scaling::nvfp4);
  workload.fusions.casts_weights = false;
  const BlockProgram layer = layer_program(workload, false);
  EXPECT_NEAR(find(layer.forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2.6 + 9.3), 1);
  EXPECT_NEAR(find(layer.backward, "mlp_fc2 cast").bytes, cast_rows * cast_width * (2.6 + 13.7), 1);
  EXPECT_EQ(find(layer.forward, "mlp_fc2 cast").kernels, 2);
  EXPECT_NEAR(find(layer.forward, "mlp_fc2 weight cast").bytes, cast_width * cast_inner * (2 + 19.7), 1);
  for (const Operator& op : operators(layer.backward)) EXPECT_FALSE(op.name.ends_with(" weight cast")) << op.name;
  EXPECT_EQ(weights_cast_of(workload), 0);
}

// What products with scales of blocks are known by; in 4 bits there are no others.
TEST(BlockScales, MarkProductsInEightBits) {
  const auto marked = [](DType type, Scaling recipe) {
    const BlockProgram layer = layer_program(of_type(type, recipe), false);
    std::vector<Operator> all = operators(layer.forward);
    std::ranges::copy(operators(layer.backward), std::back_inserter(all));
    return std::ranges::count_if(all, [](const Operator& op) { return op.by_blocks; });
  };
  EXPECT_EQ(marked(DType::fp8, Scaling::mxfp8), 4 * 3);  // qkv, projection, fc1, fc2; forward and both of backward
  EXPECT_EQ(marked(DType::fp8, Scaling::blockwise), 4 * 3);
  EXPECT_EQ(marked(DType::fp8, Scaling::tensorwise), 0);
  EXPECT_EQ(marked(DType::fp4, Scaling::nvfp4), 0);
}

// One scale for a tensor: one copy, also of weights; nothing is transposed behind a gather, nor a frozen weight for backward. Scales of
// blocks belong to a direction.
TEST(EitherOrder, NeedsNoTransposedCopy) {
  Workload workload = of_type(DType::fp8, Scaling::delayed);
  workload.fusions.any_order = true;
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2 + 1));
  EXPECT_EQ(weights_cast_of(workload), 2 + 1);
  workload.precision.recipe = Scaling::tensorwise;
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2 + 2 + 1));
  workload.precision.recipe = Scaling::mxfp8;
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_fc2 cast").bytes, cast_rows * cast_inner * (2 + 2 * (1 + 1.0 / 32)));
}

TEST(EitherOrder, TransposesNothingBehindAGather) {
  Workload workload = parallel(4, true);
  workload.precision.compute = DType::fp8;
  const auto transposes = [](const Workload& of) {
    const std::vector<Operator> all = operators(layer_program(of, false).backward);
    return std::ranges::count_if(all, [](const Operator& op) { return op.name.ends_with(" transpose"); });
  };
  EXPECT_GT(transposes(workload), 0);
  workload.fusions.any_order = true;
  EXPECT_EQ(transposes(workload), 0);
}

// Copies of weights that lie there for good are those that the cast writes.
TEST(EitherOrder, KeepsOneCopyOfWeights) {
  const auto kept = [](const Workload& workload) {
    MemoryHabits habits;
    const Parameters own{.all = 1, .layers = 1};
    const double without = static_memory(workload, habits, own).temporary;
    habits.narrow_copies = true;
    return static_memory(workload, habits, own).temporary - without;
  };
  Workload workload = of_type(DType::fp8, Scaling::tensorwise);
  EXPECT_EQ(kept(workload), 2);
  workload.fusions.any_order = true;
  EXPECT_EQ(kept(workload), 1);
  workload.precision.param_gather = DType::fp8;
  EXPECT_EQ(kept(workload), 0);
  EXPECT_EQ(kept(of_type(DType::fp4, Scaling::nvfp4)), 2 * four_bits);
}

// Scales of blocks are kept beside the values that products read: those of queries, keys and values, of the projection and of both products
// of the MLP.
TEST(KeptCasts, HaveTheirScales) {
  const auto kept = [](DType type, Scaling recipe) { return layer_activation_bytes(of_type(type, recipe), false); };
  const double read = cast_rows * (3 * cast_width + cast_inner);
  EXPECT_DOUBLE_EQ(kept(DType::fp8, Scaling::mxfp8) - kept(DType::fp8, Scaling::delayed), read / 32);
  EXPECT_DOUBLE_EQ(kept(DType::fp8, Scaling::blockwise) - kept(DType::fp8, Scaling::delayed), read * 4 / 128);
  EXPECT_DOUBLE_EQ(kept(DType::fp8, Scaling::delayed) - kept(DType::fp4, Scaling::nvfp4), read * (1 - four_bits));
}

// Of four layers the first and the last two have products in bf16, and cast nothing; the others as before.
TEST(WideLayers, HaveTheirProductsInSixteenBits) {
  Workload workload = of_type(DType::fp4, Scaling::nvfp4);
  workload.precision.bf16_at_start = 1;
  workload.precision.bf16_at_end = 2;
  const std::vector<StageProgram> stages = stage_programs(workload, Granularity::op);
  std::string wide;
  std::vector<const UnitProgram*> programs;
  for (const Unit& unit : stages.front().chunks.front()) {
    if (unit.kind != UnitKind::layer) continue;
    wide += unit.wide ? 'w' : 'n';
    programs.push_back(unit.program.get());
  }
  EXPECT_EQ(wide, "wnww");
  EXPECT_FALSE(is_wide(workload, 4)) << "multi-token prediction";
  EXPECT_NE(programs[0], programs[1]);
  EXPECT_EQ(programs[0], programs[2]);
  const BlockProgram of_ends = layer_program(of_wide_layers(workload), false);
  for (const Operator& op : operators(of_ends.forward)) {
    EXPECT_FALSE(op.name.ends_with(" cast")) << op.name;
    EXPECT_TRUE(op.cls != OperatorClass::gemm || op.dtype == DType::bf16) << op.name;
  }
}

// Attention in 8 bits is of what the layers in fewer bits have; one that is said in 16 stays.
TEST(WideLayers, HaveNoAttentionInEightBits) {
  Precision precision{.compute = DType::fp8, .attention = DType::fp8, .recipe = Scaling::mxfp8, .experts = DType::fp8};
  const Precision wide = precision.of_wide_layers();
  EXPECT_FALSE(wide.attention || wide.in_fp8());
  EXPECT_EQ(wide.recipe, Scaling::delayed);
  precision.attention = DType::fp16;
  EXPECT_EQ(precision.of_wide_layers().attention, DType::fp16);
}

}  // namespace
}  // namespace rehearse::workloads::testing

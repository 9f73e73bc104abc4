// torchao's float8 with scales by row: which products have 8 bits, what is cast where, what is kept.
#include <gtest/gtest.h>
#include <array>
#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

Workload by_rows_of_llama() {
  Workload workload = llama(4, 1024, 16, 4, 2816, 32000, 1024, 2);
  workload.precision.compute = DType::fp8;
  return workload;
}

// torchao's rowwise_with_gw_hp multiplies weight gradients in 16 bits alone; weights are cast by rows in each pass, backward of rowwise
// behind a transpose in 16 bits.
TEST(CastsByRows, RowsLeaveWeightGradientsInSixteenBits) {
  Workload workload = by_rows_of_llama();
  const auto type = [&](Scaling recipe, Pass pass) {
    workload.precision.recipe = recipe;
    const BlockProgram layer = layer_program(workload, false);
    for (const Operator& op : operators(pass == Pass::forward ? layer.forward : layer.backward)) {
      if (op.name == "mlp_fc2" && op.pass == pass) return op.dtype;
    }
    return DType::fp32;
  };
  for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) EXPECT_EQ(type(Scaling::rowwise, pass), DType::fp8);
  EXPECT_EQ(type(Scaling::rowwise_with_gw_hp, Pass::backward_input), DType::fp8);
  EXPECT_EQ(type(Scaling::rowwise_with_gw_hp, Pass::backward_weight), DType::bf16);
  const auto weights = [&](Scaling recipe, bool backward) {
    workload.precision.recipe = recipe;
    const BlockProgram layer = layer_program(workload, false);
    return find(backward ? layer.backward : layer.forward, "mlp_fc2 weight cast").bytes;
  };
  const double all = 1024.0 * 2816;
  EXPECT_DOUBLE_EQ(weights(Scaling::rowwise, false), all * (2 + 1));
  EXPECT_DOUBLE_EQ(weights(Scaling::rowwise, true), all * (2 + 2 + 2 + 1));
  EXPECT_DOUBLE_EQ(weights(Scaling::rowwise_with_gw_hp, true), all * (2 + 1));
}

// Rows are those of the gathered tensor: 16 bits travel, and are cast behind the gather; a layer keeps its inputs in 16 bits, which are
// those of the product before or of attention where that keeps them anyway.
TEST(CastsByRows, RowsAreCastBehindGathersAndKeptInSixteenBits) {
  Workload workload = by_rows_of_llama();
  workload.parallel.tp = 2;
  workload.parallel.sp = true;
  const auto gathered = [&](Scaling recipe) {
    workload.precision.recipe = recipe;
    const std::vector<Item> forward = layer_program(workload, false).forward;
    const auto of_qkv = [](const Item& item) {
      const auto* op = std::get_if<Operator>(&item);
      return op != nullptr && op->name == "qkv cast";
    };
    const auto call = std::ranges::find_if(forward, [](const Item& item) { return std::holds_alternative<Communication>(item); });
    return std::pair(std::get<Communication>(*call).bytes, call < std::ranges::find_if(forward, of_qkv));
  };
  const double elements = static_cast<double>(workload.batch.micro * workload.batch.sequence) * workload.model.hidden;
  EXPECT_EQ(gathered(Scaling::tensorwise), std::pair(elements * 1, false));
  EXPECT_EQ(gathered(Scaling::rowwise), std::pair(elements * 2, true));
  workload.parallel = {};
  const auto kept = [&](DType type, Scaling recipe) {
    workload.precision.compute = type;
    workload.precision.recipe = recipe;
    return layer_activation_bytes(workload, false, LayerKind::dense);
  };
  EXPECT_EQ(kept(DType::fp8, Scaling::rowwise), kept(DType::bf16, Scaling::delayed));
}

}  // namespace
}  // namespace rehearse::workloads::testing

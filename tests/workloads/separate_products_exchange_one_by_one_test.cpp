#include <gtest/gtest.h>

#include "operators_workloads.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::workloads::testing {
namespace {

Workload tensor_parallel(int tp, bool sp) {
  Workload workload = llama(32, 4096, 32, 8, 14336, 128256, 8192, 2);
  workload.parallel.tp = tp;
  workload.parallel.sp = sp;
  return workload;
}

// Whole hidden states that a layer moves over tp in a pass.
double hidden_states(const Workload& workload, const std::vector<Item>& items, CollectiveKind kind) {
  double bytes = 0;
  for (const Communication& call : communications(items)) bytes += call.kind == kind ? call.bytes : 0;
  return bytes / (static_cast<double>(shard_of(workload).tokens * workload.model.hidden) * 2);
}

// Shoeybi et al. 2019 sum the gradient of queries', keys' and values' input before they reduce it; layers that are apart do not: 3 + 2 for
// 1 + 1.
TEST(SeparateProducts, ReduceTheirInputGradientsOneByOne) {
  Workload workload = tensor_parallel(8, false);
  const auto reduced = [&] { return hidden_states(workload, layer_program(workload, false).backward, CollectiveKind::all_reduce); };
  workload.fusions.separate_qkv = workload.fusions.separate_gate = true;
  EXPECT_EQ(reduced(), 2);
  workload.fusions.reduces_by_product = true;
  EXPECT_EQ(reduced(), 5);
  workload.fusions.separate_qkv = false;
  EXPECT_EQ(reduced(), 3);
  workload.fusions.gathers_by_product = true;  // of sequence parallelism alone
  EXPECT_EQ(reduced(), 3);
}

// KempnerForge's profile of DTensor: a layer that is recomputed up to its last product gathers 5 + 5 + 2 times and scatters 2 + 1 + 5
// times.
TEST(SeparateProducts, GatherOneByOne) {
  Workload workload = tensor_parallel(4, true);
  workload.recompute = {.kind = RecomputeKind::full, .full_layers = -1, .stops_early = true};
  KernelFusions& fusions = workload.fusions;
  fusions.separate_qkv = fusions.separate_gate = fusions.gathers_by_product = fusions.keeps_gathered = true;
  const BlockProgram layer = layer_program(workload, true);
  const auto of = [&](CollectiveKind kind) {
    return std::vector{hidden_states(workload, layer.forward, kind), hidden_states(workload, layer.recompute, kind),
                       hidden_states(workload, layer.backward, kind)};
  };
  EXPECT_EQ(of(CollectiveKind::all_gather), (std::vector<double>{5, 5, 2}));
  EXPECT_EQ(of(CollectiveKind::reduce_scatter), (std::vector<double>{2, 1, 5}));
}

// A copy reads and writes what each gather and scatter moves; pieces that overlap their products have none.
TEST(GatheredAlongTheSequence, IsJoinedByACopy) {
  Workload workload = tensor_parallel(4, true);
  const auto copied = [&] {
    const BlockProgram layer = layer_program(workload, false);
    double bytes = 0;
    for (const std::vector<Item>* items : {&layer.forward, &layer.backward}) {
      for (const Operator& op : operators(*items)) bytes += op.name.ends_with(" join") ? op.bytes : 0;
    }
    return bytes / (static_cast<double>(shard_of(workload).tokens * workload.model.hidden) * 2);
  };
  EXPECT_EQ(copied(), 0);
  workload.fusions.joins_gathered = workload.fusions.keeps_gathered = true;
  // Gathers: qkv, fc1, gradients of projection and fc2; scatters: projection, fc2, input gradients of qkv and fc1.
  EXPECT_EQ(copied(), 2 * (4 + 4));
  workload.overlap.tp = true;
  EXPECT_EQ(copied(), 0);
  workload.overlap.tp = false;
  workload.parallel.sp = false;
  EXPECT_EQ(copied(), 0);
}

// Paddle's c_identity: queries, keys, values, gate and up read copies of two inputs, which they keep; the gradients of the projection's and
// fc2's sums are copied too.
TEST(SeparateProducts, CopyWhatRanksShare) {
  Workload workload = tensor_parallel(2, false);
  workload.fusions.separate_qkv = workload.fusions.separate_gate = true;
  const double state = static_cast<double>(shard_of(workload).tokens * workload.model.hidden) * 2;
  const auto copied = [&] {
    const BlockProgram layer = layer_program(workload, false);
    double bytes = 0;
    for (const std::vector<Item>* items : {&layer.forward, &layer.backward}) {
      for (const Operator& op : operators(*items)) bytes += op.name.ends_with(" copy") ? op.bytes : 0;
    }
    return bytes / state;
  };
  const double kept = layer_activation_bytes(workload, false);
  EXPECT_EQ(copied(), 0);
  workload.fusions.copies_shared = true;
  EXPECT_EQ(copied(), 2 * (3 + 2 + 1 + 1));
  EXPECT_DOUBLE_EQ(layer_activation_bytes(workload, false) - kept, (2 + 1) * state);
  workload.parallel.sp = true;
  EXPECT_EQ(copied(), 0);
  workload.parallel.sp = false;
  workload.parallel.tp = 1;
  EXPECT_EQ(copied(), 0);
}

// The gradients that three products of one input have for it are added up, two by two; nothing else about the products changes.
TEST(SeparateProducts, AddTheirInputGradientsUp) {
  Workload workload = tensor_parallel(1, false);
  const auto of = [&](const std::string& name) {
    double bytes = 0, flops = 0, kernels = 0;
    const BlockProgram layer = layer_program(workload, false);
    for (const std::vector<Item>* items : {&layer.forward, &layer.backward}) {
      for (const Operator& op : operators(*items)) {
        if (!op.name.starts_with(name)) continue;
        bytes += op.bytes / (static_cast<double>(shard_of(workload).tokens * workload.model.hidden) * 2);
        flops += op.flops;
        kernels += op.kernels;
      }
    }
    return std::vector{bytes, flops, kernels};
  };
  const std::vector<double> one = of("qkv");
  workload.fusions.separate_qkv = true;
  const std::vector<double> three = of("qkv");
  EXPECT_NEAR(three[0] - one[0], 2 * 3, 1e-9);  // two in and one out, twice
  EXPECT_EQ(three[1], one[1]);
  EXPECT_EQ(three[2] - one[2], 3 * 2 + 2);
  workload.fusions.compiled = true;
  EXPECT_NEAR(of("qkv")[0] - one[0], 4, 1e-9);  // three in and one out
}

}  // namespace
}  // namespace rehearse::workloads::testing

// In how many calls, and in which type, replicas gather and reduce what they share out.
#include <gtest/gtest.h>

#include <iterator>

#include "operators_workloads.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

// Of a layer of the only stage, whose first unit is the embedding.
Parameters of_layer(const Workload& workload, std::size_t layer) {
  return parameters_of(*stage_programs(workload).front().chunks.front()[layer + 1].program);
}

// DeepSpeed's ZeRO-3 of 2021: LLaMA has 5 matrices (queries, keys and values in one) and 2 norms in a layer.
TEST(ReplicaCommunication, ZeroThreeByTensorMakesACallPerTensorAndHidesNone) {
  Workload workload = parallel(1, false);
  workload.optimizer = {.zero_stage = 3, .on_cpu = false, .by_tensor = true};
  workload.overlap.dp_gradients = workload.overlap.dp_parameters = true;
  const ReplicaSync sync = replica_sync(workload);
  EXPECT_EQ(sync.calls_of(of_layer(workload, 0)), 7);
  EXPECT_FALSE(sync.overlap_gradients || sync.overlap_parameters);
}

// Of layers of one block each every one comes in as many calls as it has tensors: two matrices of an MLP without gate and a norm, against
// the matrices of queries, keys and values, and of what leaves attention, and a norm. All of them lie on the stage, with a table, a norm
// and a head.
TEST(ReplicaCommunication, UnlikeLayersComeInCallsOfTheirOwn) {
  Workload workload = parallel(1, false);
  workload.model.layers = 4;
  workload.model.activation = Activation::relu2;
  workload.model.pattern = "-*--";
  workload.optimizer = {.zero_stage = 3, .on_cpu = false, .by_tensor = true};
  const ReplicaSync sync = replica_sync(workload);
  EXPECT_EQ(sync.calls_of(of_layer(workload, 0)), 3);
  workload.model.pattern = "*---";
  EXPECT_EQ(sync.calls_of(of_layer(workload, 0)), 3);
  EXPECT_EQ(stage_programs(workload).front().parameters.tensors, 4 * 3 + 3);
  workload.fusions.separate_qkv = true;
  EXPECT_EQ(sync.calls_of(of_layer(workload, 0)), 5);
  EXPECT_EQ(sync.calls_of(of_layer(workload, 1)), 3);
}

// A table is one tensor: no part of it comes by itself, whatever layers are cut into. A seventh of a layer of 70 numbers in 16 bits, all of
// a table of 100.
TEST(ReplicaCommunication, TablesComeWholeWhereLayersComeTensorByTensor) {
  Workload workload = parallel(1, false);
  workload.parallel.dp = 8;
  workload.optimizer = {.zero_stage = 3, .on_cpu = false, .by_tensor = true};
  const ReplicaSync sync = replica_sync(workload);
  const Parameters layer{.all = 70, .layers = 70, .tensors = 7}, table{.all = 100, .tensors = 1};
  EXPECT_EQ(sync.calls_of(layer), 7);
  EXPECT_EQ(sync.calls_of(table), 1);
  EXPECT_DOUBLE_EQ(sync.gather_calls(layer).begin()->bytes, 70 * 2 / 7);
  EXPECT_DOUBLE_EQ(sync.gather_calls(table).begin()->bytes, 100 * 2);
  EXPECT_DOUBLE_EQ(sync.reduction_calls(table).begin()->bytes, 7 * sync.reduction_calls(layer).begin()->bytes * 100 / 70);
}

// PEFT wraps the two matrices of each adapter by themselves: those of four targets beside the layer. Without adapters, and without ZeRO-3,
// nothing changes.
TEST(ReplicaCommunication, AdaptersMayBeUnitsOfTheirOwn) {
  Workload workload = parallel(1, false);
  workload.optimizer = {.zero_stage = 3, .on_cpu = false, .by_adapter = true};
  workload.overlap.dp_gradients = workload.overlap.dp_parameters = true;
  EXPECT_EQ(replica_sync(workload).calls_per_layer, 1);
  EXPECT_TRUE(replica_sync(workload).overlap_gradients);
  workload.lora.rank = 8;
  workload.lora.targets = {LoraTarget::linear_q, LoraTarget::linear_k, LoraTarget::linear_v, LoraTarget::linear_proj};
  EXPECT_EQ(replica_sync(workload).calls_per_layer, 1 + 2 * 4);
  EXPECT_FALSE(replica_sync(workload).overlap_gradients || replica_sync(workload).overlap_parameters);
  workload.optimizer.zero_stage = 2;
  EXPECT_EQ(replica_sync(workload).calls_per_layer, 1);
}

// Backward of a checkpoint with re-entrance calls FSDP's unit anew: what it gathers goes behind that call, and comes again. Without it
// units of adapters in the layer do so alone: four adapters of 10 numbers for each of eight matrices in 16 bits.
TEST(ReplicaCommunication, LayersThatAreRecomputedMayBeGatheredAgain) {
  Workload workload = parallel(1, false);
  workload.parallel.dp = 8;
  workload.optimizer = {.zero_stage = 3, .on_cpu = false, .by_adapter = true, .gathered_again = GatheredAgain::all};
  const Parameters layer{.all = 70, .layers = 70};
  EXPECT_EQ(replica_sync(workload).calls_again(layer), 0);
  workload.recompute.kind = RecomputeKind::full;
  ReplicaSync sync = replica_sync(workload);
  EXPECT_EQ(sync.calls_again(layer), 1);
  EXPECT_DOUBLE_EQ(sync.again_calls(layer).begin()->bytes, sync.gather_calls(layer).begin()->bytes);
  workload.optimizer.gathered_again = GatheredAgain::adapters;
  EXPECT_EQ(replica_sync(workload).calls_again(layer), 0);
  workload.lora.rank = 8;
  workload.lora.targets = {LoraTarget::linear_q, LoraTarget::linear_k, LoraTarget::linear_v, LoraTarget::linear_proj};
  const Parameters adapted{.all = 150, .layers = 70, .frozen = 70};
  sync = replica_sync(workload);
  EXPECT_EQ(sync.calls_again(adapted), 2 * 4);
  EXPECT_DOUBLE_EQ(sync.again_calls(adapted).begin()->bytes, 10 * 2);
  EXPECT_EQ(sync.gathers_again(adapted).front().name, "parameter all-gather");
  workload.offload_weights = true;  // a rank's share of it comes from its host each time
  const ReplicaCalls from_host = replica_sync(workload).again_calls(adapted);
  EXPECT_EQ(from_host.begin()->group, GroupKind::from_host);
  EXPECT_DOUBLE_EQ(from_host.begin()->bytes, 10 * 2 / 8.0);
  EXPECT_EQ(std::distance(from_host.begin(), from_host.end()), 2);
  workload.optimizer.zero_stage = 2;
  EXPECT_EQ(replica_sync(workload).calls_again(adapted), 0);
}

// Weights of layers are gathered in 8 bits, tables in 16; dense parameters and experts over groups of their own.
TEST(ReplicaCommunication, LayersAreGatheredInTheTypeThatThePlanNames) {
  Workload workload = parallel(1, false);
  workload.parallel.dp = 8;
  workload.optimizer.zero_stage = 1;
  const Parameters what{.all = 100, .experts = 30, .layers = 80};
  const auto bytes = [&] {
    ReplicaSync sync = replica_sync(workload);
    sync.expert_ranks = 4;
    std::vector<double> each;
    for (const ReplicaCall& call : sync.gather_calls(what)) each.push_back(call.bytes);
    return each;
  };
  EXPECT_EQ(bytes(), (std::vector<double>{70 * 2, 30 * 2}));
  workload.precision.param_gather = DType::fp8;
  EXPECT_EQ(bytes(), (std::vector<double>{50 * 1 + 20 * 2, 30 * 1}));
}

}  // namespace
}  // namespace rehearse::workloads::testing

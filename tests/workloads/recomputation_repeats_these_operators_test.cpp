#include <gtest/gtest.h>

#include "operators_workloads.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::workloads::testing {
namespace {

using Names = std::vector<std::string>;

TEST(Recomputation, FullRecomputationRepeatsTheForwardWithItsCollectives) {
  const BlockProgram layer = layer_program(parallel(8, true), true);
  EXPECT_EQ(skeleton(layer.recompute), skeleton(layer.forward));
  for (const Operator& op : operators(layer.recompute)) EXPECT_EQ(op.pass, Pass::recompute) << op.name;
  for (const Communication& communication : communications(layer.recompute)) EXPECT_EQ(communication.pass, Pass::recompute);
}

// Megatron-LM's --distribute-saved-activations: 2 bytes of h for each of the tokens, from all ranks of tp.
TEST(Recomputation, ShardedInputsOfRecomputedLayersAreGatheredFirst) {
  Workload workload = parallel(8, false);
  const double tokens = static_cast<double>(workload.batch.micro * workload.batch.sequence);
  const Names whole = skeleton(layer_program(workload, true).recompute);
  workload.recompute.shards_inputs = true;
  const BlockProgram layer = layer_program(workload, true);
  Names gathered{"layer input all-gather"};
  gathered.insert(gathered.end(), whole.begin(), whole.end());
  EXPECT_EQ(skeleton(layer.recompute), gathered);
  const auto& input = std::get<Communication>(layer.recompute.front());
  EXPECT_EQ(input.pass, Pass::recompute);
  EXPECT_EQ(input.group, GroupKind::tp);
  EXPECT_EQ(input.bytes, tokens * workload.model.hidden * 2);
  workload.fusions.autocast = true;  // hidden states in fp32, of which a rank keeps as much
  EXPECT_EQ(std::get<Communication>(layer_program(workload, true).recompute.front()).bytes, tokens * workload.model.hidden * 4);
  EXPECT_EQ(layer_activation_bytes(workload, true), tokens * workload.model.hidden * 4 / 8);
}

TEST(Recomputation, SelectiveRecomputationRepeatsCoreAttentionAlone) {
  Workload workload = parallel(8, true);
  workload.recompute.kind = RecomputeKind::selective;
  EXPECT_EQ(skeleton(layer_program(workload, false).recompute), (Names{"core_attention"}));
  workload.parallel.cp = 2;
  const BlockProgram layer = layer_program(workload, false);
  ASSERT_EQ(layer.recompute.size(), 2U);
  EXPECT_EQ(std::get<RingAttention>(layer.recompute.front()).step.pass, Pass::recompute);
  EXPECT_EQ(std::get<Operator>(layer.recompute.back()).name, "ring_joining");
  workload.parallel.cp_comm = ContextComm::all_to_all;  // what was exchanged is kept
  EXPECT_EQ(skeleton(layer_program(workload, false).recompute), (Names{"core_attention"}));
  workload.recompute.kind = RecomputeKind::full;
  EXPECT_TRUE(layer_program(workload, false).recompute.empty()) << "a layer that full recomputation leaves out";
}

// Megatron-Core's --recompute-modules, in the order of the layer; what sequence parallelism gathers for them is gathered again.
TEST(Recomputation, RecomputedModulesRepeatTheirOperatorsAlone) {
  Workload workload = parallel(8, true);
  const auto again = [&](std::vector<RecomputeModule> modules) {
    workload.recompute = {.kind = RecomputeKind::selective, .modules = std::move(modules)};
    Names names;
    for (const Operator& op : operators(layer_program(workload, false).recompute)) names.push_back(op.name);
    return names;
  };
  EXPECT_EQ(again({}), (Names{"core_attention"}));
  EXPECT_EQ(again({RecomputeModule::layernorm}), (Names{"input_norm", "post_norm"}));
  EXPECT_EQ(again({RecomputeModule::mlp, RecomputeModule::core_attn}), (Names{"core_attention", "mlp_fc1", "activation", "mlp_fc2"}));
  EXPECT_EQ(again({RecomputeModule::mlp_act}), (Names{"activation"}));
  EXPECT_EQ(again({RecomputeModule::mlp_act, RecomputeModule::mlp}), (Names{"mlp_fc1", "activation", "mlp_fc2"}));
  again({RecomputeModule::mlp, RecomputeModule::core_attn});
  EXPECT_EQ(skeleton(layer_program(workload, false).recompute),
            (Names{"core_attention", "mlp all-gather", "mlp_fc1", "mlp_fc2", "mlp reduce-scatter"}));
}

}  // namespace
}  // namespace rehearse::workloads::testing

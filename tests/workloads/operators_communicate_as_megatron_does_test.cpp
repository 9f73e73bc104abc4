#include <gtest/gtest.h>

#include <algorithm>

#include "config/input_error.hpp"
#include "operators_workloads.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

using Names = std::vector<std::string>;

std::string refusal(const Workload& workload) {
  try {
    static_cast<void>(layer_program(workload, false));
  } catch (const config::InputError& error) {
    return error.message();
  }
  return "";
}

TEST(OperatorCommunication, WithoutTensorParallelismNothingIsSent) {
  const BlockProgram layer = layer_program(parallel(1, true), true);
  EXPECT_TRUE(communications(layer.forward).empty());
  EXPECT_TRUE(communications(layer.backward).empty());
  EXPECT_TRUE(communications(layer.recompute).empty());
  EXPECT_TRUE(communications(head_program(parallel(1, false)).forward).empty());
  EXPECT_TRUE(communications(embedding_program(parallel(1, false)).forward).empty());
}

TEST(OperatorCommunication, TensorParallelismReducesAfterRowAndBeforeColumnLayers) {
  const BlockProgram layer = layer_program(parallel(8, false), false);
  EXPECT_EQ(skeleton(layer.forward),
            (Names{"qkv", "core_attention", "attention_projection", "attention all-reduce", "mlp_fc1", "mlp_fc2", "mlp all-reduce"}));
  EXPECT_EQ(skeleton(layer.backward),
            (Names{"mlp_fc2", "mlp_fc2 (weights)", "mlp_fc1", "mlp all-reduce", "mlp_fc1 (weights)", "attention_projection",
                   "attention_projection (weights)", "core_attention", "qkv", "attention all-reduce", "qkv (weights)"}));
}

TEST(OperatorCommunication, SequenceParallelismGathersAndScatters) {
  const BlockProgram layer = layer_program(parallel(8, true), false);
  EXPECT_EQ(skeleton(layer.forward), (Names{"attention all-gather", "qkv", "core_attention", "attention_projection",
                                            "attention reduce-scatter", "mlp all-gather", "mlp_fc1", "mlp_fc2", "mlp reduce-scatter"}));
  EXPECT_EQ(skeleton(layer.backward),
            (Names{"mlp all-gather", "mlp_fc2", "mlp_fc2 (weights)", "mlp all-gather", "mlp_fc1", "mlp reduce-scatter", "mlp_fc1 (weights)",
                   "attention all-gather", "attention_projection", "attention_projection (weights)", "core_attention",
                   "attention all-gather", "qkv", "attention reduce-scatter", "qkv (weights)"}));
}

TEST(OperatorCommunication, EveryTensorCollectiveCarriesTheWholeHiddenState) {
  // b * s/cp * h * 2 bytes, whatever sp is: an all-reduce of N is a reduce-scatter and an all-gather of N.
  for (const bool sp : {false, true}) {
    const BlockProgram layer = layer_program(parallel(8, sp, 2), true);
    for (const auto& items : {layer.forward, layer.backward, layer.recompute}) {
      for (const Communication& communication : communications(items)) {
        EXPECT_EQ(communication.bytes, 2.0 * 4096 * 4096 * 2) << communication.name;
        EXPECT_EQ(communication.group, GroupKind::tp);
      }
    }
  }
}

TEST(OperatorCommunication, RingSendsKeysAndValuesAndTheirGradientsBack) {
  // 2 b (s/cp) (kv/t) d 2 bytes forward: 2 * 2 * 2048 * 1 * 128 * 2; twice that backward. kv 8 over tp 8: one head each.
  const BlockProgram layer = layer_program(parallel(8, true, 4), false);
  int rings = 0;
  for (const auto& [items, factor] : {std::pair{layer.forward, 1.0}, std::pair{layer.backward, 2.0}}) {
    for (const Item& item : items) {
      const auto* ring = std::get_if<RingAttention>(&item);
      if (ring == nullptr) continue;
      ++rings;
      EXPECT_EQ(ring->block_bytes, factor * 2 * 2 * 2048 * 128 * 2);
      EXPECT_EQ(ring->step.query, 2048);
      EXPECT_EQ(ring->step.key, 2048);
    }
  }
  EXPECT_EQ(rings, 2);
}

// Of four steps the first writes its whole output (a read and a write), three add to three quarters of the rows on average: 2 + 3 * 3 * 3/4
// passes. Forward over the context, beside the keys and values that are joined; backward over the gradients of queries, keys and values.
TEST(OperatorCommunication, WhatTheStepsOfARingLeaveIsPutTogether) {
  const BlockProgram layer = layer_program(parallel(8, true, 4), false);
  const double tokens = 2 * 2048, queries = tokens * 4 * 128 * 2, keys_and_values = 2 * tokens * 128 * 2;
  const Operator forward = find(layer.forward, "ring_joining"), backward = find(layer.backward, "ring_joining");
  EXPECT_DOUBLE_EQ(forward.bytes, 8.75 * queries + 2 * keys_and_values);
  EXPECT_EQ(forward.kernels, 9);
  EXPECT_FALSE(forward.eager) << "compiled";
  EXPECT_DOUBLE_EQ(backward.bytes, 8.75 * (queries + keys_and_values));
  EXPECT_EQ(backward.kernels, 12);
  EXPECT_TRUE(backward.eager);
}

// Tensors of T/cp tokens: queries of 32/t heads of 128, keys and values of 8/t. Each call has a copy before it and one behind, of 2 passes.
TEST(OperatorCommunication, AnAllToAllOverTheContextGroupHasACallAndTwoCopiesForEachTensor) {
  Workload workload = parallel(1, false, 4);
  workload.parallel.cp_comm = ContextComm::all_to_all;
  const double queries = 2 * 2048 * 32 * 128 * 2, keys = 2 * 2048 * 8 * 128 * 2;
  const auto sizes = [](const std::vector<Item>& items) {
    std::vector<double> bytes;
    for (const Communication& call : communications(items)) bytes.push_back(call.bytes);
    return bytes;
  };
  const auto copied = [](const std::vector<Item>& items) {
    double bytes = 0;
    int kernels = 0;
    for (const Operator& op : operators(items)) {
      if (op.name != "exchange_copies") continue;
      bytes += op.bytes;
      kernels += op.kernels;
    }
    return std::pair{bytes, kernels};
  };
  const BlockProgram layer = layer_program(workload, false);
  EXPECT_EQ(sizes(layer.forward), (std::vector{queries, keys, keys, queries}));
  EXPECT_EQ(sizes(layer.backward), (std::vector{queries, queries, keys, keys}));
  EXPECT_EQ(copied(layer.forward), (std::pair{4 * (2 * queries + 2 * keys), 8}));
  EXPECT_EQ(copied(layer.backward), copied(layer.forward));
  workload.precision.attention = DType::fp8;  // cast before it is sent
  EXPECT_EQ(sizes(layer_program(workload, false).forward), (std::vector{queries / 2, keys / 2, keys / 2, queries / 2}));
  EXPECT_EQ(copied(layer_program(workload, false).forward), (std::pair{2 * (2 * queries + 2 * keys), 8}));
}

TEST(OperatorCommunication, KeyValueHeadsAreReplicatedWhenThereAreFewerThanRanks) {
  // kv 8 over tp 16: each rank keeps one head, 2 of 32 query heads: (2 + 2) * 128 columns.
  const Operator qkv = find(layer_program(parallel(16, true), false).forward, "qkv");
  EXPECT_EQ(qkv.n, (2 + 2 * 1) * 128);
}

// Transformer Engine casts what lies spread and gathers the cast; reductions add in 16 bits.
TEST(OperatorCommunication, EightBitLayersGatherEightBits) {
  Workload workload = parallel(8, true);
  const double hidden_states = 2.0 * 8192 * 4096;
  for (const auto& [compute, element] : {std::pair{DType::bf16, 2.0}, std::pair{DType::fp8, 1.0}}) {
    workload.precision.compute = compute;
    const BlockProgram layer = layer_program(workload, false);
    for (const auto& items : {layer.forward, layer.backward}) {
      for (const Communication& call : communications(items)) {
        EXPECT_EQ(call.bytes, hidden_states * (call.kind == CollectiveKind::all_gather ? element : 2)) << call.name;
      }
    }
  }
  EXPECT_EQ(find(layer_program(workload, false).forward, "qkv cast").bytes, hidden_states / 8 * (2 + 1));
}

// What autograd keeps gathered is not gathered again for the weight gradient; what is reduced stays.
TEST(OperatorCommunication, WhatIsKeptGatheredIsNotGatheredAgain) {
  Workload workload = parallel(8, true);
  const auto gathers = [](const Workload& of) {
    int count = 0;
    for (const std::string& name : skeleton(layer_program(of, false).backward)) count += name.ends_with("all-gather") ? 1 : 0;
    return count;
  };
  EXPECT_EQ(gathers(workload), 4);  // inputs of qkv and fc1, gradients of projection and fc2
  workload.fusions.keeps_gathered = true;
  EXPECT_EQ(gathers(workload), 2);
}

TEST(OperatorCommunication, KeptOutputsAreNotMadeAgain) {
  using enum LayerOutput;
  Workload workload = parallel(8, true);
  const auto again = [&](std::vector<LayerOutput> outputs, bool early = false) {
    workload.recompute = {.kind = RecomputeKind::full, .kept = std::move(outputs), .stops_early = early};
    return skeleton(layer_program(workload, true).recompute);
  };
  const Names mlp{"mlp all-gather", "mlp_fc1", "mlp_fc2", "mlp reduce-scatter"};
  Names expected{"core_attention", "attention_projection", "attention reduce-scatter"};
  expected.insert(expected.end(), mlp.begin(), mlp.end());
  EXPECT_EQ(again({linear_qkv}), expected);
  EXPECT_EQ(again({linear_qkv, core_attention, linear_proj}), mlp);
  EXPECT_EQ(again({linear_qkv, core_attention, linear_proj, linear_fc1, linear_fc2}), Names{});
  EXPECT_EQ(again({linear_qkv, core_attention, linear_proj}, true), (Names{"mlp all-gather", "mlp_fc1"}));
  EXPECT_EQ(again({linear_qkv, core_attention, linear_proj, linear_fc2}, true), (Names{"mlp all-gather", "mlp_fc1"}));
  // The norms and the activation come again: nothing else is kept.
  Names all;
  workload.recompute = {.kind = RecomputeKind::full, .kept = {linear_qkv, core_attention, linear_proj, linear_fc1}, .stops_early = true};
  for (const Operator& op : operators(layer_program(workload, true).recompute)) all.push_back(op.name);
  EXPECT_EQ(all, (Names{"input_norm", "attention_residual", "post_norm", "activation"}));
}

// torch.utils.checkpoint without re-entrance: the output of fc2 is read by nobody, but a dropout's mask behind it is.
TEST(OperatorCommunication, RecomputationThatStopsEarlyLeavesTheLastProductOut) {
  Workload workload = parallel(8, false);
  workload.recompute = {.kind = RecomputeKind::full, .full_layers = -1, .stops_early = true};
  EXPECT_EQ(skeleton(layer_program(workload, true).recompute),
            (Names{"qkv", "core_attention", "attention_projection", "attention all-reduce", "mlp_fc1"}));
  Workload with_dropout = gpt(2, 4096, 32, 51200, 2048, 1);
  with_dropout.recompute = workload.recompute;
  EXPECT_EQ(skeleton(layer_program(with_dropout, true).recompute).back(), "mlp_fc2");
  workload.recompute = {
      .kind = RecomputeKind::selective, .modules = {RecomputeModule::core_attn, RecomputeModule::mlp}, .stops_early = true};
  EXPECT_EQ(skeleton(layer_program(workload, false).recompute), (Names{"core_attention", "mlp_fc1"}));
}

// Of a multi-token-prediction module, too, all but its copy of the table is a layer's.
TEST(OperatorCommunication, PredictionsAreLayers) {
  Workload workload = parallel(1, false);
  workload.model.layers = 2;
  workload.model.mtp = 1;
  workload.model.moe = MoeSpec{.experts = 8, .top_k = 2, .ffn = 512};
  workload.parallel.pp = 2;
  workload.batch.global = 8;
  int predictions = 0;
  for (const StageProgram& stage : stage_programs(workload, Granularity::layer)) {
    for (const Unit& unit : stage.chunks.front()) {
      const Parameters own = parameters_of(*unit.program);
      EXPECT_GE(own.layers, own.experts) << unit.name;
      if (unit.kind != UnitKind::prediction) continue;
      ++predictions;
      const double table = embedding_program(workload).parameters;
      EXPECT_DOUBLE_EQ(own.layers, own.all - table);
    }
  }
  EXPECT_EQ(predictions, 1);
}

// A rank of sixty-four makes its share of a layer's matrices orthogonal, or the largest of them: not the table, which is Adam's.
TEST(OperatorCommunication, MuonSharesMatricesOut) {
  Workload workload = parallel(1, false);
  workload.optimizer.kind = OptimizerKind::muon;
  workload.optimizer.zero_stage = 1;
  workload.parallel.dp = 64;
  const ReplicaSync sync = replica_sync(workload);
  const Parameters own{.all = 8e9, .experts = 0, .layers = 7e9};
  const HeldParameters held = held_in_step(workload, sync, own, sync.shard(own.all, 0));
  EXPECT_DOUBLE_EQ(held.dense_updated, 7e9 / 64);
  EXPECT_GT(sync.shard(own.all, 0), held.dense_updated);
  const ReplicaSync none = replica_sync([&] {
    Workload whole = workload;
    whole.optimizer.zero_stage = 0;
    return whole;
  }());
  workload.optimizer.zero_stage = 0;
  EXPECT_DOUBLE_EQ(held_in_step(workload, none, own, own.all).dense_updated, 7e9);
}

// What a graph replays the host does not issue: neither kernels nor calls.
TEST(OperatorCommunication, GraphsTakeTheirPartsFromTheHost) {
  Workload workload = parallel(2, true);
  const auto issued = [&](std::vector<GraphScope> graphs) {
    workload.graphs = std::move(graphs);
    const auto stages = stage_programs(workload, Granularity::layer);
    const Unit& layer = stages.front().chunks.front().at(1);
    const auto& queue = *std::get<ComputeSegment>(*std::ranges::find_if(layer.program->forward, [](const Segment& segment) {
                           return std::holds_alternative<ComputeSegment>(segment);
                         })).queue;
    int kernels = 0;
    for (const Operator& op : queue.operators) kernels += op.captured ? 0 : op.kernels;
    return std::pair(kernels, queue.issued_calls);
  };
  const auto [all, calls] = issued({});
  const auto [without_attention, calls_of_mlp] = issued({GraphScope::attn});
  const auto [without_mlp, calls_of_attention] = issued({GraphScope::mlp});
  EXPECT_EQ(without_attention + without_mlp, all);
  EXPECT_GT(without_mlp, 0);
  EXPECT_EQ(std::vector({calls, calls_of_mlp, calls_of_attention}), (std::vector{4, 2, 2}));
  EXPECT_EQ(issued({GraphScope::attn, GraphScope::mlp}), std::pair(0, 0));
}

// Of the first layer, by parameter.
double bytes_of_copies(const Workload& workload) {
  const auto stages = stage_programs(workload, Granularity::op);
  const UnitProgram& layer = *stages[0].chunks[0][1].program;
  double bytes = 0;
  for (const std::vector<Segment>* segments : {&layer.forward, &layer.backward}) {
    for (const Segment& segment : *segments) {
      const auto* compute = std::get_if<ComputeSegment>(&segment);
      if (compute == nullptr) continue;
      for (const Operator& op : compute->operators) bytes += op.name.ends_with(" copy") ? op.bytes : 0;
    }
  }
  return bytes / layer.parameters;
}

Workload of_eight_replicas(const Optimizer& optimizer) {
  Workload workload = parallel(1, false);
  workload.parallel.dp = 8;
  workload.optimizer = optimizer;
  return workload;
}

// FSDP2 copies every weight before forward and before backward, 16 bits read and written, and every gradient: 16 bits read, 32 written.
TEST(OperatorCommunication, CopiesOfWhatIsExchangedMoveEveryParameter) {
  EXPECT_EQ(bytes_of_copies(of_eight_replicas({.zero_stage = 3})), 0);
  EXPECT_NEAR(bytes_of_copies(of_eight_replicas({.zero_stage = 3, .copies = true})), 4 + 4 + 6, 1e-9);
}

// FSDP1: gradients in bf16 are joined (2 + 2); where they are reduced, cast to fp32 (2 + 4) and divided (4 + 4), or in bf16 divided alone.
TEST(OperatorCommunication, FlatParametersJoinTheirGradients) {
  Workload workload = of_eight_replicas({.zero_stage = 3, .flat = true});
  workload.batch.global = 8 * workload.batch.micro * 2;
  EXPECT_NEAR(bytes_of_copies(workload), 4 + 6 + 8, 1e-9);
  workload.optimizer.no_sync = true;
  EXPECT_NEAR(bytes_of_copies(workload), 4, 1e-9);
  workload.optimizer.no_sync = false;
  workload.precision.gradients = DType::bf16;
  EXPECT_NEAR(bytes_of_copies(workload), 4 + 4, 1e-9);
  workload.optimizer.zero_stage = 1;
  EXPECT_EQ(bytes_of_copies(workload), 0);
}

TEST(OperatorCommunication, EmbeddingIsReducedAndItsGradientGathered) {
  EXPECT_EQ(skeleton(embedding_program(parallel(4, false)).forward), (Names{"embedding", "embedding all-reduce"}));
  EXPECT_EQ(skeleton(embedding_program(parallel(4, true)).forward), (Names{"embedding", "embedding reduce-scatter"}));
  EXPECT_EQ(skeleton(embedding_program(parallel(4, true)).backward), (Names{"embedding all-gather", "embedding (weights)"}));
}

TEST(OperatorCommunication, HeadReducesThreeNumbersPerToken) {
  const BlockProgram head = head_program(parallel(8, true, 2));
  EXPECT_EQ(skeleton(head.forward), (Names{"head all-gather", "logits", "cross_entropy", "loss maximum all-reduce",
                                           "loss predicted logit all-reduce", "loss sum all-reduce"}));
  EXPECT_EQ(skeleton(head.backward), (Names{"cross_entropy", "head all-gather", "logits", "head reduce-scatter", "logits (weights)"}));
  EXPECT_EQ(communications(head.forward).back().bytes, 2.0 * 4096 * 4);  // b * s/cp fp32 numbers
}

TEST(OperatorCommunication, GatheredLogitsAreReducedByNobody) {
  Workload workload = parallel(8, true, 2);
  const auto loss_bytes = [](const BlockProgram& head) {
    const auto loss = std::ranges::find_if(head.forward, [](const Item& item) {
      const auto* op = std::get_if<Operator>(&item);
      return op != nullptr && op->name == "cross_entropy";
    });
    return std::get<Operator>(*loss).bytes;
  };
  const double shared = loss_bytes(head_program(workload));
  workload.fusions.whole_logits = true;
  const BlockProgram head = head_program(workload);
  EXPECT_EQ(skeleton(head.forward), (Names{"head all-gather", "logits", "head logits all-gather", "gathered_logits", "cross_entropy"}));
  EXPECT_EQ(skeleton(head.backward),
            (Names{"cross_entropy", "gathered_logits", "head all-gather", "logits", "head reduce-scatter", "logits (weights)"}));
  EXPECT_EQ(communications(head.forward).back().bytes,
            2.0 * 4096 * 2 * static_cast<double>(padded_vocabulary(workload.model.vocab, 8, 128)));
  EXPECT_EQ(loss_bytes(head), 8 * shared);  // every rank computes the whole loss
  workload = parallel(1, false, 2);
  const std::vector<std::string> alone = skeleton(head_program(workload).forward);
  workload.fusions.whole_logits = true;
  EXPECT_EQ(skeleton(head_program(workload).forward), alone);
}

// Narayanan et al. 2021, section 4.1: scatter before sending, gather behind, whether or not the layers split the sequence.
TEST(OperatorCommunication, PipelineMessagesAreSplitByTensorParallelism) {
  EXPECT_EQ(pipeline_message_bytes(parallel(8, false, 2)), 2.0 * 4096 * 4096 * 2 / 8);
  EXPECT_EQ(pipeline_message_bytes(parallel(8, true, 2)), 2.0 * 4096 * 4096 * 2 / 8);
}

TEST(OperatorCommunication, BlocksWithoutAttentionOrVocabularyHaveNoneOfIt) {
  Workload workload = parallel(8, true);
  workload.model.heads = workload.model.kv_heads = 0;
  workload.model.vocab = 0;
  EXPECT_EQ(skeleton(layer_program(workload, false).forward), (Names{"mlp all-gather", "mlp_fc1", "mlp_fc2", "mlp reduce-scatter"}));
  EXPECT_TRUE(embedding_program(workload).forward.empty());
  EXPECT_TRUE(head_program(workload).forward.empty());
  workload.recompute.kind = RecomputeKind::selective;
  EXPECT_TRUE(layer_program(workload, false).recompute.empty());
}

TEST(OperatorCommunication, PlansThatDoNotDivideAreRefused) {
  EXPECT_EQ(refusal(parallel(3, false)), "32 attention heads cannot be divided evenly over tp 3");
  EXPECT_EQ(refusal(parallel(1, false, 3)), "8192 positions of a sequence cannot be divided evenly over cp 3");
  Workload odd = parallel(4, false);
  odd.model.kv_heads = 6;
  EXPECT_EQ(refusal(odd), "6 key/value heads cannot be divided evenly over tp 4");
  odd = parallel(4, false);
  odd.model.ffn = 14337;
  EXPECT_EQ(refusal(odd), "14337 intermediate features cannot be divided evenly over tp 4");
  odd = parallel(2, false, 2);
  odd.attention = Attention::unfused;
  EXPECT_EQ(refusal(odd), "context parallelism needs attention: flash");
}

}  // namespace
}  // namespace rehearse::workloads::testing

#include <gtest/gtest.h>
#include <array>

#include "operators_workloads.hpp"

namespace rehearse::workloads::testing {
namespace {

const double tokens = 2.0 * 1024;  // micro-batch 2, sequence 1024

Workload small() { return llama(4, 1024, 16, 4, 2816, 32000, 1024, 2); }

TEST(OperatorBytes, ProductsReadTheirInputsAndWriteTheirOutputOnce) {
  // fc1: 2048 x 1024 in, 1024 x 5632 weights, 2048 x 5632 out, 2 bytes each.
  EXPECT_EQ(find(layer_program(small(), false).forward, "mlp_fc1").bytes, 2 * (tokens * 1024 + 1024.0 * 5632 + tokens * 5632));
}

TEST(OperatorBytes, WeightGradientsAccumulateInFp32) {
  // Input and output gradient in 2 bytes, the fp32 buffer read and written.
  Workload workload = small();
  const auto weight_bytes = [](const Workload& of) {
    double sum = 0;
    for (const Operator& op : operators(layer_program(of, false).backward)) {
      if (op.pass == Pass::backward_weight && op.name.starts_with("mlp_fc2")) sum += op.bytes;
    }
    return sum;
  };
  const double inputs = 2 * (tokens * 1024 + tokens * 2816);
  const double weights = 1024.0 * 2816;
  EXPECT_EQ(weight_bytes(workload), inputs + weights * 8);
  // Apart: the product writes 2 bytes; a kernel reads them and reads and writes the buffer.
  workload.fusions.gradient_accumulation = false;
  EXPECT_EQ(weight_bytes(workload), inputs + weights * (2 + 2 + 8));
}

// Of four micro-batches one's gradients are where the others' are added: 2 + 4 + 4 bytes a weight three times of four. ZeRO-3 that copies
// them to what it reduces adds in its shard of two ranks alone; without such copies, and on the last place of tied tables, nothing is
// saved.
TEST(OperatorBytes, GradientsThatAreAdoptedAreNotAdded) {
  Workload workload = small();
  workload.fusions.gradient_accumulation = false;
  workload.parallel.dp = 2;
  workload.batch.global = 16;
  const auto added = [&] { return find(layer_program(workload, false).backward, "mlp_fc2 gradient accumulation").bytes; };
  const auto table = [&] { return find(embedding_program(workload).backward, "embedding").bytes; };
  const double all = 1024.0 * 2816 * 10, all_of_table = table();
  EXPECT_EQ(added(), all);
  workload.fusions.adopts_gradients = true;
  EXPECT_EQ(added(), 0.75 * all);
  EXPECT_EQ(all_of_table - table(), 0.25 * 1024 * 32000 * (2 + 8));
  workload.optimizer.zero_stage = 3;
  EXPECT_EQ(added(), all);
  workload.optimizer.flat = true;  // a flat gradient is new in every micro-batch; shards are added up
  EXPECT_EQ(added(), 0.375 * all);
  workload.optimizer.flat = false;
  workload.optimizer.copies = true;
  EXPECT_EQ(added(), 0.375 * all);
  workload.optimizer.no_sync = true;
  EXPECT_EQ(added(), 0.75 * all);
  workload.batch.global = 4;
  EXPECT_EQ(added(), 0);
  workload.model.tied_embeddings = true;
  EXPECT_EQ(table(), all_of_table);
}

TEST(OperatorBytes, FlashMovesQueriesKeysValuesAndOutputOnly) {
  // Q and O 1024 wide, K and V 256 wide, 2 bytes; 16 fp32 statistics.
  const BlockProgram layer = layer_program(small(), false);
  EXPECT_EQ(find(layer.forward, "core_attention").bytes, tokens * (2 * (2 * 1024 + 2 * 256) + 16 * 4));
  EXPECT_EQ(find(layer.backward, "core_attention").bytes, tokens * (2 * (4 * 1024 + 4 * 256) + 16 * 4));
}

TEST(OperatorBytes, UnfusedAttentionMovesTheSquareOfTheSequence) {
  // softmax in and out 2 bytes, dropout in and out 2 bytes and 1 byte of mask, on b a s^2 elements.
  const Workload workload = gpt(4, 1024, 16, 51200, 1024, 2);
  const double square = 2.0 * 16 * 1024 * 1024;
  const BlockProgram layer = layer_program(workload, false);
  EXPECT_EQ(find(layer.forward, "softmax").bytes, 4 * square);
  EXPECT_EQ(find(layer.forward, "attention_dropout").bytes, 5 * square);
  EXPECT_EQ(find(layer.backward, "softmax").bytes, 6 * square);
}

TEST(OperatorBytes, SequenceParallelismDividesNormsAndResiduals) {
  Workload workload = small();
  workload.parallel.tp = 4;
  const double whole = find(layer_program(workload, false).forward, "input_norm").bytes;
  EXPECT_EQ(whole, 2 * 2 * tokens * 1024);
  workload.parallel.sp = true;
  EXPECT_EQ(find(layer_program(workload, false).forward, "input_norm").bytes * 4, whole);
  EXPECT_EQ(find(layer_program(workload, false).forward, "mlp_residual").bytes * 4, 3 * 2 * tokens * 1024);
}

TEST(OperatorBytes, EachMissingFusionMovesMoreAndLaunchesMore) {
  Workload llama_like = small();
  Workload gpt_like = gpt(4, 1024, 16, 51200, 1024, 2);
  const auto total = [](const Workload& workload) {
    const BlockProgram layer = layer_program(workload, false), head = head_program(workload);
    return bytes(layer.forward) + bytes(layer.backward) + bytes(head.forward) + bytes(head.backward);
  };
  const double llama_bytes = total(llama_like), gpt_bytes = total(gpt_like);
  for (auto field : {&KernelFusions::norm, &KernelFusions::activation, &KernelFusions::rope, &KernelFusions::cross_entropy,
                     &KernelFusions::gradient_accumulation}) {
    Workload without = llama_like;
    without.fusions.*field = false;
    EXPECT_GT(total(without), llama_bytes);
  }
  for (auto field : {&KernelFusions::softmax, &KernelFusions::dropout_add, &KernelFusions::activation}) {
    Workload without = gpt_like;
    without.fusions.*field = false;
    EXPECT_GT(total(without), gpt_bytes);
  }
}

TEST(OperatorBytes, ActivationOfSeveralOperatorsMovesMoreWhereItIsNotFused) {
  Workload workload = gpt(4, 1024, 16, 51200, 1024, 2);
  const double pass = 2 * tokens * 4096;
  for (const bool fused : {true, false}) {
    workload.fusions.activation = fused;
    workload.fusions.activation_kernels = {0, 0};
    workload.fusions.activation_copies = {};
    const BlockProgram before = layer_program(workload, false);
    workload.fusions.activation_kernels = {6, 10};
    workload.fusions.activation_copies = {7, 12.5};
    const BlockProgram after = layer_program(workload, false);
    const int there = fused ? 0 : 1;
    EXPECT_EQ(find(after.forward, "activation").bytes, find(before.forward, "activation").bytes + there * 14 * pass);
    EXPECT_EQ(find(after.backward, "activation").bytes, find(before.backward, "activation").bytes + there * 25 * pass);
    EXPECT_EQ(find(after.forward, "activation").kernels, find(before.forward, "activation").kernels + there * 6);
    EXPECT_EQ(find(after.backward, "activation").kernels, find(before.backward, "activation").kernels + there * 10);
  }
}

// A pass is one read or write of all scores in 16 bits. Apart: scale, mask and softmax (6; 7 backward). Autocast takes softmax in fp32: of
// what it reads and writes each is a pass more, and the casts before it and behind are three each.
TEST(OperatorBytes, SoftmaxApartIsInFp32UnderAutocast) {
  Workload workload = gpt(4, 1024, 16, 51200, 1024, 2);
  workload.precision.weights = DType::fp32;
  const double pass = 2 * 2 * 16 * 1024.0 * 1024;
  const auto softmax = [&] {
    const BlockProgram layer = layer_program(workload, false);
    const Operator &forward = find(layer.forward, "softmax"), &backward = find(layer.backward, "softmax");
    return std::array{forward.bytes / pass, backward.bytes / pass, 1.0 * forward.kernels, 1.0 * backward.kernels};
  };
  workload.fusions.autocast = true;
  EXPECT_EQ(softmax(), (std::array{2.0, 3.0, 1.0, 1.0}));
  workload.fusions.softmax = false;
  EXPECT_EQ(softmax(), (std::array{6.0 + 2 + 6, 7.0 + 3 + 6, 5.0, 5.0}));
  workload.fusions.autocast = false;
  EXPECT_EQ(softmax(), (std::array{6.0, 7.0, 3.0, 3.0}));
}

TEST(OperatorBytes, RopeApartIsAsTheStackHasItAndDocumentByDocument) {
  Workload workload = small();
  workload.fusions.rope = false;
  const double once = 2 * tokens * (1024 + 256);  // queries and keys, 2 bytes
  EXPECT_EQ(find(layer_program(workload, false).forward, "rope").bytes, 9 * once);
  workload.fusions.rope_kernels = {24, 18};
  workload.fusions.rope_copies = {6, 8.5};
  workload.batch.document = 300;  // 4 in each of the two sequences
  for (const bool apart : {false, true}) {
    workload.fusions.rope_by_document = apart;
    const BlockProgram layer = layer_program(workload, false);
    EXPECT_EQ(find(layer.forward, "rope").bytes, 12 * once);
    EXPECT_EQ(find(layer.backward, "rope").bytes, 17 * once);
    EXPECT_EQ(find(layer.forward, "rope").kernels, apart ? 8 * 24 : 24);
    EXPECT_EQ(find(layer.backward, "rope").kernels, apart ? 8 * 18 : 18);
  }
}

// Of MLA the parts with positions alone are rotated, of queries and of keys that all heads share: so many copies of 16 heads' 64 numbers,
// beside the kernel that puts queries, keys and values together.
TEST(OperatorBytes, RopeApartOfLatentAttentionTakesThePartsWithPositions) {
  Workload workload = small();
  workload.model.mla = MlaSpec{.q_lora = 512, .kv_lora = 256, .qk_nope = 128, .qk_rope = 64, .v = 128};
  const BlockProgram fused = layer_program(workload, false);
  workload.fusions.rope = false;
  workload.fusions.rope_kernels = {24, 18};
  workload.fusions.rope_copies = {6, 8.5};
  workload.batch.document = 300;  // 4 in each of the two sequences
  const double once = 2 * 2 * tokens * 16 * 64;
  for (const bool apart : {false, true}) {
    workload.fusions.rope_by_document = apart;
    const BlockProgram layer = layer_program(workload, false);
    const Operator before = find(fused.forward, "rope"), forward = find(layer.forward, "rope"), backward = find(layer.backward, "rope");
    EXPECT_EQ(forward.bytes - before.bytes, 6 * once);
    EXPECT_EQ(backward.bytes - find(fused.backward, "rope").bytes, 8.5 * once);
    EXPECT_EQ(before.kernels, 2);
    EXPECT_EQ(forward.kernels, 2 + (apart ? 8 * 24 : 24));
    EXPECT_EQ(backward.kernels, 2 + (apart ? 8 * 18 : 18));
  }
}

TEST(OperatorBytes, EightBitLayersReadOneByteAndCastTheirInputs) {
  Workload workload = small();
  workload.precision.compute = DType::fp8;
  const BlockProgram layer = layer_program(workload, false);
  const Operator fc1 = find(layer.forward, "mlp_fc1");
  EXPECT_EQ(fc1.dtype, DType::fp8);
  EXPECT_EQ(fc1.bytes, tokens * 1024 + 1024.0 * 5632 + 2 * tokens * 5632);
  // 16 bits in, two 8-bit copies out.
  EXPECT_EQ(find(layer.forward, "mlp_fc1 cast").bytes, 4 * tokens * 1024);
  EXPECT_EQ(find(layer.forward, "core_attention").dtype, DType::bf16);
  EXPECT_EQ(find(head_program(workload).forward, "logits").dtype, DType::bf16);
}

TEST(OperatorBytes, HeadIsPaddedTo128TimesTp) {
  // 50257 over tp 8 becomes 51200; over tp 1, 50304 (Megatron-LM's vocabulary padding).
  Workload workload = gpt(4, 1024, 16, 50257, 1024, 1);
  EXPECT_EQ(find(head_program(workload).forward, "logits").n, 50304);
  workload.parallel.tp = 8;
  EXPECT_EQ(find(head_program(workload).forward, "logits").n, 51200 / 8);
}

TEST(OperatorBytes, AdamReadsAndWritesEveryState) {
  // fp32 gradient 4, master weight and two moments in and out 24, bf16 weight out 2; norm 4; clipping in and out 8.
  const OptimizerProgram program = optimizer_program(small(), 1e9);
  double sum = 0;
  for (const Operator& op : program.update) {
    EXPECT_EQ(op.cls, OperatorClass::optimizer);
    EXPECT_EQ(op.pass, Pass::update);
    sum += op.bytes;
  }
  EXPECT_EQ(sum, 1e9 * (4 + 24 + 2 + 4 + 8));
}

// What is not fused runs as PyTorch's own operators.
TEST(OperatorBytes, LossAndUpdateApartAreOperatorsOfPyTorch) {
  for (const bool fused : {false, true}) {
    Workload workload = small();
    workload.fusions.cross_entropy = workload.fusions.optimizer = fused;
    const BlockProgram head = head_program(workload);
    EXPECT_EQ(find(head.forward, "cross_entropy").eager, !fused);
    EXPECT_EQ(find(head.backward, "cross_entropy").eager, !fused);
    EXPECT_EQ(optimizer_program(workload, 1e9).update.back().eager, !fused);
  }
}

// torch's foreach kernels take all tensors at once; a loop over tensors launches its own for each.
TEST(OperatorBytes, AnUpdateInALoopIsLaunchedForEveryTensor) {
  Workload workload = small();
  HeldParameters held;
  held.tensors = 300;
  workload.fusions.update_kernels = 17;
  EXPECT_EQ(optimizer_program(workload, 1e9, held).update.back().kernels, 1) << "fused";
  workload.fusions.optimizer = false;
  EXPECT_EQ(optimizer_program(workload, 1e9, held).update.back().kernels, 300 * 17);
  workload.fusions.update_kernels = 0;
  EXPECT_LT(optimizer_program(workload, 1e9, held).update.back().kernels, 20);
}

// Muon over a stage that is one layer: four matrices, five steps of three products each (the steps' count is in `times`).
TEST(OperatorBytes, MuonMakesMatricesOrthogonal) {
  Workload workload = small();
  workload.optimizer.kind = OptimizerKind::muon;
  const Model& model = workload.model;
  const double h = model.hidden, qkv = 1.5 * h, ffn = model.ffn;  // a quarter as many keys and values as queries; gated
  const double matrices = h * qkv + h * h + 3 * h * ffn, all = matrices + 1e6;
  const OptimizerProgram program =
      optimizer_program(workload, all, {.gradients = all, .layers = matrices, .dense_updated = matrices, .experts_updated = 0});
  const auto steps = [](double a, double b) {
    const double m = std::min(a, b), n = std::max(a, b);
    return 5 * (4 * m * m * n + 2 * m * m * m);
  };
  double flops = 0, adam = 0, momentum = 0, written = 0;
  for (const Operator& op : program.update) {
    flops += op.flops * op.times;
    if (op.name == "adam") adam = op.bytes;
    if (op.name == "momentum") momentum = op.bytes;
    if (op.name == "muon") written = op.bytes;
  }
  EXPECT_DOUBLE_EQ(flops, steps(qkv, h) + steps(h, h) + steps(2 * ffn, h) + steps(ffn, h));
  EXPECT_DOUBLE_EQ(adam, 1e6 * (4 + 24 + 2));              // tables
  EXPECT_DOUBLE_EQ(momentum, matrices * (4 + 2 * 4 + 2));  // gradient in, momentum in and out, bf16 out
  EXPECT_DOUBLE_EQ(written, matrices * (2 + 2 * 4 + 2));   // that in, master weight in and out, bf16 weight out
}

// Each recipe's cast of one activation of t tokens and h channels, alone on its GPU: what it reads and writes in both directions.
TEST(OperatorBytes, CastsFollowTheRecipe) {
  Workload workload = small();
  workload.precision.compute = DType::fp8;
  const double elements = static_cast<double>(workload.batch.micro * workload.batch.sequence) * workload.model.hidden;
  const auto cast = [&](Scaling recipe) {
    workload.precision.recipe = recipe;
    return find(layer_program(workload, false).forward, "qkv cast");
  };
  EXPECT_DOUBLE_EQ(cast(Scaling::delayed).bytes, elements * (2 + 2));
  EXPECT_DOUBLE_EQ(cast(Scaling::tensorwise).bytes, elements * (2 + 2 + 2));  // once more for its largest value
  EXPECT_EQ(cast(Scaling::tensorwise).kernels, 2);
  EXPECT_DOUBLE_EQ(cast(Scaling::blockwise).bytes, elements * (2 + 2 * (1 + 4.0 / 128)));
  EXPECT_DOUBLE_EQ(cast(Scaling::mxfp8).bytes, elements * (2 + 2 * (1 + 1.0 / 32)));
  // One read gives the rows and the transpose in 16 bits, whose rows a second kernel casts (torchao/testing/training/roofline_utils.py).
  EXPECT_DOUBLE_EQ(cast(Scaling::rowwise).bytes, elements * (2 + 1 + 2 + 2 + 1));
  EXPECT_EQ(cast(Scaling::rowwise).kernels, 2);
  EXPECT_DOUBLE_EQ(cast(Scaling::rowwise_with_gw_hp).bytes, elements * (2 + 1));
  EXPECT_EQ(cast(Scaling::rowwise_with_gw_hp).kernels, 1);
  workload.fusions.compiled = true;  // the norm writes the rows
  EXPECT_DOUBLE_EQ(cast(Scaling::rowwise).bytes, elements * (1 + 2 + 2 + 1));
  EXPECT_DOUBLE_EQ(cast(Scaling::rowwise_with_gw_hp).bytes, elements * 1);
}

// Gathered along the sequence, one copy is cast and transposed behind the gather; scales of blocks allow no transpose.
TEST(OperatorBytes, BlocksAreNotTransposed) {
  Workload workload = small();
  workload.parallel.tp = 2;
  workload.parallel.sp = true;
  workload.precision.compute = DType::fp8;
  const auto transposes = [&](Scaling recipe) {
    workload.precision.recipe = recipe;
    return std::ranges::count_if(layer_program(workload, false).backward, [](const Item& item) {
      const auto* op = std::get_if<Operator>(&item);
      return op != nullptr && op->name.ends_with(" transpose");
    });
  };
  EXPECT_EQ(transposes(Scaling::delayed), 4);
  EXPECT_EQ(transposes(Scaling::mxfp8), 0);
}

TEST(OperatorBytes, AttentionInEightBitsIsCastAndCastBack) {
  Workload workload = small();
  const auto before = layer_program(workload, false);
  workload.precision.attention = DType::fp8;
  const auto after = layer_program(workload, false);
  const double tokens = static_cast<double>(workload.batch.micro * workload.batch.sequence), h = workload.model.hidden;
  EXPECT_EQ(find(before.forward, "core_attention").dtype, DType::bf16);
  EXPECT_EQ(find(after.forward, "core_attention").dtype, DType::fp8);
  EXPECT_EQ(find(after.forward, "core_attention").flops, find(before.forward, "core_attention").flops);
  // Queries, keys and values (1.5 h) before the kernel, its output behind it; backward the gradient of the output, and those of all three.
  const auto casts = [](const std::vector<Item>& items) {
    std::vector<double> bytes;
    for (const Operator& op : operators(items)) {
      if (op.name == "attention cast") bytes.push_back(op.bytes);
    }
    return bytes;
  };
  const double qkv = tokens * 1.5 * h * (2 + 1), output = tokens * h * (2 + 1);
  EXPECT_EQ(casts(after.forward), (std::vector{qkv})) << "of scales that nothing says before kernels write 16 bits";
  EXPECT_EQ(casts(after.backward), (std::vector{output}));
  workload.precision.compute = DType::fp8;
  const auto delayed = layer_program(workload, false);
  EXPECT_EQ(casts(delayed.forward), (std::vector{qkv, output}));
  EXPECT_EQ(casts(delayed.backward), (std::vector{output, qkv}));
  workload.precision.recipe = Scaling::tensorwise;
  EXPECT_EQ(casts(layer_program(workload, false).forward), (std::vector{qkv}));
}

TEST(OperatorBytes, LayerNormOverHeadsTakesAsManyTimesAsItsStackSays) {
  Workload workload = gpt(2, 1024, 16, 51200, 1024, 1);
  workload.model.qk_norm = true;
  workload.fusions.autocast = true;
  workload.precision.weights = DType::fp32;
  workload.fusions.head_norm_time = {.forward = 3, .backward = 5};
  const auto times = [&](const char* name) {
    std::vector<double> all;
    const BlockProgram layer = layer_program(workload, false);
    for (const std::vector<Item>* items : {&layer.forward, &layer.backward}) {
      for (const Item& item : *items) {
        if (const Operator* op = std::get_if<Operator>(&item); op != nullptr && op->name == name) all.push_back(op->times);
      }
    }
    return all;
  };
  EXPECT_EQ(times("qk_norm"), (std::vector<double>{3, 5}));
  EXPECT_EQ(times("qk_norm autocast"), (std::vector<double>{1, 1})) << "casts have no rows";
  workload.model.norm = Norm::rmsnorm;
  for (const double each : times("qk_norm")) EXPECT_EQ(each, 1) << "another kernel";
}

TEST(OperatorBytes, ParametersOfAllGpusAreThoseOfTheModel) {
  // Norms and biases of row-parallel layers are held by every tp rank, matrices once.
  for (Workload workload : {gpt(6, 1024, 16, 51200, 1024, 1), llama(6, 1024, 16, 4, 2816, 32000, 1024, 1)}) {
    const double held =
        6 * layer_program(workload, false).parameters + embedding_program(workload).parameters + head_program(workload).parameters;
    EXPECT_NEAR(held, count_parameters(workload.model, 1024).total, 2 * 1024.0 * 128)
        << "apart from the rows that pad the vocabulary to a multiple of 128";
    workload.parallel.tp = 2;
    EXPECT_LT(layer_program(workload, false).parameters * 2 - held / 6, 10 * 1024.0 * 6);
  }
}

TEST(OperatorBytes, TiedHeadIsCopiedToTheLastStage) {
  Workload workload = gpt(6, 1024, 16, 51200, 1024, 1);
  EXPECT_EQ(head_program(workload).parameters, 2 * 1024.0);
  workload.parallel.pp = 2;
  EXPECT_EQ(head_program(workload).parameters, 2 * 1024.0 + 51200.0 * 1024);
}

}  // namespace
}  // namespace rehearse::workloads::testing

// LoRA beside a layer's products: what is computed, moved, communicated and kept, from the shapes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "operators_workloads.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

// Sums of integers below 2^53 in another order: rounding only.
constexpr double adapters_rounding = 1e-12;

constexpr std::int64_t h = 4096, q = 4096, kv = 1024, f = 14336, lora_tokens = 2048, rank = 16;

Workload plain() { return llama(4, h, 32, 8, f, 32000, lora_tokens, 1); }

Workload adapted(std::vector<LoraTarget> targets, int r = rank) {
  Workload workload = plain();
  workload.lora.rank = r;
  workload.lora.targets = std::move(targets);
  return workload;
}
const std::vector<LoraTarget> all_targets = Lora{}.targets;

// One pair of products for each of Megatron's four linear layers: r (inputs + outputs) parameters.
double widths() { return static_cast<double>((h + q + 2 * kv) + (q + h) + (h + 2 * f) + (f + h)); }

void expect_near(double actual, double expected) { EXPECT_NEAR(actual, expected, adapters_rounding * expected); }

// Forward has the adapters' products more; backward has theirs twice, and of the frozen matrices the input gradients alone.
TEST(Adapters, ComputeTheirOwnProductsAndNoGradientOfFrozenWeights) {
  const BlockProgram full = layer_program(plain(), false);
  for (const int r : {8, 16, 4096}) {
    const BlockProgram lora = layer_program(adapted(all_targets, r), false);
    const double adapters = 2.0 * lora_tokens * r * widths();
    const double matrices = flops(full.forward) - find(full.forward, "core_attention").flops;
    expect_near(flops(lora.forward), flops(full.forward) + adapters);
    expect_near(flops(lora.backward), flops(full.backward) - matrices + 2 * adapters);
    expect_near(lora.adapters, r * widths());
    expect_near(lora.parameters, full.parameters + r * widths());
  }
}

// A target alone has the rest of the layer frozen all the same.
TEST(Adapters, OfOneTargetLeaveTheOthersFrozen) {
  const BlockProgram lora = layer_program(adapted({LoraTarget::linear_qkv}), false);
  EXPECT_EQ(lora.adapters, rank * (h + q + 2 * kv));
  expect_near(flops(lora.backward, Pass::backward_weight), 2.0 * lora_tokens * rank * (h + q + 2 * kv));
}

// CanonicalLoRA's and PEFT's: one for each matrix, which all read the same input. A stack with separate products has them for linear_qkv
// too.
TEST(Adapters, BesideParts) {
  const double each = rank * static_cast<double>(2 * h + q + kv);
  EXPECT_EQ(layer_program(adapted({LoraTarget::linear_q, LoraTarget::linear_v}), false).adapters, each);
  Workload workload = adapted({LoraTarget::linear_qkv, LoraTarget::linear_fc1});
  EXPECT_EQ(layer_program(workload, false).adapters, rank * (h + q + 2 * kv + h + 2 * f));
  workload.fusions.separate_qkv = workload.fusions.separate_gate = true;
  EXPECT_EQ(layer_program(workload, false).adapters, rank * (3 * h + q + 2 * kv + 2 * h + 2 * f));
}

// Products read both operands and write the result. Eager, the scale is 2 passes over the output and the sum 3; backward the scale 2 passes
// over the output's gradient, the sum with the layer's own input gradient 3 over that.
TEST(Adapters, MoveTheseBytes) {
  const BlockProgram lora = layer_program(adapted({LoraTarget::linear_proj}), false);
  EXPECT_EQ(find(lora.forward, "attention_projection_lora_a").bytes, 2 * (lora_tokens * q + q * rank + lora_tokens * rank));
  EXPECT_EQ(find(lora.forward, "attention_projection_lora_b").bytes, 2 * (lora_tokens * rank + rank * h + lora_tokens * h));
  EXPECT_EQ(find(lora.forward, "attention_projection_lora scaled sum").bytes, 5 * 2 * lora_tokens * h);
  EXPECT_EQ(find(lora.backward, "attention_projection_lora scale").bytes, 2 * 2 * lora_tokens * h);
  EXPECT_EQ(find(lora.backward, "attention_projection_lora input gradient sum").bytes, 3 * 2 * lora_tokens * q);
}

TEST(Adapters, OfCompilersAndFusedKernelsMoveFewer) {
  Workload workload = adapted({LoraTarget::linear_proj});
  const double eager = bytes(layer_program(workload, false).forward), eager_backward = bytes(layer_program(workload, false).backward);
  workload.fusions.compiled = true;
  const double sums = 3 * 2 * lora_tokens * h;
  EXPECT_EQ(find(layer_program(workload, false).forward, "attention_projection_lora scaled sum").bytes, sums);
  workload.fusions.compiled = false;
  workload.fusions.fused_adapters = true;  // the product reads what it adds to: 1 pass in the place of 5, backward 1 in the place of 2 + 3
  EXPECT_EQ(eager - bytes(layer_program(workload, false).forward), 4 * 2 * lora_tokens * h);
  EXPECT_EQ(eager_backward - bytes(layer_program(workload, false).backward), 2 * 2 * lora_tokens * h + 2 * 2 * lora_tokens * q);
}

// What stands around the products are PyTorch's own operators, unless it is compiled: the layer's sums too.
TEST(Adapters, AreAddedByOperatorsOfPyTorch) {
  Workload workload = adapted({LoraTarget::linear_q, LoraTarget::linear_v});
  workload.fusions.separate_qkv = true;
  workload.lora.dropout = 0.1;
  for (const bool compiled : {false, true}) {
    workload.fusions.compiled = workload.fusions.dropout_add = compiled;
    const BlockProgram lora = layer_program(workload, false);
    for (const char* name : {"qkv_lora dropout", "qkv_lora scaled sum", "attention_residual"})
      EXPECT_EQ(find(lora.forward, name).eager, !compiled) << name;
    for (const char* name : {"qkv_lora scale", "qkv_lora input gradient sum", "qkv input gradient sum"})
      EXPECT_EQ(find(lora.backward, name).eager, !compiled) << name;
    EXPECT_FALSE(find(lora.forward, "qkv_lora_a").eager);
  }
}

// In, out and a byte of mask, both ways, for each adapter: each drops out its own input.
TEST(Adapters, DropOutTheirInputs) {
  Workload workload = adapted({LoraTarget::linear_q, LoraTarget::linear_k});
  const BlockProgram none = layer_program(workload, false);
  workload.lora.dropout = 0.05;
  const BlockProgram some = layer_program(workload, false);
  EXPECT_EQ(bytes(some.forward) - bytes(none.forward), 2 * lora_tokens * h * 5);
  EXPECT_EQ(bytes(some.backward) - bytes(none.backward), 2 * lora_tokens * h * 5);
  workload.fusions.fused_adapters = true;  // a bit of mask: Transformer Engine's kernel, none of PyTorch's
  const BlockProgram fused = layer_program(workload, false);
  EXPECT_EQ(find(fused.forward, "qkv_lora dropout").bytes, lora_tokens * h * (4 + 1.0 / 8));
  EXPECT_TRUE(find(some.forward, "qkv_lora dropout").eager);
  EXPECT_FALSE(find(fused.forward, "qkv_lora dropout").eager || find(fused.backward, "qkv_lora dropout").eager);
}

// PEFT's, whose weights are fp32 beside a base in 16 bits: input and gradient are cast, and products are as wide.
TEST(Adapters, InFp32AreCastTo) {
  Workload workload = adapted({LoraTarget::linear_proj});
  workload.lora.weights = DType::fp32;
  const BlockProgram lora = layer_program(workload, false);
  EXPECT_EQ(find(lora.forward, "attention_projection_lora cast").bytes, 6 * lora_tokens * q);
  EXPECT_EQ(find(lora.forward, "attention_projection_lora_a").bytes, 4 * (lora_tokens * q + q * rank + lora_tokens * rank));
  EXPECT_EQ(find(lora.forward, "attention_projection_lora_a").dtype, DType::fp32);
  EXPECT_EQ(find(lora.forward, "attention_projection").dtype, DType::bf16);
  // Both operands, and the fp32 buffer read and written.
  const auto gradients = operators(lora.backward);
  const auto of_a = std::ranges::find_if(
      gradients, [](const Operator& op) { return op.name == "attention_projection_lora_a" && op.pass == Pass::backward_weight; });
  ASSERT_NE(of_a, gradients.end());
  EXPECT_EQ(of_a->bytes, 4 * (lora_tokens * rank + lora_tokens * q) + 8 * rank * q);
  // The scale 4 + 4, the sum 4 + 2 in and 4 out, back to 16 bits 4 + 2.
  EXPECT_EQ(find(lora.forward, "attention_projection_lora scaled sum").bytes, 24 * lora_tokens * h);
}

// FSDP1 gathers in 16 bits what PEFT sees as an fp32 shard, where each matrix is a unit of its own: dropout is between two casts, all
// behind it as beside a base in 16 bits.
TEST(Adapters, InFp32ThatUnitsGatherIn16BitsDropOutAlone) {
  const auto of = [](auto change) {
    Workload workload = adapted({LoraTarget::linear_proj});
    workload.lora.dropout = 0.1;
    workload.lora.weights = DType::fp32;
    workload.optimizer.zero_stage = 3;
    workload.optimizer.by_adapter = true;
    workload.precision.param_gather = DType::bf16;
    change(workload);
    return layer_program(workload, false);
  };
  const BlockProgram lora = of([](Workload&) {}), narrow = of([](Workload&workload) { workload.lora.weights.reset(); });
  EXPECT_EQ(find(lora.forward, "attention_projection_lora dropout").bytes, (4 + 4 + 1) * lora_tokens * q);
  EXPECT_EQ(find(lora.forward, "attention_projection_lora_a").dtype, DType::bf16);
  // Forward up and down again, 6 bytes each, and dropout 9 in place of 5; backward the same.
  const double more = (6 + 6 + 9 - 5) * static_cast<double>(lora_tokens * q);
  EXPECT_EQ(bytes(lora.forward) - bytes(narrow.forward), more);
  EXPECT_EQ(bytes(lora.backward) - bytes(narrow.backward), more);
  // Without units of their own, or gathered as they are, all of it is in fp32.
  for (const BlockProgram& wide : {of([](Workload& workload) { workload.optimizer.by_adapter = false; }),
                                   of([](Workload& workload) { workload.precision.param_gather.reset(); })}) {
    EXPECT_EQ(find(wide.forward, "attention_projection_lora_a").dtype, DType::fp32);
  }
}

// Every use writes a matrix out in 16 bits: forward and the input gradient. Tables and head stay as they are.
TEST(Adapters, BesideMatricesInFourBits) {
  Workload workload = adapted({LoraTarget::linear_qkv});
  const BlockProgram plain_base = layer_program(workload, false), plain_head = head_program(workload);
  workload.lora.nf4 = true;
  const BlockProgram lora = layer_program(workload, false);
  const double matrices = static_cast<double>(h * (q + 2 * kv) + q * h + 3 * h * f);
  expect_near(bytes(lora.forward) - bytes(plain_base.forward), matrices * (nf4_bytes + 2));
  expect_near(bytes(lora.backward) - bytes(plain_base.backward), matrices * (nf4_bytes + 2));
  EXPECT_EQ(bytes(head_program(workload).forward), bytes(plain_head.forward));
  EXPECT_NEAR(nf4_bytes, 4.127 / 8, 1e-4);  // section 3 of QLoRA: 0.127 bits a parameter for constants
}

std::vector<std::string> of_adapters(const std::vector<Item>& items) {
  std::vector<std::string> found;
  for (const Communication& call : communications(items)) {
    if (call.name.find("adapter") != std::string::npos)
      found.push_back(call.name + " " + std::to_string(static_cast<std::int64_t>(call.bytes)));
  }
  return found;
}

// ParallelLinearAdapter: a column-parallel layer's has its rank spread, and gathers x a; a row-parallel layer's adds x a up, and gathers
// its result. Backward adds up the gradient of x a; with sequence parallelism a row-parallel layer's gathers that of its result, without it
// a column-parallel layer's adds up that of x.
TEST(Adapters, OverTensorParallelRanks) {
  Workload workload = adapted({LoraTarget::linear_qkv, LoraTarget::linear_proj});
  workload.parallel.tp = 4;
  const std::string low = std::to_string(2 * lora_tokens * rank), hidden = std::to_string(2 * lora_tokens * h);
  const std::vector<std::string> forward{"attention adapter all-gather " + low, "attention adapter all-reduce " + low,
                                         "attention adapter all-gather " + hidden};
  BlockProgram lora = layer_program(workload, false);
  EXPECT_EQ(of_adapters(lora.forward), forward);
  EXPECT_EQ(of_adapters(lora.backward),
            (std::vector<std::string>{"attention adapter all-reduce " + low, "attention adapter all-reduce " + low,
                                      "attention adapter all-reduce " + hidden}));
  EXPECT_EQ(lora.adapters, rank / 4 * h + rank * (q + 2 * kv) / 4 + q / 4 * rank + rank * h / 4);
  workload.parallel.sp = true;
  lora = layer_program(workload, false);
  EXPECT_EQ(of_adapters(lora.forward), forward);
  EXPECT_EQ(of_adapters(lora.backward),
            (std::vector<std::string>{"attention adapter all-gather " + hidden, "attention adapter all-reduce " + low,
                                      "attention adapter all-reduce " + low}));
}

// Bytes a token. Full: norms' inputs 2 h each, the products' inputs 2 h each, queries, keys and values, attention's output and statistics,
// fc1's output, fc2's input. Of frozen layers no input is kept but those of adapters, and x a.
TEST(Adapters, KeepTheirInputsAlone) {
  const double shared = 2 * h + 2 * (q + 2 * kv) + 2 * q + 4 * 32 + 2 * h + 2 * 2 * f;
  const auto per_token = [](const Workload& workload) { return layer_activation_bytes(workload, false) / lora_tokens; };
  EXPECT_EQ(per_token(plain()), shared + 2 * h + 2 * h + 2 * f);
  EXPECT_EQ(per_token(adapted({LoraTarget::linear_qkv})), shared + 2 * h + 2 * rank);
  EXPECT_EQ(per_token(adapted({LoraTarget::linear_proj})), shared + 2 * rank);  // flash attention keeps its output anyway
  EXPECT_EQ(per_token(adapted({LoraTarget::linear_q, LoraTarget::linear_v})), shared + 2 * h + 2 * 2 * rank);
  EXPECT_EQ(per_token(adapted(all_targets)), shared + 2 * h + 2 * h + 2 * f + 4 * 2 * rank);
  Workload workload = adapted({LoraTarget::linear_q, LoraTarget::linear_v});
  workload.lora.dropout = 0.1;  // what each made of it, and its mask
  EXPECT_EQ(per_token(workload), shared + 2 * 3 * h + 2 * 2 * rank);
  workload.fusions.fused_adapters = true;
  EXPECT_EQ(per_token(workload), shared + 2 * (2 + 1.0 / 8) * h + 2 * 2 * rank);
}

// An MLP that is run again keeps its input as that of any, the norm's output: frozen layers and adapters inside it nothing more.
TEST(Adapters, KeepTheInputOfWhatIsRunAgain) {
  const auto per_token = [](Workload workload, std::vector<RecomputeModule> modules) {
    workload.recompute = {.kind = RecomputeKind::selective, .modules = std::move(modules)};
    return layer_activation_bytes(workload, false) / lora_tokens;
  };
  const double attention = 2 * h + 2 * (q + 2 * kv) + 2 * q + 4 * 32, mlp = 2 * h;
  const std::vector<LoraTarget> inside{LoraTarget::linear_fc1, LoraTarget::linear_fc2};
  EXPECT_EQ(per_token(adapted(inside), {RecomputeModule::mlp}), attention + mlp + 2 * h);
  EXPECT_EQ(per_token(adapted(inside), {RecomputeModule::mlp, RecomputeModule::layernorm}), attention + mlp);
  EXPECT_EQ(per_token(adapted(inside), {RecomputeModule::mlp_act}), attention + mlp + 2 * h + 2 * 2 * f + 2 * 2 * rank);
}

// Of ZeRO-1 and 2 only what has changed is gathered, ZeRO-3 gathers all; gradients are the adapters' alone.
TEST(Adapters, AreWhatReplicasExchange) {
  Workload workload = adapted(all_targets);
  workload.parallel.dp = 8;
  workload.batch.global = 8;
  const double adapters = 4 * rank * widths();
  for (const int zero : {0, 1, 2, 3}) {
    workload.optimizer.zero_stage = zero;
    const ReplicaSync sync = replica_sync(workload);
    const Parameters own = stage_programs(workload).front().parameters;
    EXPECT_EQ(own.trained(), adapters);
    double reduced = 0, gathered = 0;
    for (const ReplicaCall& call : sync.reduction_calls(own)) reduced += call.bytes;
    EXPECT_EQ(reduced, 4 * adapters) << zero;
    if (zero == 0) continue;
    for (const ReplicaCall& call : sync.gather_calls(own)) gathered += call.bytes;
    EXPECT_EQ(gathered, 2 * (zero == 3 ? own.all : adapters)) << zero;
  }
}

// The update is the adapters': Adam's gradient, master weights and moments in and out, weights out.
TEST(Adapters, AreWhatTheOptimizerUpdates) {
  const Workload workload = adapted(all_targets);
  const std::vector<StageProgram> stages = stage_programs(workload);
  double bytes = 0;
  for (const Operator& op : stages.front().update) bytes += op.name == "adam" ? op.bytes : 0;
  EXPECT_EQ(bytes, 4 * rank * widths() * (4 + 2 * 4 + 4 * 4 + 2));
}

// Megatron-Bridge's convention (flop_utils.py): two thirds of the frozen matrices', scores and values whole.
TEST(Adapters, LeaveTwoThirdsOfTheModelFlops) {
  const Workload full = plain();
  const double all = model_flops_per_sequence(full.model, lora_tokens, false), attention = 4 * 6.0 * 2 * lora_tokens * lora_tokens * q;
  EXPECT_EQ(step_flops_per_sequence(full, false), all);
  expect_near(step_flops_per_sequence(adapted(all_targets), false), (all - attention) * 2 / 3 + attention);
}

// Megatron-Bridge, container 26.06, LoRA of Llama 3 70B (docs/performance-summary-archive.md): model TFLOP/s over tokens/s of a GPU, which
// its rounding and the lengths of its packed documents (some 200 tokens) leave known to 1 %.
TEST(Adapters, LeaveTheModelFlopsThatMegatronBridgeReports) {
  Workload workload = llama(80, 8192, 64, 8, 28672, 128256, 4096, 1);
  workload.batch.document = 200;
  workload.lora.rank = 16;
  workload.lora.targets = {LoraTarget::linear_qkv};
  const double per_token = step_flops_per_sequence(workload, false) / 4096;
  for (const auto& [tflops, tokens_per_s] :
       {std::pair{2086, 7481}, std::pair{2072, 7447}, std::pair{1731, 6206}, std::pair{1663, 5958}, std::pair{735, 2643}}) {
    EXPECT_NEAR(tflops * 1e12 / tokens_per_s / per_token, 1, 0.01) << tflops;
  }
}

}  // namespace
}  // namespace rehearse::workloads::testing

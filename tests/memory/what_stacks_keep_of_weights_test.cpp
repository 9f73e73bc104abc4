// Static memory by stack, per parameter, against what nanotron says is allocated after a step (tests/measured/cases/nanotron-bench.yaml).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>

#include "places.hpp"
#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"
#include "workloads/compiled.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

workloads::Workload plan(int dp, int zero_stage) {
  workloads::Workload w;
  w.parallel.dp = dp;
  w.optimizer.zero_stage = zero_stage;
  return w;
}

// Of so many parameters those in layers, as in the whole model.
double layers_of(const workloads::Model& model, double parameters) {
  const workloads::ParameterCount count = workloads::count_parameters(model);
  return count.total > 0 ? parameters * (1 - (count.embedding + count.head) / count.total) : parameters;
}

double per_parameter(const workloads::Workload& w) {
  const Software nanotron = read_software(ready_made(software_part, "nanotron").node, "nanotron");
  constexpr double parameters = 1 << 20;
  const workloads::StaticMemory held = workloads::static_memory(w, nanotron.memory.habits, {parameters, 0, layers_of(w.model, parameters)});
  return (held.total() + held.update) / parameters;
}

// 2 weights, 4 gradients; of the shard 4 master, 8 moments. The update gathers weights from a copy of the piece (2 of the shard) into one
// of all pieces and one of the whole (2 each): what is stated is the most since backward.
TEST(WhatStacksKeepOfWeights, NanotronWithZero1) {
  for (const int dp : {2, 8, 64}) EXPECT_DOUBLE_EQ(per_parameter(plan(dp, 1)), 10 + 14.0 / dp) << dp;
}

// 2 weights, 4 gradients, 4 master, 8 moments; DDP's buckets of 2 where there is somebody to reduce with.
TEST(WhatStacksKeepOfWeights, NanotronWithoutZero) {
  EXPECT_DOUBLE_EQ(per_parameter(plan(1, 0)), 18);
  EXPECT_DOUBLE_EQ(per_parameter(plan(4, 0)), 20);
}

// 3p57g-dp64-tp1-pp1-acc2-mbs2 of that sweep: 28 layers of 3072, 8192 in the MLP, 131072 words, tied: 34.10 GiB after the step, of which
// the hidden states of the micro-batch are 0.05.
TEST(WhatStacksKeepOfWeights, AsItIsMeasured) {
  constexpr double h = 3072, layer = 4 * h * h + 3 * h * 8192 + 2 * h, parameters = 28 * layer + 131072 * h + h;
  EXPECT_NEAR(per_parameter(plan(64, 1)) * parameters / gib, 34.10, 0.1);
}

// 2 bytes of the 4 of a master copy are those of the BF16 weights: kept are the others, under Megatron-Core beside moments in BF16 alone,
// and nowhere where weights lie in 8 bits or no rank shards.
TEST(WhatStacksKeepOfWeights, RemaindersOfMasters) {
  const auto master = [](const char* stack, int zero_stage, workloads::DType moments, bool narrow = false) {
    workloads::Workload w = plan(4, zero_stage);
    w.precision.moments = moments;
    if (narrow) w.precision.param_gather = workloads::DType::fp8;
    return workloads::master_bytes_per_parameter(w, read_software(ready_made(software_part, stack).node, stack).memory.habits);
  };
  using workloads::DType;
  EXPECT_EQ(master("nemo-2024", 1, DType::fp32), 2);
  EXPECT_EQ(master("nemo-2024", 0, DType::fp32), 4);
  EXPECT_EQ(master("nemo-2024", 1, DType::fp32, true), 4);
  EXPECT_EQ(master("megatron-core", 1, DType::fp32), 4);
  EXPECT_EQ(master("megatron-core", 1, DType::bf16), 2);
  EXPECT_EQ(master("megatron-core", 3, DType::bf16), 4);
  EXPECT_EQ(master("mindspeed", 1, DType::bf16), 4);
}

// DeepSpeed (tests/measured/cases/deepspeed.yaml). ZeRO-1 and 2: 2 weights; of the shard 4 master and 8 moments, 2 gradients (those that
// ZeRO-1 adds up lie whole); two buckets of 5e8 gradients. ZeRO-3: 16 of the shard, one bucket, and gathered parameters where there is
// somebody to gather from. The update copies gradients in 16 bits and in FP32, the buckets being free by then.
TEST(WhatStacksKeepOfWeights, DeepSpeed) {
  const Software deepspeed = read_software(ready_made(software_part, "deepspeed").node, "deepspeed");
  const auto held = [&](int dp, int zero_stage, double parameters, int microbatches = 2) {
    workloads::Workload w = plan(dp, zero_stage);
    w.batch = {.global = dp * microbatches, .micro = 1, .sequence = 1024};
    w.precision.gradients = workloads::DType::bf16;
    w.optimizer.shard_group = dp;
    return workloads::static_memory(w, deepspeed.memory.habits, {.all = parameters});
  };
  for (const int dp : {1, 8}) {
    const double p = 8e9, r = dp;
    EXPECT_DOUBLE_EQ(held(dp, 1, p).total(), p * (4 + 12 / r) + 2e9);
    EXPECT_DOUBLE_EQ(held(dp, 1, p, 1).total(), p * (2 + 14 / r) + 2e9);
    EXPECT_DOUBLE_EQ(held(dp, 2, p).total(), p * (2 + 14 / r) + 2e9);
    EXPECT_DOUBLE_EQ(held(dp, 3, p).total(), p * 16 / r + 1e9 + (dp > 1 ? 2e9 : 0));
    EXPECT_DOUBLE_EQ(held(dp, 1, p).update, 6 * p / r - 2e9);
    EXPECT_DOUBLE_EQ(held(dp, 3, p).update, 6e9);
  }
  EXPECT_DOUBLE_EQ(held(8, 3, 4e8).total(), 4e8 * (2 + 2) + 1e9);  // the whole of a small model is there
  EXPECT_DOUBLE_EQ(held(8, 3, 4e8).update, 6 * 5e7);
  EXPECT_EQ(held(8, 2, 1e9).update, 0);
  EXPECT_EQ(held(8, 0, 1e9).update, 0);
}

// torch's foreach AdamW: the square roots of all second moments that a rank updates, at once. Twelve of fms-acceleration's peaks are what
// that makes with weights, gradients and both moments in 16 bits: 10 bytes a parameter.
TEST(WhatStacksKeepOfWeights, ForeachUpdate) {
  workloads::MemoryHabits habits;
  habits.foreach_update = true;
  for (const int zero_stage : {0, 3}) {
    workloads::Workload w = plan(8, zero_stage);
    w.optimizer.shard_group = 8;
    for (auto* type : {&w.precision.weights, &w.precision.gradients, &w.precision.moments, &w.precision.optimizer})
      *type = workloads::DType::bf16;
    const workloads::StaticMemory held = workloads::static_memory(w, habits, {.all = 8e9});
    EXPECT_DOUBLE_EQ(held.update, 2 * (zero_stage == 0 ? 8e9 : 1e9));
    EXPECT_DOUBLE_EQ(held.weights + held.gradients + held.optimizer + held.update, 10 * (zero_stage == 0 ? 8e9 : 1e9));
    w.optimizer.on_cpu = true;
    EXPECT_EQ(workloads::static_memory(w, habits, {.all = 8e9}).update, 0);
  }
}

// FSDP2 (pytorch-h100: peaks of single GPUs that lie there): when the gradients of the table of words are reduced, its gathered weights (2
// bytes a parameter) are gone. What autograd made (2) is there with its copy (4), then the copy with the shard that the reduction makes (4
// of the shard), which of an only micro-batch is counted among the gradients.
TEST(WhatStacksKeepOfWeights, Fsdp2ReducesTheTableOfWordsLast) {
  const auto bucket = [](int dp, int microbatches) {
    const Job job =
        read_job(config::Node::load_text(fmt::format("model: {{layers: 2, hidden: 1024, heads: 16, ffn: 4096, activation: swiglu, "
                                                     "vocab: 32000, positions: rope}}\ncluster: dgx-h100-ndr400\ngpus: {0}\n"
                                                     "parallel: {{dp: {0}}}\nbatch: {{global: {1}, micro: 1, sequence: 1024}}\n"
                                                     "optimizer: {{sharding: zero3}}\nsoftware: pytorch\n",
                                                     dp, dp * microbatches),
                                         "job.yaml"),
                 "job");
    const workloads::Compiled compiled = workloads::compile(job.workload);
    const workloads::UnitMemory table =
        workloads::unit_memories(job.workload, job.system.software.memory.habits, compiled.sync, compiled.stages.front()).front().front();
    const double words = 32000.0 * 1024;
    EXPECT_EQ(table.gathered, 2 * words);
    EXPECT_EQ(table.weight_temporary, 2 * words);
    return (table.gathered + table.weight_temporary + table.bucket) / words;
  };
  EXPECT_DOUBLE_EQ(bucket(1, 1), 4);                // beside 4 of its gradients
  EXPECT_DOUBLE_EQ(bucket(1, 2), 4 + 4);            // the shard of the micro-batch before is there, too
  EXPECT_DOUBLE_EQ(bucket(8, 1), 2 + 4 - 4.0 / 8);  // before the shard is made
  EXPECT_DOUBLE_EQ(bucket(8, 2), 2 + 4);
}

// FSDP2's layer of P parameters: beside its tensors lies 4 P, the input of the reduction before. Of the 2 P that autograd makes those find
// room that tensors of the layer leave; with few tokens they are more than these.
TEST(WhatStacksKeepOfWeights, Fsdp2MakesGradientsWhereTensorsWere) {
  for (const int sequence : {8192, 16}) {
    const Job job =
        read_job(config::Node::load_text(fmt::format("model: {{layers: 2, hidden: 1024, heads: 16, ffn: 4096, activation: swiglu, "
                                                     "vocab: 32000, positions: rope}}\ncluster: dgx-h100-ndr400\ngpus: 8\n"
                                                     "parallel: {{dp: 8}}\nbatch: {{global: 8, micro: 1, sequence: {}}}\n"
                                                     "optimizer: {{sharding: zero3}}\nsoftware: pytorch\n",
                                                     sequence),
                                         "job.yaml"),
                 "job");
    const workloads::Compiled compiled = workloads::compile(job.workload);
    const workloads::UnitMemory layer =
        workloads::unit_memories(job.workload, job.system.software.memory.habits, compiled.sync, compiled.stages.front()).front()[1];
    const double parameters = 4 * 1024.0 * 1024 + 3 * 1024.0 * 4096 + 2 * 1024;
    const double tensors = layer.activations + layer.backward_temporary + layer.weight_temporary;
    EXPECT_EQ(tensors < 2 * parameters, sequence == 16);
    EXPECT_DOUBLE_EQ(layer.bucket, 4 * parameters + std::max(0.0, 2 * parameters - tensors));
  }
}

double kept(const char* stack, workloads::DType products, int zero_stage) {
  const Software software = read_software(ready_made(software_part, stack).node, stack);
  workloads::Workload w = plan(4, zero_stage);
  w.model = workloads::read_model(config::Node::load_file(REHEARSE_SOURCE_DIR "/workloads/models/llama2-7b.yaml"), "llama2-7b");
  w.precision.compute = products;
  const double parameters = workloads::count_parameters(w.model).total;
  return workloads::static_memory(w, software.memory.habits, {parameters, 0, layers_of(w.model, parameters)}).total();
}

// Transformer Engine's copies in 8 bits, by rows and by columns, of the part that is multiplied so.
TEST(WhatStacksKeepOfWeights, NarrowCopiesOfExpertsAlone) {
  using workloads::DType;
  const workloads::MemoryHabits habits = read_software(ready_made(software_part, "megatron-lm").node, "megatron-lm").memory.habits;
  const auto bytes = [&](DType compute, std::optional<DType> experts) {
    workloads::Workload w = plan(4, 1);
    w.precision.compute = compute;
    w.precision.experts = experts;
    return workloads::static_memory(w, habits, {.all = 1e9, .experts = 7e8, .layers = 9e8}).total();
  };
  const double wide = bytes(DType::bf16, std::nullopt);
  EXPECT_NEAR(bytes(DType::fp8, std::nullopt) - wide, 2 * 9e8, 1);
  EXPECT_NEAR(bytes(DType::bf16, DType::fp8) - wide, 2 * 7e8, 1);
  EXPECT_NEAR(bytes(DType::fp8, DType::bf16) - wide, 2 * 2e8, 1);
}

// Of layers one moment, and weights as they are gathered; tables of words are Adam's, in 16 bits.
TEST(WhatStacksKeepOfWeights, MuonAndWeightsInEightBits) {
  workloads::Workload w = plan(1, 0);
  w.model.layers = 2;
  w.model.hidden = 64;
  w.model.heads = w.model.kv_heads = 4;
  w.model.head_dim = 16;
  w.model.ffn = 256;
  w.model.vocab = 1000;
  const workloads::ParameterCount count = workloads::count_parameters(w.model);
  const double tables = (count.embedding + count.head) / count.total, before = per_parameter(w);
  w.optimizer.kind = workloads::OptimizerKind::muon;
  EXPECT_DOUBLE_EQ(per_parameter(w), before - 4 * (1 - tables));
  w.precision.param_gather = workloads::DType::fp8;
  EXPECT_DOUBLE_EQ(per_parameter(w), before - 4 * (1 - tables) - (1 - tables));
}

// Transformer Engine's two copies of layers' weights in 8 bits, beside those in 16; NVIDIA's recipes have them in their stead.
TEST(WhatStacksKeepOfWeights, CopiesInEightBits) {
  using workloads::DType;
  // Of LLaMA 2 7B all but two tables of 32000 x 4096.
  constexpr double two_bytes = 2 * (6738415616.0 - 2 * 32000.0 * 4096);
  for (const int zero : {0, 1}) {
    const double wide = kept("megatron-lm", DType::bf16, zero);
    EXPECT_NEAR(kept("megatron-lm", DType::fp8, zero) - wide, two_bytes, 1);
    EXPECT_DOUBLE_EQ(kept("megatron-core", DType::fp8, zero), wide);
  }
  EXPECT_DOUBLE_EQ(kept("megatron-lm", DType::fp8, 3), kept("megatron-lm", DType::bf16, 3));
}

// LoRA: weights in 2 bytes, and of the adapters alone gradients and states: fp32 ones (PEFT's) have no master copy, those in 16 bits do.
TEST(WhatStacksKeepOfWeights, OfFrozenModels) {
  const Software software = read_software(ready_made(software_part, "megatron-core").node, "megatron-core");
  constexpr double all = 1 << 20, adapters = 1 << 10;
  workloads::Workload w = plan(1, 0);
  w.lora.rank = 16;
  const workloads::Parameters own{.all = all, .layers = all - adapters, .frozen = all - adapters};
  const auto held = [&] { return workloads::static_memory(w, software.memory.habits, own); };
  EXPECT_EQ(held().weights, 2 * all);
  EXPECT_EQ(held().gradients, 4 * adapters);
  EXPECT_EQ(held().optimizer, (4 + 8) * adapters);
  EXPECT_EQ(held().temporary, 0);  // no placeholders of gradients
  w.lora.weights = workloads::DType::fp32;
  EXPECT_EQ(held().weights, 2 * (all - adapters) + 4 * adapters);
  EXPECT_EQ(held().optimizer, 8 * adapters);
  w.lora.nf4 = true;
  EXPECT_EQ(held().weights, workloads::nf4_bytes * (all - adapters) + 4 * adapters);
  w.optimizer.on_cpu = true;  // states, and what comes and goes of the adapters alone: gradients, weights in fp32
  EXPECT_EQ(held().host, (8 + 4 + 4) * adapters);
  w = plan(8, 3);
  w.lora.rank = 16;
  EXPECT_EQ(held().weights, 2 * all / 8);
  EXPECT_EQ(held().optimizer, (4 + 8) * adapters / 8);
}

// fms-acceleration's Mistral 7B with adapters of rank 16 beside queries, keys, values and projection in fp32: 14,664,493,056 bytes are held
// after the run, cuBLAS' workspaces (8.1 MiB and more) among them.
TEST(WhatStacksKeepOfWeights, OfAFrozenModelAsItIsMeasured) {
  const Job job = read_job(config::Node::load_text("model: {name: mistral, like: mistral-7b, vocab: 32000}\ncluster: dgx-a100-80g-hdr200\n"
                                                   "gpus: 1\nbatch: {global: 1, micro: 1, sequence: 4096}\nsoftware: transformers\n"
                                                   "precision: {weights: bf16, gradients: fp32, optimizer: fp32}\n"
                                                   "lora: {rank: 16, targets: [q_proj, k_proj, v_proj, o_proj], weights: fp32}\n",
                                                   "job.yaml"),
                           "job");
  const workloads::Parameters own = workloads::compile(job.workload).stages.front().parameters;
  EXPECT_EQ(own.trained(), 32.0 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024)));
  const workloads::StaticMemory held = workloads::static_memory(job.workload, job.system.software.memory.habits, own);
  EXPECT_NEAR((held.weights + held.optimizer) / 14'664'493'056, 1, 0.002);
}

// torch.autocast over weights in fp32, said so or as 16 bits beside masters in fp32: 4 bytes of weights and 8 of moments a parameter, and
// of a layer the same activations and copies. FSDP without a MixedPrecisionPolicy gathers fp32, and products cast that as well: each layer
// keeps 2 bytes a parameter more for backward, its norms' inputs are in fp32, and so is what it gathers.
TEST(WhatStacksKeepOfWeights, AutocastOfWeightsInFp32) {
  const auto job = [](const char* sharding, const char* precision) {
    const std::string text = fmt::format(
        "model: llama2-7b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {{dp: 8}}\nsoftware: pytorch\n"
        "batch: {{global: 8, micro: 1, sequence: 4096}}\noptimizer: {{sharding: {}}}\nprecision: {}\n",
        sharding, precision);
    return read_job(config::Node::load_text(text, "job.yaml"), "job");
  };
  const auto layer = [](const Job& of) {
    const workloads::Compiled compiled = workloads::compile(of.workload);
    return workloads::unit_memories(of.workload, of.system.software.memory.habits, compiled.sync, compiled.stages.front()).front().at(1);
  };
  const Job narrow = job("none", "bf16"), wide = job("none", "{compute: bf16, weights: fp32}");
  EXPECT_TRUE(workloads::autocasts(narrow.workload));
  EXPECT_TRUE(workloads::autocasts(wide.workload));
  EXPECT_EQ(layer(wide).activations, layer(narrow).activations);
  const workloads::MemoryHabits& habits = wide.system.software.memory.habits;
  const workloads::StaticMemory held = workloads::static_memory(wide.workload, habits, {.all = 8e9});
  const workloads::StaticMemory as_masters = workloads::static_memory(narrow.workload, habits, {.all = 8e9});
  EXPECT_EQ(held.weights, 4 * 8e9);
  EXPECT_EQ(held.weights + held.optimizer, as_masters.weights + as_masters.optimizer);

  const Job by_policy = job("zero3", "bf16"), gathers_fp32 = job("zero3", "{compute: bf16, weights: fp32}");
  EXPECT_FALSE(workloads::autocasts(by_policy.workload));
  EXPECT_FALSE(workloads::autocasts(job("zero3", "{compute: bf16, weights: fp32, param_gather: bf16}").workload));
  EXPECT_TRUE(workloads::autocasts(gathers_fp32.workload));
  EXPECT_EQ(layer(gathers_fp32).activations, layer(narrow).activations);
  EXPECT_DOUBLE_EQ(layer(gathers_fp32).gathered, 2 * layer(by_policy).gathered);
  workloads::Workload exact = wide.workload;
  exact.precision.compute = workloads::DType::fp32;
  EXPECT_FALSE(workloads::autocasts(exact));
}

}  // namespace
}  // namespace rehearse::sim

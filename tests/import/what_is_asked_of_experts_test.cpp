// Megatron-LM's arguments of experts, as scripts for models with experts in 8 bits on B200 have them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/job/job.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile of_experts(const std::string& arguments) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("experts-" + std::to_string(::getpid()));
  std::ofstream(path) << R"(#!/bin/bash
MODEL_ARGS=(
  --num-layers 16 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32 --group-query-attention --num-query-groups 4
  --seq-length 4096 --max-position-embeddings 4096 --vocab-size 151936 --swiglu --normalization RMSNorm --disable-bias-linear
  --position-embedding-type rope --untie-embeddings-and-output-weights
)
MOE_ARGS=(
  --num-experts 64 --moe-router-topk 8 --moe-ffn-hidden-size 768 --moe-token-dispatcher-type alltoall --moe-grouped-gemm
  --overlap-moe-expert-parallel-comm --delay-wgrad-compute
)
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py "${MODEL_ARGS[@]}" "${MOE_ARGS[@]}" --expert-model-parallel-size 8 \
  --micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer )"
                      << arguments << '\n';
  ImportedFile file = import_file("megatron", path.string(), {{"cluster", "hgx-b200"}});
  std::filesystem::remove(path);
  (void)read_job(file.finished.document, "experts");  // a job that runs
  return file;
}

TEST(ArgumentsOfExperts, DelayWeightGradientsAndNarrowWhatActivationsKeep) {
  const ImportedFile file = of_experts("--fp8-format hybrid --activation-func-fp8-input-store");
  expect(file, {{"overlap.ep", "true"}, {"overlap.delay_wgrad", "true"}, {"precision.activation_input", "fp8"}, {"moe.pad_to", ""}});
  EXPECT_TRUE(file.draft.not_understood.empty()) << ::testing::PrintToString(file.draft.not_understood);
}

TEST(ArgumentsOfExperts, FillThemUpToWhatTheRecipeTakes) {
  expect(of_experts("--fp8-format hybrid --fp8-recipe mxfp8 --moe-router-padding-for-quantization"), {{"moe.pad_to", "32"}});
  expect(of_experts("--fp8-format hybrid --fp8-recipe blockwise --moe-router-padding-for-fp8"), {{"moe.pad_to", "16"}});
  expect(of_experts("--moe-expert-capacity-factor 1.5 --moe-pad-expert-input-to-capacity"),
         {{"moe.pad_to", "capacity"}, {"moe.capacity_factor", "1.5"}});
  const ImportedFile narrow = of_experts("--fp4-format e2m1 --moe-router-padding-for-quantization");
  expect(narrow, {{"precision", "fp4"}, {"moe.pad_to", ""}});
  EXPECT_TRUE(says(narrow.draft.not_understood, "moe-router-padding-for-quantization (in fp4"));
}

TEST(ArgumentsOfExperts, NarrowThem) {
  expect(of_experts("--moe-latent-size 512"), {{"model.moe.latent", "512"}, {"model.moe.ffn", "768"}});
  expect(of_experts(""), {{"model.moe.latent", ""}});
}

TEST(ArgumentsOfExperts, FusePermutationsWhenToldTo) {
  expect(of_experts(""), {{"software", "megatron-lm"}});  // which has them apart
  expect(of_experts("--moe-permute-fusion"), {{"software.fusions.cross_entropy", "false"}, {"software.experts.permutation", "true"}});
  const ImportedFile apart = of_experts("--cross-entropy-loss-fusion");
  expect(apart, {{"software.fusions.cross_entropy", "true"}, {"software.experts.permutation", "false"}});
  EXPECT_TRUE(says(apart.draft.inferred, "without --moe-permute-fusion"));
  const ImportedFile both = of_experts("--moe-permute-fusion --cross-entropy-loss-fusion");
  expect(both, {{"software", ""}});
  EXPECT_TRUE(both.draft.not_understood.empty()) << ::testing::PrintToString(both.draft.not_understood);
}

// megatron-lm, which the script gets, has DeepEP; megatron-core HybridEP. DeepEP is Megatron's default, and what the older switch means.
TEST(ArgumentsOfExperts, SayWhoseKernelsSendTokens) {
  const auto sent = [](const std::string& more) { return of_experts("--moe-token-dispatcher-type flex --moe-permute-fusion " + more); };
  const std::string kernels = "software.experts.dispatch_kernels", core = " --cross-entropy-loss-fusion";
  for (const char* deepep :
       {"", "--moe-enable-deepep", "--moe-flex-dispatcher-backend deepep", "--moe-enable-deepep --moe-flex-dispatcher-backend hybridep"}) {
    expect(sent(deepep), {{"moe.dispatcher", "hierarchical"}, {kernels, "deepep"}});
    expect(sent(deepep + core), {{"moe.dispatcher", "hierarchical"}, {kernels, "deepep"}});
  }
  expect(sent("--moe-flex-dispatcher-backend hybridep"), {{"moe.dispatcher", "hierarchical"}, {kernels, "hybridep"}});
  expect(sent("--moe-flex-dispatcher-backend hybridep" + core), {{"moe.dispatcher", "hierarchical"}, {kernels, ""}});
  EXPECT_THROW(sent("--moe-flex-dispatcher-backend hybridp"), config::InputError);
}

// MindSpeed's kernels are its own: nothing of Megatron-Core is put in their place.
TEST(ArgumentsOfExperts, LeaveAscendItsStack) {
  const ImportedFile file = of_experts("--moe-token-dispatcher-type flex --use-fused-swiglu");
  expect(file, {{"moe.dispatcher", "hierarchical"}, {"software", ""}});
}

}  // namespace
}  // namespace rehearse::sim::testing

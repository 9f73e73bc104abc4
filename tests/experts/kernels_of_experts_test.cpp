// Whose kernels multiply the rows of a layer's experts, and how many cast them.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"

namespace rehearse::tests {
namespace {

using workloads::Pass;

// Qwen3 30B-A3B on eight GPUs, sixteen of its experts on each.
sim::Job sixteen_experts(const std::string& rest) {
  const std::string text =
      "model: qwen3-30b-a3b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {dp: 8, ep: 8}\nbatch: {global: 32, micro: 1, sequence: 4096}\n" +
      rest;
  return sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
}

// The kernels of a layer's products under this stack, on H100.
std::vector<workloads::GroupedKernel> kernels_of_products(const char* experts, const char* rest) {
  const sim::Job job = sixteen_experts(fmt::format("software: {{like: megatron-core, experts: {{{}}}}}\n{}\n", experts, rest));
  const workloads::ExpertLayer layer(job.workload);
  std::vector<workloads::GroupedKernel> kernels;
  for (const workloads::Operator& op : workloads::operators_of(job.workload, layer.work({Pass::forward}, 0, 0, 0))) {
    if (op.cls == workloads::OperatorClass::gemm) {
      kernels.push_back(op.grouped);
    } else {
      EXPECT_EQ(op.grouped, workloads::GroupedKernel::library) << op.name;
    }
  }
  return kernels;
}

// Rows are sorted by expert where none is dropped; PyTorch's kernel is of 16 bits, and one expert after another is as dense.
TEST(KernelsOfExperts, AreMultipliedByTheStacksKernelWhereRowsAreSorted) {
  using workloads::GroupedKernel;
  const std::vector<GroupedKernel> torch(2, GroupedKernel::torch), megablox(2, GroupedKernel::megablox), library(2, GroupedKernel::library);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: torch", ""), torch);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: torch", "precision: fp8"), library);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: megablox", "precision: fp8"), megablox);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: megablox", "moe: {capacity_factor: 1.25}"), library);
  EXPECT_EQ(kernels_of_products("grouped_gemm: false, grouped_kernel: torch", ""), library);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true", ""), library);
}

// Products on several streams run beside one another, whether Python issues each or a library all of them.
TEST(KernelsOfExperts, ShareTheGpuOnStreamsWhoeverIssuesThem) {
  using workloads::GroupedKernel;
  const std::vector<GroupedKernel> streams(2, GroupedKernel::streams), turbo(2, GroupedKernel::turbo), library(2, GroupedKernel::library);
  EXPECT_EQ(kernels_of_products("grouped_gemm: false, grouped_kernel: streams", ""), streams);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: streams", "precision: fp8"), streams);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: streams", "moe: {capacity_factor: 1.25}"), library);
  EXPECT_EQ(kernels_of_products("grouped_gemm: true, grouped_kernel: turbo", "precision: fp8"), turbo);
  EXPECT_EQ(kernels_of_products("grouped_gemm: false, grouped_kernel: turbo", ""), library);
}

// Sixteen experts on each of eight ranks: Transformer Engine casts all their rows by one kernel where scales are known before, else those
// of one expert after the other's, all that one takes launched in C++ at once; products of all experts at once read one cast.
TEST(KernelsOfExperts, AreCastByOneKernelOrExpertByExpert) {
  for (const auto& [recipe, grouped, kernels] : {std::tuple{"delayed", false, 1}, std::tuple{"tensorwise", false, 16},
                                                 std::tuple{"mxfp8", false, 16}, std::tuple{"mxfp8", true, 1}}) {
    const sim::Job job = sixteen_experts(fmt::format(
        "precision: {{compute: fp8, recipe: {}}}\nsoftware: {{like: megatron-core, experts: {{grouped_gemm: {}}}}}\n", recipe, grouped));
    const workloads::ExpertLayer layer(job.workload);
    int found = 0;
    for (const workloads::Operator& op : workloads::operators_of(job.workload, layer.work({Pass::forward}, 0, 0, 0))) {
      if (!op.name.ends_with(" cast")) continue;
      ++found;
      EXPECT_EQ(op.kernels, kernels) << recipe << " " << op.name;
    }
    EXPECT_EQ(found, 2) << recipe;
  }
}

}  // namespace
}  // namespace rehearse::tests

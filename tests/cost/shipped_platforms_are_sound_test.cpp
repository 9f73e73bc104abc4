#include <gtest/gtest.h>

#include <random>

#include "config/data_dir.hpp"
#include "gpu_files.hpp"
#include "sim/job/job.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim::testing {
namespace {

TEST(ShippedGpus, AllLoadWithContentionOfEveryClass) {
  ASSERT_GE(shipped_gpus().size(), 13U);
  for (const std::string& name : shipped_gpus()) {
    const Gpu gpu = shipped_gpu(name);
    for (const workloads::Phase phase : workloads::contended_phases)
      EXPECT_TRUE(gpu.contention.contains(phase)) << name << " " << name_of(phase);
    EXPECT_GE(gpu.memory_bytes, 16e9) << name;
    EXPECT_FALSE(gpu.peak_flops_per_s.empty()) << name;
  }
}

TEST(ShippedGpus, PriceEveryPrecisionTheyHaveAPeakFor) {
  for (const std::string& name : shipped_gpus()) {
    const Gpu gpu = shipped_gpu(name);
    for (const auto& [type, peak] : gpu.peak_flops_per_s) {
      const workloads::Operator op = gemm(8192, 8192, 8192, type);
      const double share = op.flops / gpu.cost->seconds(op) / peak;
      EXPECT_GT(share, 0.25) << name << " " << name_of(type);
      EXPECT_LT(share, 1.0) << name << " " << name_of(type);
    }
  }
}

// H800 is described by DeepGEMM's kernels, the other Hopper boards by Transformer Engine's. Blackwell's boards differ in power, B300's in
// the rate of exponentials too: each has lines of its own.
TEST(ShippedGpus, OfOneBoardShareTheirEfficiency) {
  const std::vector<std::vector<std::string>> families{{"a100-sxm4-40g", "a100-sxm4-80g"}, {"h100-sxm5-80g", "h200-sxm"}};
  for (const auto& family : families) {
    const config::Node first = shipped_gpu_node(family.front());
    for (const std::string& name : family) {
      const config::Node other = shipped_gpu_node(name);
      EXPECT_EQ(other.at("efficiency").to_yaml(), first.at("efficiency").to_yaml()) << name;
      EXPECT_EQ(other.at("contention").to_yaml(), first.at("contention").to_yaml()) << name;
    }
  }
}

// Rows of products are whole multiples of 16 bytes: others may be slower than longer ones.
TEST(ShippedGpus, NeverRunMoreWorkInLessTime) {
  constexpr std::int64_t aligned = 8;  // numbers of 16 bits
  std::mt19937 random(11);
  std::uniform_int_distribution<std::int64_t> size(1, 20'000), more(0, 5'000), heads(1, 128);
  for (const std::string& name : shipped_gpus()) {
    const Gpu gpu = shipped_gpu(name);
    const workloads::DType type = gpu.peak_flops_per_s.contains(workloads::DType::bf16) ? workloads::DType::bf16 : workloads::DType::fp16;
    for (int trial = 0; trial < 200; ++trial) {
      const std::int64_t m = size(random), n = aligned * size(random), k = aligned * size(random);
      const std::int64_t longer_n = n + aligned * more(random), longer_k = k + aligned * more(random);
      EXPECT_LE(gpu.cost->seconds(gemm(m, n, k, type)), gpu.cost->seconds(gemm(m + more(random), longer_n, longer_k, type))) << name;
      const std::int64_t s = size(random), a = heads(random);
      workloads::Operator small = attention(1, a, s, 128, true), large = attention(1, a + 1, s + more(random), 128, true);
      small.dtype = large.dtype = type;
      EXPECT_LE(gpu.cost->seconds(small), gpu.cost->seconds(large)) << name;
      EXPECT_LE(gpu.cost->seconds(moving(static_cast<double>(m))), gpu.cost->seconds(moving(static_cast<double>(m + 1)))) << name;
    }
  }
}

Software load_software(const std::string& name) { return read_software(ready_made(software_part, name).node, name); }

// One chip, one rate of products in fp32; a DGX-2's memory alone is faster.
TEST(ShippedGpus, V100IsOneChipInEveryServer) {
  workloads::Operator op;
  op.cls = workloads::OperatorClass::gemm;
  op.dtype = workloads::DType::fp32;
  op.flops = 1e12;
  const double seconds = shipped_gpu("v100-sxm3-32g").cost->seconds(op);
  EXPECT_NEAR(1e12 / seconds, 0.9 * 15.7e12, 0.01e12);
  for (const char* name : {"v100-sxm2-16g", "v100-sxm2-32g"}) EXPECT_EQ(shipped_gpu(name).cost->seconds(op), seconds) << name;
}

// Data sheets' peaks without tensor cores (NVIDIA: V100, A100, H100), of which 0.9 is assumed; large enough that memory is none of it.
TEST(ShippedGpus, NvidiasBoardsOfTrainingMultiplyInFp32) {
  const std::map<std::string, double> peaks{{"v100-sxm2-32g", 15.7e12}, {"a100-sxm4-80g", 19.5e12}, {"a800-sxm4-80g", 19.5e12},
                                            {"h100-sxm5-80g", 66.9e12}, {"h800-sxm", 66.9e12},      {"h200-sxm", 66.9e12}};
  workloads::Operator op;
  op.cls = workloads::OperatorClass::gemm;
  op.dtype = workloads::DType::fp32;
  op.flops = 1e12;
  for (const auto& named : peaks) {
    const Gpu gpu = shipped_gpu(named.first);
    EXPECT_NEAR(1e12 / gpu.cost->seconds(op), 0.9 * named.second, 0.01e12) << named.first;
  }
}

TEST(ShippedSoftware, AllLoadAndSetEveryFusion) {
  const auto names = config::data_names("platforms/software");
  ASSERT_GE(names.size(), 80U);
  for (const std::string& name : names) {
    const Software software = load_software(name);
    EXPECT_GE(software.fusions.size(), 8U) << name;  // and habits with experts, where it has any
    EXPECT_GT(software.launch_s, 0) << name;
    EXPECT_LT(software.launch_s, 10e-6) << name;
    EXPECT_LT(software.step_s, 0.2) << name;
    EXPECT_LT(software.kernel_time, 1.1) << name;
  }
}

// What a stack does with ZeRO is no reason to refuse what runs without it.
TEST(ShippedSoftware, TrainsWithoutZero) {
  for (const std::string& name : config::data_names("platforms/software")) {
    if (!load_software(name).trains) continue;
    const std::string job =
        "model: llama3-8b\ncluster: dgx-h100-ndr400\ngpus: 8\nbatch: {global: 8, micro: 1, sequence: 4096}\nsoftware: " + name;
    EXPECT_NO_THROW((void)read_job(config::Node::load_text(job, "job.yaml"), "job")) << name;
  }
}

TEST(ShippedSoftware, FusionsReachTheWorkload) {
  const auto load = load_software;
  EXPECT_TRUE(kernel_fusions(load("megatron-core")).rope);
  EXPECT_FALSE(kernel_fusions(load("megatron-2021")).rope);
  EXPECT_TRUE(kernel_fusions(load("megatron-2021")).gradient_accumulation);
  EXPECT_FALSE(kernel_fusions(load("torch-fsdp")).gradient_accumulation);
  EXPECT_FALSE(kernel_fusions(load("torch-fsdp")).norm);
  EXPECT_TRUE(kernel_fusions(load("torchtitan")).norm);  // compiled
}

// What a file says replaces what it is like, key by key; the rest is the other's.
TEST(ShippedSoftware, IsLikeAnotherOneButForWhatItStates) {
  const Software base = load_software("torch-fsdp"), own = load_software("llm-foundry");
  EXPECT_EQ(own.flash, triton);
  EXPECT_EQ(base.flash, sdpa);
  EXPECT_TRUE(own.fusions.at("cross_entropy"));
  EXPECT_FALSE(base.fusions.at("cross_entropy"));
  EXPECT_EQ(own.fusions.at("norm"), base.fusions.at("norm"));
  EXPECT_EQ(own.launch_s, base.launch_s);
  EXPECT_EQ(own.memory.context_bytes, base.memory.context_bytes);
}

}  // namespace
}  // namespace rehearse::sim::testing

// Every GPU file prices serving: no pass beats what its data sheet allows, none is absurdly far from it. So a GPU that nobody measured is
// served by sane numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/data_dir.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_job.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::tests {
namespace {

std::vector<std::string> gpu_files() {
  std::vector<std::string> names;
  const std::filesystem::path some = config::data_file("platforms/gpus", "l40s");
  for (const auto& entry : std::filesystem::directory_iterator(some.parent_path())) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

// A model of 3 billion parameters, 6.4 GB in 16 bits: fits wherever anything is served.
constexpr const char* small_model =
    "{layers: 28, hidden: 3072, heads: 24, kv_heads: 8, ffn: 8192, activation: swiglu, vocab: 128256, tied_embeddings: true, positions: "
    "rope}";

sim::ServingJob job_on(const std::string& gpu, const std::string& precision, const std::string& software) {
  return sim::read_serving_job(
      config::Node::load_text(
          fmt::format(
              "model: {}\n"
              "cluster: {{gpu: {}, gpus_per_node: 1, nodes: 1, intra_node: {{kind: none}}, host: {{bandwidth: 25 GB/s, efficiency: 1, "
              "latency: 10 us}}}}\n"
              "software: {}\n"
              "serving:\n"
              "  pools: {{all: {{role: both, instances: 1, parallel: {{tp: 1}}, precision: {{compute: {}, weights: {}, kv: {}}}}}}}\n"
              "  load: {{arrivals: {{poisson: 1 /s}}, input: 1024, output: 128, requests: 100}}\n",
              small_model, gpu, software, precision, precision, precision),
          "job.yaml"),
      "job");
}

// In the 16 bits that the GPU has.
sim::ServingJob job_on(const std::string& gpu, const std::string& software) {
  sim::ServingJob job = job_on(gpu, "bf16", software);
  return job.parts.front().gpu.peak_flops_per_s.contains(workloads::DType::bf16) ? job : job_on(gpu, "fp16", software);
}

class EveryGpu : public testing::TestWithParam<std::string> {};

// Reading weights and caches once, at the bandwidth of the data sheet; 4 bits: the share that scales and unpacking leave is lower.
TEST_P(EveryGpu, decodes_within_its_bandwidth) {
  for (const char* software : {"vllm", "sglang", "trtllm"}) {
    for (const bool narrow : {false, true}) {
      const sim::ServingJob job = narrow ? job_on(GetParam(), "fp8", software) : job_on(GetParam(), software);
      const sim::Deployment deployment = deploy(job);
      const sim::OperatorPassPrice& price = *deployment.pools.front().price;
      const workloads::PassOperators& operators = price.operators();
      double weights = operators.end_bytes;
      for (const workloads::LayerOperators& layer : operators.layers) weights += layer.layers * layer.weight_bytes;
      const double bandwidth = job.parts.front().gpu.memory_bytes_per_s;
      for (const int sequences : {1, 16}) {
        const double context = 2048.0 * sequences, cache = context * kv_bytes_per_token(job.pools.front().plan).per_gpu;
        const double bound_s = (weights + cache) / bandwidth, decode_s = price.decode(sequences).seconds(context);
        EXPECT_GT(decode_s, bound_s) << software << ' ' << narrow << ' ' << sequences;
        // What kernels, launches and the host add to a model this small: 2.5 ms.
        EXPECT_LT(decode_s, 3 * bound_s + 2.5e-3) << software << ' ' << narrow << ' ' << sequences;
      }
    }
  }
}

TEST_P(EveryGpu, computes_prompts_within_its_peak) {
  const sim::ServingJob job = job_on(GetParam(), "vllm");
  const sim::Deployment deployment = deploy(job);
  const sim::OperatorPassPrice& price = *deployment.pools.front().price;
  constexpr double tokens = 4096, parameters = 2.8e9;  // of the products, without the embedding
  const double bound_s = 2 * parameters * tokens / job.parts.front().gpu.peak_flops_per_s.at(job.pools.front().plan.precision.compute);
  sim::PassShape prompt{.prompt_tokens = tokens, .prompt_pairs = tokens * (tokens + 1) / 2, .chunks = 1, .finished = 1};
  EXPECT_GT(price.seconds(prompt), bound_s);
  EXPECT_LT(price.seconds(prompt), 3 * bound_s + 10e-3);
}

INSTANTIATE_TEST_SUITE_P(Files, EveryGpu, testing::ValuesIn(gpu_files()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace rehearse::tests

// Bytes of caches, products of passes and runs of passes, against published numbers and sums written out.
#include <gtest/gtest.h>

#include "config/data_dir.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/serving_job.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::tests {
namespace {

using sim::DecodeLine;
using sim::PassShape;
using workloads::DType;
using workloads::InstancePlan;

workloads::Model model(const std::string& name) {
  return workloads::read_model(config::Node::load_file(config::data_file("workloads/models", name)), name);
}

InstancePlan plan(const std::string& name, int tp) {
  InstancePlan out;
  out.model = model(name);
  out.tp = tp;
  return out;
}

double sum(const std::vector<workloads::KvPair>& pairs) {
  double bytes = 0;
  for (const workloads::KvPair& pair : pairs) bytes += pair.bytes_per_token;
  return bytes;
}

// 16 bits; the published sizes of a token's keys and values. Not the width of a projection: its keys and values alone.
TEST(ACache, has_the_published_bytes_of_a_token) {
  EXPECT_EQ(kv_bytes_per_token(plan("llama3-8b", 1)).per_instance, 131'072);
  EXPECT_EQ(kv_bytes_per_token(plan("llama3-70b", 4)).per_instance, 327'680);
  EXPECT_EQ(kv_bytes_per_token(plan("llama3-405b", 8)).per_instance, 516'096);
  EXPECT_EQ(kv_bytes_per_token(plan("llama2-7b", 1)).per_instance, 524'288);
  EXPECT_EQ(kv_bytes_per_token(plan("qwen3-235b-a22b", 4)).per_instance, 192'512);
  EXPECT_EQ(kv_bytes_per_token(plan("deepseek-v3", 1)).per_instance, 70'272);
}

// Four heads on eight ranks: each is held twice. Measured: 12.62 GB of 32,768 tokens on the wire, twice the model's 6.31.
TEST(ACache, is_sent_with_its_copies) {
  const InstancePlan eight = plan("qwen3-235b-a22b", 8);
  EXPECT_EQ(kv_bytes_per_token(eight).per_instance, 2 * 192'512);
  EXPECT_NEAR(sum(kv_pairs(eight, eight)) * 32'768, 12.62e9, 0.01e9);
}

// What arrives is the receiver's share with its copies, whatever the sender holds; each rank gets exactly what it keeps.
TEST(ACache, arrives_as_the_receiver_keeps_it) {
  for (const char* name : {"llama3-70b", "qwen3-235b-a22b", "deepseek-v3"}) {
    for (const int from : {1, 2, 4, 8, 16}) {
      for (const int to : {1, 2, 4, 8, 16}) {
        for (const int stages : {1, 2}) {
          InstancePlan sender = plan(name, from), receiver = plan(name, to);
          sender.pp = stages;
          std::map<int, double> got;
          for (const workloads::KvPair& pair : kv_pairs(sender, receiver)) {
            got[pair.to] += pair.bytes_per_token;
            EXPECT_LT(pair.from, from * stages);
          }
          EXPECT_EQ(got.size(), static_cast<std::size_t>(to));
          for (const auto& [rank, bytes] : got)
            EXPECT_EQ(bytes, kv_bytes_per_token(receiver).per_gpu) << name << " " << from << " to " << to;
        }
      }
    }
  }
}

sim::ServingJob job(const std::string& text) { return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"); }

struct Deployed {
  sim::ServingJob job;
  sim::Deployment deployment;
  explicit Deployed(const std::string& text) : job(tests::job(text)), deployment(deploy(job)) {}
  [[nodiscard]] const sim::OperatorPassPrice& price() const { return *deployment.pools.front().price; }
};

PassShape chunk(double tokens) {
  PassShape shape;
  shape.prompt_tokens = tokens;
  shape.prompt_pairs = tokens * (tokens + 1) / 2;
  shape.chunks = shape.finished = 1;
  return shape;
}

PassShape decoding(double sequences, double context) {
  PassShape shape;
  shape.decodes = sequences;
  shape.context = sequences * context;
  return shape;
}

// Weights are read once for both: a mixed pass costs less than its parts apart, and more than either.
TEST(APass, reads_its_weights_once_for_prompts_and_decoding) {
  const Deployed small(small_job);
  PassShape mixed = chunk(256);
  mixed.decodes = 32;
  mixed.context = 32 * 1000;
  const double together = small.price().seconds(mixed), prompt = small.price().seconds(chunk(256)),
               decode = small.price().seconds(decoding(32, 1000));
  EXPECT_LT(together, 0.8 * (prompt + decode));
  EXPECT_GT(together, prompt);
  EXPECT_GT(together, decode);
}

// 16 GB of weights at 3.35 TB/s: not faster than the memory allows, and within the 30 % that kernels and gaps take more.
TEST(APass, of_one_sequence_reads_the_weights_from_memory) {
  const Deployed small(small_job);
  const double least = 2 * 7.5e9 / 3352e9;
  EXPECT_GT(small.price().seconds(decoding(1, 100)), least);
  EXPECT_LT(small.price().seconds(decoding(1, 100)), 1.6 * least);
}

TEST(APass, costs_as_a_line_over_the_contexts_in_it) {
  const Deployed small(small_job);
  for (const int sequences : {1, 7, 64, 500}) {
    const DecodeLine line = small.price().decode(sequences);
    for (const double context : {10.0, 1000.0, 30'000.0}) {
      EXPECT_NEAR(line.seconds(sequences * context), small.price().seconds(decoding(sequences, context)), 1e-12);
    }
  }
}

// The closed sum of a run against the passes one by one, across the place where the host stops being the slower one.
TEST(APass, in_a_run_is_the_sum_of_the_passes) {
  const DecodeLine line{.base_s = 1e-3, .per_token_s = 1e-7, .floor_s = 2e-3, .after_s = 1e-4};
  for (const int passes : {1, 2, 10, 1000, 5000}) {
    double sum = 0;
    for (int i = 0; i < passes; ++i) sum += line.seconds(5000 + 3.0 * i);
    EXPECT_NEAR(line.seconds(5000, 3, passes), sum, 1e-9 * sum) << passes;
  }
}

// Memory decides the batch: a default of the engine, never all of the GPU.
TEST(ACache, fits_into_what_weights_and_passes_leave) {
  const Deployed small(small_job);
  const sim::InstanceMemory& memory = small.deployment.pools.front().memory;
  EXPECT_DOUBLE_EQ(memory.limit, 0.9 * 80.0 * 1024 * 1024 * 1024);
  EXPECT_NEAR(memory.weights, 2 * 8.03e9, 0.01 * 2 * 8.03e9);
  EXPECT_EQ(memory.kv_per_token, 131'072);
  EXPECT_EQ(memory.tokens(), static_cast<std::int64_t>(memory.left() / memory.kv_per_token));
}

// Each of X experts is missed by all of n tokens with (1 - k/X)^n: 64 % are read for 32 tokens that choose one in 32.
TEST(APass, reads_the_experts_that_were_chosen) {
  const std::string text =
      "model: qwen3-235b-a22b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {all: {role: both, parallel: {tp: 8}, precision: {compute: fp8, weights: fp8, kv: fp8}}}\n"
      "  load: {arrivals: {poisson: 2 /s}, input: 1000, output: 100}\n";
  const Deployed large(text);
  const double few = large.price().parts(decoding(1, 100)).experts_s, more = large.price().parts(decoding(8, 100)).experts_s,
               all = large.price().parts(decoding(512, 100)).experts_s;
  EXPECT_GT(more, 2 * few);  // 40 % of the experts, not 6 %
  EXPECT_LT(all, 4 * more);  // nearly all, not 64 times as many
}

}  // namespace
}  // namespace rehearse::tests

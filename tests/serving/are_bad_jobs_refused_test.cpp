// Each with its place and its reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "deployments.hpp"
#include "sim/serving/deployment.hpp"

namespace rehearse::tests {
namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(sim::deploy(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job")));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with(const std::string& what, const std::string& instead) {
  std::string text = small_job;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

void expect_refused(const std::string& text, const std::string& place, const std::string& why) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(place), std::string::npos) << message;
  EXPECT_NE(message.find(why), std::string::npos) << message;
}

TEST(BadServingJobsAreRefused, about_keys_of_other_kinds) {
  expect_refused(std::string(small_job) + "batch: {global: 8, micro: 1, sequence: 4096}\n", "job.yaml:8:1", "unknown key 'batch'");
  expect_refused(with("instances: 1", "instances: 1, prefix_cache: true"), "job.yaml:6:", "unknown key 'prefix_cache'");
}

TEST(BadServingJobsAreRefused, about_pools) {
  expect_refused(with("role: both", "role: prefill"), "job.yaml:5:", "a pool of role prefill needs its other side");
  expect_refused(with("{tp: 1}", "{tp: 3}"), "job.yaml:6:", "32 attention heads cannot be divided evenly over tp 3");
  expect_refused(with("{tp: 1}", "{tp: 16}"), "job.yaml:6:", "tp 16 does not fit into a domain of 8 GPUs");
  expect_refused(with("{tp: 1}", "{tp: 1, ep: 2}"), "job.yaml:6:", "ep is for models with experts");
  expect_refused(with("software: vllm", "software: megatron-core"), "job.yaml:3:11", "software 'megatron-core' does not serve");
  expect_refused(with("role: both", "role: both, part: rich"), "job.yaml:6:", "no part 'rich' in the cluster");
  expect_refused(with("role: both", "role: both, overflow: swap"), "job.yaml:6:", "overflow cannot be 'swap'");
}

TEST(BadServingJobsAreRefused, about_an_unknown_gpu) {
  expect_refused(with("cluster: dgx-h100-ndr400", "cluster: {gpu: h300, gpus_per_node: 8}"), "job.yaml:2:", "unknown gpu 'h300'");
}

TEST(BadServingJobsAreRefused, about_loads) {
  expect_refused(with("{poisson: 2 /s}", "{poisson: 2}"), "job.yaml:7:", "a unit is missing");
  expect_refused(with("{poisson: 2 /s}", "{poisson: 2 /s, closed: 3}"), "job.yaml:7:", "there is 'poisson' already");
  expect_refused(with("output: 100", "output: 0"), "job.yaml:7:", "must be between 1 and");
  expect_refused(with("input: 1000", "input: {uniform: [100, 50]}"), "job.yaml:7:", "must be between 100 and");
  expect_refused(with("requests: 200", "requests: 200, warmup: 200"), "job.yaml:7:", "must be between 0 and 199");
  expect_refused(with("{poisson: 2 /s}", "{trace: nowhere.csv}"), "job.yaml:7:", "cannot read 'nowhere.csv'");
}

class ATrace : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("rehearse-trace-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string job(const std::string& content) {
    std::ofstream(folder_ / "trace.csv") << content;
    std::string text = with("arrivals: {poisson: 2 /s}, input: 1000, output: 100, requests: 200",
                            "arrivals: {trace: " + (folder_ / "trace.csv").string() + "}");
    return text;
  }
  std::filesystem::path folder_;
};

TEST_F(ATrace, is_refused_at_its_line) {
  expect_refused(job("a,b,c\n1,2,3\n"), "trace.csv:1:1", "these are not the columns of a request trace");
  expect_refused(job("arrival_s,input_tokens,output_tokens\n1,2,3\n0.5,2,3\n"), "trace.csv:3:1", "comes before the one above it");
  expect_refused(job("arrival_s,input_tokens,output_tokens\n1,2,0\n"), "trace.csv:2:5", "output_tokens must be a number from 1");
  expect_refused(job("arrival_s,input_tokens,output_tokens\n1,2\n"), "trace.csv:2:1", "2 cells in a table of 3 columns");
  expect_refused(job("num_prefill_tokens,num_decode_tokens\n1,2\n"), "trace.csv:1:1", "lengths but no times");
  EXPECT_EQ(refusal(job("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n")), "accepted");
}

}  // namespace
}  // namespace rehearse::tests

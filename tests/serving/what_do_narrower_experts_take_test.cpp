// Served experts that work in a width of their own between two projections of the layer's (moe.latent).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/serving/serving_job.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::tests {
namespace {

workloads::PassOperators served_mixtral(const std::string& model, const std::string& parallel) {
  const sim::ServingJob job = sim::read_serving_job(
      config::Node::load_text(fmt::format("model: {}\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
                                          "  pools: {{all: {{role: both, parallel: {}}}}}\n"
                                          "  load: {{arrivals: {{poisson: 1 /s}}, input: 1024, output: 128, requests: 100}}\n",
                                          model, parallel),
                              "job.yaml"),
      "job");
  return workloads::pass_operators(job.pools.front().plan, {});
}

std::vector<workloads::Operator> shapes_named(const workloads::PassOperators& pass, const std::string& name) {
  std::vector<workloads::Operator> found;
  for (const workloads::LayerOperators& layer : pass.layers) {
    for (const workloads::TokenOperator& line : layer.operators) {
      if (line.shape.name == name) found.push_back(line.shape);
    }
  }
  return found;
}

double expert_weights(const workloads::PassOperators& pass) {
  double bytes = 0;
  for (const workloads::TokenOperator& line : pass.experts.operators)
    bytes += line.shape.cls == workloads::OperatorClass::gemm ? line.bytes : 0;
  return bytes;
}

// Of Mixtral's 4,096 a quarter: what travels and what is read of experts' weights. Every rank of tp has both projections whole.
TEST(ServedNarrowerExperts, AreReadAndSentInTheirWidth) {
  for (const char* parallel : {"{tp: 8, ep: 8}", "{tp: 4}", "{dp: 8, ep: 8}"}) {
    const workloads::PassOperators wide = served_mixtral("mixtral-8x7b", parallel),
                                   narrow = served_mixtral("{like: mixtral-8x7b, moe: {latent: 1024}}", parallel);
    EXPECT_EQ(wide.experts.sent_bytes, wide.hidden_bytes) << parallel;
    EXPECT_EQ(narrow.experts.sent_bytes, narrow.hidden_bytes / 4) << parallel;
    EXPECT_NEAR(expert_weights(narrow), expert_weights(wide) / 4, 1e-9 * expert_weights(wide)) << parallel;
    EXPECT_TRUE(shapes_named(wide, "latent_fc1").empty()) << parallel;
    const std::vector<workloads::Operator> down = shapes_named(narrow, "latent_fc1"), up = shapes_named(narrow, "latent_fc2");
    ASSERT_EQ(down.size(), 1U) << parallel;
    ASSERT_EQ(up.size(), 1U) << parallel;
    EXPECT_EQ(down.front().n, 1024) << parallel;
    EXPECT_EQ(down.front().k, 4096) << parallel;
    EXPECT_EQ(up.front().n, 4096) << parallel;
    EXPECT_EQ(up.front().k, 1024) << parallel;
  }
}

}  // namespace
}  // namespace rehearse::tests

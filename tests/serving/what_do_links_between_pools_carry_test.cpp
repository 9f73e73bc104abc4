// What the links between two pools carry by formula.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/serving/deployment.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::tests {
namespace {

// Requests take the attention replicas of an instance in turn: as many links as by instances of one each.
TEST(TheBusiestLink, is_no_busier_for_replicas_than_for_instances) {
  const auto busiest_s = [](const std::string& prompts, const std::string& answers) {
    const sim::ServingJob job = sim::read_serving_job(
        config::Node::load_text(
            fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n    p: {{role: prefill, {}}}\n"
                        "    d: {{role: decode, {}}}\n  load: {{arrivals: {{poisson: 80 /s}}, input: 4000, output: 50, requests: 100}}\n",
                        prompts, answers),
            "job.yaml"),
        "job");
    return sim::NetworkTransfers(job).busiest(4000).seconds;
  };
  for (const int number : {2, 4, 8}) {
    const std::string replicas = fmt::format("parallel: {{dp: {}}}", number), instances = fmt::format("instances: {}", number);
    EXPECT_NEAR(busiest_s(replicas, instances) / busiest_s(instances, instances), 1, 1e-9) << number;
    EXPECT_NEAR(busiest_s(instances, replicas) / busiest_s(instances, instances), 1, 1e-9) << number;
  }
  // Of many instances the first ones are looked at, and the others have their share of what goes to one alone.
  EXPECT_LT(busiest_s("parallel: {dp: 4}", "instances: 32"), 1.01 * busiest_s("instances: 4", "instances: 8"));
}

}  // namespace
}  // namespace rehearse::tests

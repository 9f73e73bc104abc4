// Instances stand whole on nodes: what tune finds takes no more than the inventory with the gaps between them. Plans that differ in limits
// without effect are listed once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/serving/placement.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::tests {
namespace {

sim::ServingJob job_tuned_by(const std::string& tune) {
  const std::string text = fmt::format(
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {{all: {{role: both, parallel: {{tp: 4}}, precision: {{compute: fp8, weights: fp8, kv: fp8}}}}}}\n"
      "  load: {{arrivals: {{poisson: 12 /s}}, input: 1000, output: 200, requests: 400}}\n  slo: {{ttft: 1 s, tpot: 40 ms}}\ntune: {}\n",
      tune);
  return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
}

sim::ServingTuning tuned_on(const std::string& tune) {
  return tune_serving(job_tuned_by(tune), [](double) {});
}

TEST(AnInventory, holds_as_many_instances_as_stand_in_it) {
  sim::ServingJob job = job_tuned_by("{inventory: 8}");
  const int per_node = job.parts.front().cluster.gpus_per_node;
  for (int gpus = 1; gpus <= 3 * per_node; ++gpus) {
    for (int inventory = 1; inventory <= 5 * per_node; ++inventory) {
      job.pools.front().plan.tp = gpus;
      int number = 0;
      for (job.pools.front().instances = 1; sim::gpus_taken(job, 0) <= inventory; ++job.pools.front().instances) ++number;
      EXPECT_EQ(sim::instances_within(inventory, gpus, per_node), number) << gpus << " GPUs each, " << inventory;
    }
  }
}

// An instance of eight GPUs behind one of four begins the second node, and ends with the sixteenth GPU.
TEST(AnInventory, is_not_exceeded_by_gaps_between_instances) {
  const std::string space = "inventory: 12, tp: [4, 8], confirm: 0, keep: 100, goal: ";
  std::size_t looked_at = 0;
  for (const char* goal : {"cost", "[cost, ttft, tpot]", "goodput"}) {
    const sim::ServingJob job = job_tuned_by("{" + space + goal + "}");
    const sim::ServingTuning tuning = tune_serving(job, [](double) {});
    for (const auto* all : {&tuning.best, &tuning.front}) {
      for (const sim::TunedDeployment& one : *all) {
        EXPECT_LE(sim::gpus_taken(with_pools(job, one, tuning.rate_per_s), 0), 12) << goal << ", " << one.kind;
        ++looked_at;
      }
    }
  }
  EXPECT_GT(looked_at, 8U);
}

// What a pass takes of prompts does not matter where they are not computed, nor how many may decode where nobody does.
TEST(TwinsOfADeployment, are_counted_and_listed_once) {
  const sim::ServingTuning one = tuned_on("{inventory: 32, confirm: 0, keep: 12, tp: [4], sequences: [256], tokens: [2048]}");
  const sim::ServingTuning many = tuned_on("{inventory: 32, confirm: 0, keep: 12, tp: [4], sequences: [128, 256], tokens: [2048, 8192]}");
  EXPECT_EQ(one.twins, 0);
  EXPECT_EQ(many.plans, 12);
  EXPECT_EQ(many.twins, 4);             // prompts by tokens, decoding by sequences
  std::set<std::pair<int, int>> apart;  // tokens of prompts, sequences that decode
  for (const sim::TunedDeployment& found : many.best) {
    if (found.pools.size() != 2) {
      EXPECT_EQ(found.twins, 0U);
      continue;
    }
    EXPECT_TRUE(apart.emplace(found.pools[0].habits.tokens, found.pools[1].habits.sequences).second) << "listed twice";
    EXPECT_EQ(found.pools[0].habits.sequences, 256) << "the one with most room stands for all";
    EXPECT_EQ(found.twins, 3U);
    EXPECT_EQ(found.without_effect, (std::vector<std::string>{"prefill.sequences", "decode.tokens"}));
  }
  EXPECT_EQ(apart.size(), 4U);
}

}  // namespace
}  // namespace rehearse::tests

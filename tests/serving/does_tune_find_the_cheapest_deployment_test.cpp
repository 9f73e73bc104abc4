// Deployments whose best kind is known: different GPUs where each side has its own strength and price, one kind where it is better at both,
// and none over a network that is too narrow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/deployment.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::tests {
namespace {

struct Market {
  const char *rich_price = "3 /h", *wide_price = "1 /h", *between = "1.6 Tbps";
  const char* more = "";
};

sim::ServingTuning tuned(const Market& market) {
  const std::string text = fmt::format(
      "model: llama3-70b\n"
      "cluster: {{parts: {{rich: {{cluster: dgx-h100-ndr400, nodes: 4}}, wide: {{cluster: h20-roce-4x400, nodes: 8}}}}, between: "
      "{{bandwidth: {}}}}}\n"
      "software: vllm\nserving:\n"
      "  pools:\n"
      "    prefill: {{role: prefill, part: rich, precision: {{compute: fp8, weights: fp8, kv: fp8}}, parallel: {{tp: 4}}}}\n"
      "    decode: {{role: decode, part: wide, precision: {{compute: fp8, weights: fp8, kv: fp8}}, parallel: {{tp: 4}}}}\n"
      "  load: {{arrivals: {{poisson: 12 /s}}, input: 2048, output: 200, requests: 1000}}\n"
      "  slo: {{ttft: 1 s, tpot: 40 ms}}\n"
      "tune: {{inventory: {{rich: 32, wide: 64}}, price: {{rich: {}, wide: {}}}, confirm: 1{}}}\n",
      market.between, market.rich_price, market.wide_price, market.more);
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  return tune_serving(job, [](double) {});
}

std::string best_kind(const sim::ServingTuning& tuning) { return tuning.best.empty() ? "none" : tuning.best.front().kind; }

// An H100 computes nearly seven times what an H20 does for three times its price; an H20 has more bandwidth than an H100 for a third.
TEST(TheCheapestDeployment, takes_each_kind_of_gpu_for_what_it_is_good_at) {
  const sim::ServingTuning tuning = tuned({});
  EXPECT_EQ(best_kind(tuning), "apart on rich and wide");
  ASSERT_TRUE(tuning.chosen);
  EXPECT_TRUE(tuning.best[*tuning.chosen].simulated->kept);
  double cheapest_of_one_kind = INFINITY;
  for (const sim::TunedDeployment& one : tuning.best) {
    if (one.kind != "apart on rich and wide") cheapest_of_one_kind = std::min(cheapest_of_one_kind, one.cost_per_s);
  }
  EXPECT_LT(tuning.best.front().cost_per_s, cheapest_of_one_kind);
}

// The H20 at ten times the price of an H100 is never worth it.
TEST(TheCheapestDeployment, takes_one_kind_where_it_is_better_at_both) {
  const std::string kind = best_kind(tuned({.rich_price = "1 /h", .wide_price = "10 /h"}));
  EXPECT_TRUE(kind == "apart on rich" || kind == "together on rich") << kind;
}

// 12 caches a second of 335 MB are 32 Gbit/s.
TEST(TheCheapestDeployment, is_not_apart_over_a_network_that_is_too_narrow) {
  for (const sim::TunedDeployment& one : tuned({.between = "10 Gbps"}).best) {
    EXPECT_EQ(one.kind.find(" and "), std::string::npos) << one.kind;
  }
}

// The highest rate: the inventory is used up, and a little more is not carried.
TEST(TheHighestRate, is_where_the_inventory_ends) {
  const sim::ServingTuning most = tuned({.more = ", goal: goodput"});
  ASSERT_FALSE(most.best.empty());
  EXPECT_GT(most.rate_per_s, 100);
  const sim::ServingTuning half = tuned({.more = ", goal: goodput, tp: [8]"});
  EXPECT_LE(half.rate_per_s, most.rate_per_s * 1.002);
}

}  // namespace
}  // namespace rehearse::tests

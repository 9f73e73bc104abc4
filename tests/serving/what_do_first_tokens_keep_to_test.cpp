// The first token at the promise's percentile, by formula and simulated: equal prompts on instances of both, each with arrivals at random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "both_ways.hpp"
#include "sim/serving/formula_by_passes.hpp"

namespace rehearse::tests {
namespace {

struct Kind {
  const char *name, *software;
  int tp, input, output;
  double carried_per_s;  // by an instance, as `predict` says of a load that is too much for it
};

class FirstTokensAtAShare : public ::testing::TestWithParam<Kind> {};

// With a wait that is evenly anything up to twice its mean nine tenths would be said to keep to a time 10 to 35 % too short.
TEST_P(FirstTokensAtAShare, keep_to_what_passes_before_them_take) {
  const Kind& kind = GetParam();
  for (const double load : {0.3, 0.6, 0.8}) {
    for (const double percentile : {0.5, 0.9}) {
      const std::string text = fmt::format(
          "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n  pools: {{all: {{role: both, instances: 2, parallel: {{tp: "
          "{}}}}}}}\n  router: {{prefill: random}}\n  load: {{arrivals: {{poisson: {} /s}}, input: {}, output: {}, requests: 20000}}\n"
          "  slo: {{ttft: 1 s, percentile: {}}}\n",
          kind.software, kind.tp, load * 2 * kind.carried_per_s, kind.input, kind.output, percentile);
      const BothWays found = both_ways(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"));
      const double formula_s = found.formula.promised_ttft_s, simulated_s = found.simulated.promised_ttft_s;
      EXPECT_NEAR(formula_s / simulated_s, 1, percentile > 0.5 ? 0.1 : 0.13)
          << load << ' ' << percentile << ": " << 1e3 * formula_s << " and " << 1e3 * simulated_s << " ms";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, FirstTokensAtAShare,
                         ::testing::Values(Kind{"mixed", "vllm", 1, 700, 250, 32.3}, Kind{"mixed_long", "vllm", 2, 2500, 60, 26.3},
                                           Kind{"first", "sglang", 4, 700, 250, 82.2}, Kind{"first_long", "sglang", 1, 2500, 60, 14.9}),
                         [](const auto& kind) { return std::string(kind.param.name); });

// Prompts of 1,000 tokens in the mean, on one pool.
sim::ServingPrediction predicted(const std::string& text, const std::shared_ptr<sim::PassWalks>& walks) {
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  sim::Deployment deployment = deploy(job);
  deployment.pools.front().walks = walks;
  return predict_serving(job, deployment, 1000);
}

// A walk that is kept for the pools of others is asked for again at another percentile: it is another one.
TEST(SharedWalks, tell_percentiles_apart) {
  const auto promised_s = [](const std::shared_ptr<sim::PassWalks>& walks, double percentile) {
    const std::string text = fmt::format(
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {{all: {{role: both, parallel: {{tp: 1}}}}}}\n"
        "  load: {{arrivals: {{poisson: 12 /s}}, input: 1000, output: 100, requests: 200}}\n  slo: {{ttft: 1 s, percentile: {}}}\n",
        percentile);
    return predicted(text, walks).result.promised_ttft_s;
  };
  const auto walks = std::make_shared<sim::PassWalks>();
  const double half_s = promised_s(walks, 0.5), nearly_all_s = promised_s(walks, 0.99);
  EXPECT_GT(nearly_all_s, 1.2 * half_s);
  EXPECT_EQ(half_s, promised_s(nullptr, 0.5));
  EXPECT_EQ(nearly_all_s, promised_s(nullptr, 0.99));
}

// Instances in turn that are sent unlike prompts begin where one alone ended: a pool that holds fewer sequences than were asked about there
// does not take over what another one found.
TEST(SharedWalks, are_of_pools_that_hold_what_they_asked_about) {
  const auto tpot_s = [](const std::shared_ptr<sim::PassWalks>& walks, int sequences) {
    const std::string text = fmt::format(
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
        "  pools: {{all: {{role: both, instances: 3, parallel: {{tp: 1}}, limits: {{sequences: {}}}}}}}\n"
        "  load: {{arrivals: {{poisson: 60 /s}}, input: {{uniform: [100, 1900]}}, output: 100, requests: 200}}\n",
        sequences);
    const sim::ServingPrediction prediction = predicted(text, walks);
    return prediction.overloaded.empty() ? prediction.result.tpot.mean_s : -1;
  };
  const auto walks = std::make_shared<sim::PassWalks>();
  EXPECT_GT(tpot_s(walks, 256), 0);
  for (int sequences = 60; sequences > 20; --sequences) EXPECT_EQ(tpot_s(walks, sequences), tpot_s(nullptr, sequences)) << sequences;
}

}  // namespace
}  // namespace rehearse::tests

// Speculative decoding: passes that bring several tokens, drawn and on average; what trying them costs; formula and simulation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"

namespace rehearse::tests {
namespace {

using sim::PassShape;
using sim::Role;
using sim::ServingRun;
using sim::ServingSetup;
using sim::Speculation;

// 1 + a + ... + a^g = (1 - a^(g + 1)) / (1 - a).
TEST(TriedTokens, bring_a_geometric_sum_a_pass) {
  for (const int tried : {1, 3, 7}) {
    for (const double a : {0.1, 0.5, 0.9})
      EXPECT_NEAR((Speculation{tried, a}.tokens_a_pass()), (1 - std::pow(a, tried + 1)) / (1 - a), 1e-12);
    EXPECT_EQ((Speculation{tried, 1}.tokens_a_pass()), tried + 1);
    EXPECT_EQ((Speculation{tried, 0}.tokens_a_pass()), 1);
  }
}

// Nothing taken: a pass a token. All taken: g + 1 a pass. One tried with a half, two tokens: half of the times 1 pass, else 2.
TEST(TriedTokens, shorten_an_answer) {
  for (const int count : {1, 2, 7, 8, 9, 1000}) {
    EXPECT_EQ((Speculation{}.mean_passes(count)), count);
    EXPECT_NEAR((Speculation{3, 0}.mean_passes(count)), count, 1e-9);
    EXPECT_EQ((Speculation{3, 0}.draw_passes(count, config::Random(1))), count);
    const int full = (count + 3) / 4;  // passes that bring four each
    EXPECT_EQ((Speculation{3, 1}.draw_passes(count, config::Random(1))), full);
    if (count < 256) {
      EXPECT_NEAR((Speculation{3, 1}.mean_passes(count)), full, 1e-9);
    }
  }
  EXPECT_NEAR((Speculation{1, 0.5}.mean_passes(2)), 1.5, 1e-12);
}

// The mean of 10^5 draws within 4 standard errors.
TEST(TriedTokens, shorten_it_by_chance_as_on_average) {
  constexpr int draws = 100'000;
  for (const Speculation& speculation : {Speculation{1, 0.3}, {4, 0.8}, {7, 0.6}}) {
    for (const int count : {1, 5, 40, 700}) {
      double sum = 0, squares = 0;
      for (int i = 0; i < draws; ++i) {
        const auto passes =
            static_cast<double>(speculation.draw_passes(count, config::Random(config::mixed(static_cast<std::uint64_t>(i)))));
        sum += passes;
        squares += passes * passes;
      }
      const double mean = sum / draws, error = std::sqrt(std::max(0.0, squares / draws - mean * mean) / draws);
      EXPECT_NEAR(speculation.mean_passes(count), mean, 4 * error + 1e-9) << speculation.tokens << " " << count;
    }
  }
}

ServingSetup decoding_at_once(const Speculation& speculation, int requests, int output) {
  sim::InstanceRules rules;
  rules.role = Role::decode;
  rules.overflow = sim::Overflow::reserve;
  rules.pages = 1'000'000;
  rules.page = 1;
  rules.sequences = requests;
  rules.speculation = speculation;
  ServingSetup setup;
  setup.pools = {{"pool", rules, std::make_shared<ConstantPrice>(0, 1e-3), 1}};
  setup.requests.assign(static_cast<std::size_t>(requests), {0, {10, output}});
  return setup;
}

// Passes of 1 ms: 9 tokens in 3 of them where all that are tried are taken, in 9 where none is.
TEST(TriedTokens, end_answers_sooner) {
  for (const auto& [acceptance, passes] : {std::pair{1.0, 3}, {0.0, 9}}) {
    const ServingRun run = simulate_serving(decoding_at_once({2, acceptance}, 1, 9));
    EXPECT_NEAR(run.requests[0].first_s, 1e-3, 1e-12);
    EXPECT_NEAR(run.requests[0].last_s, passes * 1e-3, 1e-12);
    EXPECT_NEAR(run.pools[0].instances[0].answer_tokens, 9, 1e-9);
    EXPECT_NEAR(run.pools[0].gaps.count(), 8, 1e-9);
    EXPECT_NEAR(run.pools[0].gaps.mean_s() * 8, (passes - 1) * 1e-3, 1e-12);
  }
}

// Of 4,000 answers the mean number of passes is the formula's within 4 standard errors, and every token is counted.
TEST(TriedTokens, are_drawn_for_each_request) {
  const Speculation speculation{4, 0.7};
  const ServingRun run = simulate_serving(decoding_at_once(speculation, 4000, 60));
  double sum = 0, squares = 0;
  for (const sim::RequestState& request : run.requests) {
    const double passes = request.last_s / 1e-3;
    sum += passes;
    squares += passes * passes;
  }
  const double mean = sum / 4000, error = std::sqrt((squares / 4000 - mean * mean) / 4000);
  EXPECT_NEAR(speculation.mean_passes(60), mean, 4 * error);
  EXPECT_NEAR(run.pools[0].instances[0].answer_tokens, 4000 * 60.0, 1e-6);
}

struct Priced {
  sim::ServingJob job;
  sim::Deployment deployment;
  explicit Priced(const std::string& text)
      : job(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job")), deployment(deploy(job)) {}
};

std::string speculative_job(const std::string& speculative, double rate = 2, int input = 1000) {
  return fmt::format(
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {{all: {{role: both, overflow: reserve, parallel: {{tp: 8}}{}}}}}\n"
      "  load: {{arrivals: {{poisson: {} /s}}, input: {}, output: 200, requests: 4000}}\n",
      speculative.empty() ? "" : ", speculative: {" + speculative + "}", rate, input);
}

// Tokens that cost nothing to propose are tried in a pass that costs more than one of a token each, and less than as many passes.
TEST(APassOfTriedTokens, costs_less_than_passes_for_each) {
  const Priced one(speculative_job("")), five(speculative_job("tokens: 4, acceptance: 0.8"));
  for (const int sequences : {1, 8, 64}) {
    const double context = 1000.0 * sequences, plain = one.deployment.pools[0].price->decode(sequences).seconds(context),
                 tried = five.deployment.pools[0].price->decode(sequences).seconds(context);
    EXPECT_GT(tried, plain);
    EXPECT_LT(tried, 5 * plain);
    PassShape shape;
    shape.decodes = sequences;
    shape.context = context;
    EXPECT_NEAR(five.deployment.pools[0].price->seconds(shape) / tried, 1, 1e-9);
  }
}

// A model that proposes four tokens runs four passes of its own before, and has its share of the memory.
TEST(APassOfTriedTokens, waits_for_those_that_propose_them) {
  const Priced free(speculative_job("tokens: 4, acceptance: 0.8")), draft(speculative_job("tokens: 4, acceptance: 0.8, draft: llama3-8b"));
  std::string alone = speculative_job("");
  alone.replace(alone.find("llama3-70b"), 10, "llama3-8b");
  const Priced small(alone);
  const double own_s = small.deployment.pools[0].price->parts({.decodes = 16, .context = 16'000}).seconds() -
                       small.deployment.pools[0].price->parts({.decodes = 16, .context = 16'000}).host_s;
  const double more_s =
      draft.deployment.pools[0].price->decode(16).seconds(16'000) - free.deployment.pools[0].price->decode(16).seconds(16'000);
  EXPECT_NEAR(more_s / (4 * own_s), 1, 1e-6);
  EXPECT_LT(draft.deployment.pools[0].rules.pages, free.deployment.pools[0].rules.pages);
  EXPECT_NEAR(draft.deployment.pools[0].memory.weights - free.deployment.pools[0].memory.weights, small.deployment.pools[0].memory.weights,
              1);
}

TEST(FormulaAndSimulationAgree, on_tried_tokens) {
  for (const char* speculative :
       {"tokens: 3, acceptance: 0.7", "tokens: 4, acceptance: 0.8, draft: llama3-8b", "tokens: 1, acceptance: 0.9"}) {
    for (const double rate : {1.0, 4.0}) {
      const Priced found(speculative_job(speculative, rate));
      const sim::ServingPrediction prediction = predict_serving(found.job, found.deployment, 1000);
      const ServingSetup setup = setup_of(found.job, found.deployment);
      const sim::ServingResult simulated = result_of(found.job, setup, simulate_serving(setup));
      EXPECT_NEAR(prediction.result.tpot.mean_s / simulated.tpot.mean_s, 1, 0.025) << speculative << " " << rate;
      EXPECT_NEAR(prediction.result.ttft.mean_s / simulated.ttft.mean_s, 1, 0.06) << speculative << " " << rate;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

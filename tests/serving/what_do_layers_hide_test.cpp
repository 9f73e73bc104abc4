// Caches that leave layer by layer: what the rest of the pass hides, with constant prices, against a recurrence and against the formula.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "deployments.hpp"
#include "hand_over_jobs.hpp"
#include "sim/serving/deployment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::tests {
namespace {

using sim::RequestState;
using sim::ServingRun;
using sim::ServingSetup;
using sim::Stage;

constexpr double layer_eps = 1e-9;

// Prompts at a token per millisecond, decode passes of a millisecond, a byte per token.
ServingSetup in_layers(const OneLink::Habits& habits, int chunk, int prompt = 100) {
  const auto pool = [&](sim::Role role, int tokens) {
    sim::InstanceRules rules;
    rules.role = role;
    rules.sequences = 64;
    rules.tokens = tokens;
    rules.pages = 10'000;
    rules.page = 1;
    return sim::PoolSetup{"pool", rules, std::make_shared<ConstantPrice>(1e-3, 1e-3), 1};
  };
  ServingSetup setup;
  setup.pools = {pool(sim::Role::prefill, chunk), pool(sim::Role::decode, 1000)};
  setup.requests = {{0, {prompt, 11}}};
  setup.transfers = std::make_shared<OneLink>(habits);
  return setup;
}

double seconds_in(const RequestState& request, Stage stage) { return request.spent_s[static_cast<std::size_t>(stage)]; }

// Four layers of 25 ms and 25 bytes. With x a layer's transfer and c its computation, L*c + x where x <= c, else c + L*x; so behind L*c are
// exposed 25 and 12.5 ms, and 25 + 4 * 50 - 100 = 125 ms on a link of half the rate.
TEST(Layers, leave_the_last_one_exposed) {
  for (const bool reserves_first : {false, true}) {
    for (const auto& [bytes_per_s, exposed_s] : {std::pair(1000.0, 0.025), std::pair(2000.0, 0.0125), std::pair(500.0, 0.125)}) {
      ServingSetup setup = in_layers({.reserves_first = reserves_first, .by_chunks = true, .bytes_per_s = bytes_per_s, .layers = 4}, 1000);
      const ServingRun run = simulate_serving(setup);
      EXPECT_NEAR(seconds_in(run.requests[0], Stage::transferring), exposed_s, layer_eps) << bytes_per_s;
      EXPECT_NEAR(run.requests[0].last_s, 0.1 + exposed_s + 0.011, layer_eps) << bytes_per_s;
      EXPECT_NEAR(run.requests[0].transfer_bytes, 100, layer_eps);
    }
  }
}

// The decoding engine knows of it at 0.025 + 0.06 s: three layers leave then together, the fourth behind 0.1 s.
TEST(Layers, wait_until_the_other_engine_knows) {
  ServingSetup setup = in_layers({.by_chunks = true, .bytes_per_s = 2500, .layers = 4}, 1000);
  setup.pools.back().request_s = 0.06;
  const ServingRun run = simulate_serving(setup);
  EXPECT_EQ(seconds_in(run.requests[0], Stage::waiting), 0);
  EXPECT_NEAR(run.requests[0].last_s, 0.085 + 0.04 + 0.011, layer_eps);  // 75 bytes until 0.115, then the other 25
}

// A link that never rests is done when the worst of its pieces is, with all behind it: max over pieces of (ready + what is left then /
// rate).
TEST(Layers, of_random_chunks_follow_the_recurrence) {
  std::mt19937 random(5);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 300; ++trial) {
    const int prompt = pick(1, 400), chunk = pick(1, 150), layers = pick(1, 12);
    const double rate = pick(200, 4000), before_s = pick(0, 3) * 1e-3;
    ServingSetup setup = in_layers({.by_chunks = true, .bytes_per_s = rate, .before_s = before_s, .layers = layers}, chunk, prompt);
    double there_s = 0, left = prompt;
    for (int done = 0; done < prompt; done += chunk) {
      const int tokens = std::min(chunk, prompt - done);
      for (int layer = 1; layer <= layers; ++layer) {
        const double ready_s = 1e-3 * (done + tokens * static_cast<double>(layer) / layers);
        there_s = std::max(there_s, ready_s + before_s + left / rate);
        left -= tokens / static_cast<double>(layers);
      }
    }
    const ServingRun run = simulate_serving(setup);
    EXPECT_NEAR(run.requests[0].last_s, there_s + 0.011, 1e-8) << prompt << ' ' << chunk << ' ' << layers << ' ' << rate;
  }
}

// The same bytes as a whole cache, in every plan; less left behind the prompt than with chunks; by formula what is simulated.
TEST(Layers, move_what_a_whole_cache_does) {
  const std::string load = "{arrivals: {closed: 1}, input: 4000, output: 20, requests: 10}";
  for (const int tokens : {1000, 8192}) {
    for (const char* more : {"", ", path: host-staged", ", reserve: before-prefill", ", first_token: prefill"}) {
      const FormulaAndRun whole = formula_and_run(hand_over_job("after-prefill", load, tokens, more)),
                          chunks = formula_and_run(hand_over_job("chunkwise", load, tokens, more)),
                          layers = formula_and_run(hand_over_job("layerwise", load, tokens, more));
      for (std::size_t i = 0; i < whole.run.requests.size(); ++i) {
        EXPECT_NEAR(layers.run.requests[i].transfer_bytes / whole.run.requests[i].transfer_bytes, 1, 1e-12) << tokens << more;
      }
      EXPECT_NEAR(layers.formula.kv_transfer_s, layers.simulated.kv_transfer_s, layer_eps) << tokens << more;
      EXPECT_LT(layers.simulated.kv_transfer_s, chunks.simulated.kv_transfer_s) << tokens << more;
    }
  }
}

// Stages of a pipeline hold layers of their own, which leave one stage after the other: not a byte more or less, and no later than as a
// whole.
TEST(Layers, of_stages_leave_from_their_stage) {
  const std::string load = "{arrivals: {closed: 1}, input: 4000, output: 20, requests: 4}";
  for (const auto& [sender, receiver] : {std::pair("{tp: 4, pp: 2}", "{tp: 8}"), std::pair("{tp: 8}", "{tp: 2, pp: 4}")}) {
    const FormulaAndRun whole = formula_and_run(hand_over_job("after-prefill", load, 1000, "", sender, receiver)),
                        layers = formula_and_run(hand_over_job("layerwise", load, 1000, "", sender, receiver));
    for (std::size_t i = 0; i < whole.run.requests.size(); ++i) {
      EXPECT_NEAR(layers.run.requests[i].transfer_bytes / whole.run.requests[i].transfer_bytes, 1, 1e-12) << sender;
      EXPECT_LT(layers.run.requests[i].e2e_s(), whole.run.requests[i].e2e_s()) << sender;
    }
  }
  sim::ServingJob job =
      sim::read_serving_job(config::Node::load_text(hand_over_job("layerwise", load, 1000, "", "{tp: 4, pp: 2}"), "job.yaml"), "job");
  for (const workloads::KvPair& pair : kv_pairs(job.pools[0].plan, job.pools[1].plan)) {
    EXPECT_EQ(pair.first_layer, pair.from < 4 ? 0 : 40);
    EXPECT_EQ(pair.last_layer, pair.from < 4 ? 40 : 80);
  }
}

TEST(Layers, take_as_long_by_formula_as_simulated) {
  const FormulaAndRun found =
      formula_and_run(hand_over_job("layerwise", "{arrivals: {poisson: 2 /s}, input: 4096, output: 200, requests: 1000}", 8192));
  EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05);
  EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.02);
}

}  // namespace
}  // namespace rehearse::tests

// Caches that leave chunk by chunk: what the rest of the prompt hides, with constant prices, and against leaving as a whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "deployments.hpp"
#include "hand_over_jobs.hpp"
#include "sim/serving/deployment.hpp"

namespace rehearse::tests {
namespace {

using sim::RequestState;
using sim::ServiceFault;
using sim::ServingRun;
using sim::ServingSetup;
using sim::Stage;

constexpr double chunk_eps = 1e-9;

// Prompts at a token per millisecond in chunks, decode passes of a millisecond; the link of OneLink has a byte, a token, per millisecond.
sim::PoolSetup chunked(sim::Role role, int instances, int tokens, std::int64_t pages = 10'000) {
  sim::InstanceRules rules;
  rules.role = role;
  rules.sequences = 64;
  rules.tokens = tokens;
  rules.pages = pages;
  rules.page = 1;
  return {"pool", rules, std::make_shared<ConstantPrice>(1e-3, 1e-3), instances};
}

ServingSetup in_chunks(const OneLink::Habits& habits, int tokens, int prefills = 1, int decodes = 1) {
  ServingSetup setup;
  setup.pools = {chunked(sim::Role::prefill, prefills, tokens), chunked(sim::Role::decode, decodes, 1000)};
  setup.requests = {{0, {100, 11}}};
  setup.transfers = std::make_shared<OneLink>(habits);
  return setup;
}

double transferring_s(const RequestState& request) { return request.spent_s[static_cast<std::size_t>(Stage::transferring)]; }

// 100 tokens in chunks of 40: 40, 40, 20. On a link as fast as the computation 20 of the second and the last 20 are left; on one twice as
// fast 10 ms; on one of half the rate the link never rests behind the first chunk: 0.04 + 0.2 s.
TEST(Chunks, leave_the_last_one_exposed) {
  for (const bool reserves_first : {false, true}) {
    for (const auto& [bytes_per_s, exposed_s] : {std::pair(1000.0, 0.04), std::pair(2000.0, 0.01), std::pair(500.0, 0.14)}) {
      ServingSetup setup = in_chunks({.reserves_first = reserves_first, .by_chunks = true, .bytes_per_s = bytes_per_s}, 40);
      const ServingRun run = simulate_serving(setup);
      EXPECT_NEAR(transferring_s(run.requests[0]), exposed_s, chunk_eps) << bytes_per_s;
      EXPECT_NEAR(run.requests[0].last_s, 0.1 + exposed_s + 0.011, chunk_eps) << bytes_per_s;
      EXPECT_EQ(run.requests[0].transfer_bytes, 100);
    }
  }
}

// What both engines do before and behind a piece is hidden for all but the last.
TEST(Chunks, hide_their_starts) {
  ServingSetup setup = in_chunks({.by_chunks = true, .bytes_per_s = 2000, .before_s = 0.003, .after_s = 0.002}, 40);
  setup.pools.back().request_s = 0.05;  // known at 0.09 s: 80 tokens leave then, and are there behind the last 20
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 0.09 + 0.003 + 0.05 + 0.002 + 0.011, chunk_eps);
  EXPECT_EQ(run.requests[0].spent_s[static_cast<std::size_t>(Stage::waiting)], 0);
}

// The decoding side has room for one at a time: who finds none keeps its chunks, and nothing is lost.
TEST(Chunks, wait_for_room) {
  ServingSetup setup = in_chunks({.by_chunks = true}, 40);
  setup.pools.back() = chunked(sim::Role::decode, 1, 1000, 150);
  setup.requests.assign(5, {0, {100, 50}});
  const ServingRun run = simulate_serving(setup);
  for (const RequestState& request : run.requests) {
    EXPECT_EQ(request.stage, Stage::done);
    EXPECT_EQ(request.transfer_bytes, 100);
  }
  EXPECT_GT(run.requests[4].spent_s[static_cast<std::size_t>(Stage::waiting)], 0);
  for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
}

ServiceFault stops(std::size_t instance, double at_s) {
  return {.kind = ServiceFault::Kind::fails, .instances = {instance}, .from_s = at_s, .for_s = INFINITY};
}

// The sender fails at 0.05 s, with the first chunk half way: the other one begins the prompt again.
TEST(Chunks, of_a_sender_that_fails_are_computed_again) {
  for (const bool reserves_first : {false, true}) {
    ServingSetup setup = in_chunks({.reserves_first = reserves_first, .by_chunks = true}, 40, 2);
    setup.faults = {stops(0, 0.05)};
    const ServingRun run = simulate_serving(setup);
    EXPECT_NEAR(run.requests[0].last_s, 0.05 + 0.1 + 0.04 + 0.011, chunk_eps);
    EXPECT_EQ(run.requests[0].transfer_bytes, 100);
    EXPECT_EQ(run.requests[0].retries, 1);
    for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
  }
}

// The receiver fails at 0.05 s: the first chunk goes to the other one from its beginning, and the link carries 100 tokens from there on.
TEST(Chunks, of_a_receiver_that_fails_are_sent_elsewhere) {
  ServingSetup setup = in_chunks({.by_chunks = true}, 40, 1, 2);
  setup.faults = {stops(1, 0.05)};
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 0.05 + 0.1 + 0.011, chunk_eps);
  EXPECT_EQ(run.requests[0].redone, 0);
  EXPECT_EQ(run.requests[0].transfer_bytes, 100);
}

// The same bytes; a prompt of one chunk is handed over as a whole; alone, nobody's first token is later.
TEST(Chunks, move_what_a_whole_cache_does) {
  for (const int tokens : {500, 1000, 1001, 8192}) {
    for (const char* more : {"", ", path: host-staged", ", reserve: before-prefill", ", first_token: prefill"}) {
      const std::string load = "{arrivals: {closed: 1}, input: 4000, output: 20, requests: 10}";
      const FormulaAndRun whole = formula_and_run(hand_over_job("after-prefill", load, tokens, more)),
                          chunks = formula_and_run(hand_over_job("chunkwise", load, tokens, more));
      for (std::size_t i = 0; i < whole.run.requests.size(); ++i) {
        const RequestState &a = whole.run.requests[i], &b = chunks.run.requests[i];
        EXPECT_EQ(a.transfer_bytes, b.transfer_bytes) << tokens << more;
        EXPECT_LE(b.e2e_s(), a.e2e_s() + chunk_eps) << tokens << more;
        if (tokens > 4000) {
          EXPECT_NEAR(b.e2e_s(), a.e2e_s(), chunk_eps);
        }
      }
      EXPECT_NEAR(chunks.formula.kv_transfer_s, chunks.simulated.kv_transfer_s, chunk_eps) << tokens << more;
      if (tokens < 4000) {
        EXPECT_LT(chunks.simulated.kv_transfer_s, 0.6 * whole.simulated.kv_transfer_s) << tokens << more;
      }
    }
  }
}

TEST(Chunks, take_as_long_by_formula_as_simulated) {
  for (const double rate : {1.0, 3.0}) {
    const FormulaAndRun found = formula_and_run(
        hand_over_job("chunkwise", fmt::format("{{arrivals: {{poisson: {} /s}}, input: 4096, output: 200, requests: 8000}}", rate), 1024));
    EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05) << rate;
    EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.02) << rate;
  }
}

}  // namespace
}  // namespace rehearse::tests

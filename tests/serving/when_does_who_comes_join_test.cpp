// An engine that works ahead puts a pass together when the one before begins: who comes meanwhile joins the one after it.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/serving/deployments.hpp"

namespace rehearse::tests {
namespace {

// A millisecond for each token of a prompt, ten for a decode pass; requests of 10 tokens, with answers of so many.
std::vector<double> first_tokens_s(bool ahead, const std::vector<double>& arrivals_s, const std::vector<int>& answers) {
  sim::InstanceRules rules;
  rules.ahead = ahead;
  rules.pages = 1000;
  sim::ServingSetup setup;
  setup.pools = {{"pool", rules, std::make_shared<ConstantPrice>(1e-3, 10e-3), 1}};
  setup.prompt_router = setup.decode_router = "round-robin";
  setup.arrivals.kind = workloads::Arrivals::trace;
  for (std::size_t i = 0; i < arrivals_s.size(); ++i) setup.requests.push_back({arrivals_s[i], {10, answers[i]}});
  std::vector<double> first_s;
  for (const sim::RequestState& request : simulate_serving(setup).requests) first_s.push_back(request.first_s);
  return first_s;
}

// The first decodes from 10 ms on. The second comes at 25 ms: its pass of 20 ms begins at 30 ms, or a pass later.
TEST(WhoComes, joins_the_next_pass_or_the_one_after_it) {
  EXPECT_NEAR(first_tokens_s(false, {0, 25e-3}, {50, 1})[1], 50e-3, 1e-12);
  EXPECT_NEAR(first_tokens_s(true, {0, 25e-3}, {50, 1})[1], 60e-3, 1e-12);
}

// Whoever came with it before that pass began is in it: at 15 ms for the pass at 30 ms, which the other misses.
TEST(WhoComes, does_not_keep_back_those_before) {
  const std::vector<double> first_s = first_tokens_s(true, {0, 15e-3, 25e-3}, {50, 5, 1});
  EXPECT_NEAR(first_s[1], 50e-3, 1e-12);
  EXPECT_NEAR(first_s[2], 70e-3, 1e-12);
}

// The first ends at 20 ms, and nothing is left to do when the other one, of 15 ms, is known.
TEST(WhoComes, begins_at_once_where_nothing_else_runs) {
  EXPECT_NEAR(first_tokens_s(true, {0, 15e-3}, {2, 1})[1], 30e-3, 1e-12);
  EXPECT_NEAR(first_tokens_s(true, {0, 40e-3}, {2, 1})[1], 50e-3, 1e-12);
}

}  // namespace
}  // namespace rehearse::tests

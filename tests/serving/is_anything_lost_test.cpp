// Laws that hold whatever the load, the policy and the cache: 10^4 random deployments.
#include <gtest/gtest.h>

#include <random>

#include "deployments.hpp"
#include "sim/serving/router.hpp"

namespace rehearse::tests {
namespace {

using sim::Batching;
using sim::Instance;
using sim::Overflow;
using sim::RequestState;
using sim::Role;
using sim::ServingRun;
using sim::ServingSetup;
using sim::Stage;

// A price that grows with everything a pass holds, as real ones do.
class GrowingPrice final : public sim::PassPrice {
 public:
  [[nodiscard]] double seconds(const sim::PassShape& shape) const override {
    return 1e-3 + 2e-5 * (shape.prompt_tokens + shape.decodes) + 1e-8 * shape.prompt_pairs + 1e-7 * shape.context;
  }
  [[nodiscard]] sim::DecodeLine decode(int sequences) const override {
    sim::DecodeLine line;
    line.base_s = 1e-3 + 2e-5 * sequences;
    line.per_token_s = 1e-7;
    return line;
  }
};

ServingSetup random_setup(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  sim::InstanceRules rules;
  rules.role = std::array{Role::both, Role::both, Role::prefill, Role::decode}[static_cast<std::size_t>(pick(0, 3))];
  rules.batching = std::array{Batching::continuous, Batching::prefill_first, Batching::fixed}[static_cast<std::size_t>(pick(0, 2))];
  rules.chunked_prefill = pick(0, 1) == 1;
  rules.overflow = pick(0, 1) == 1 ? Overflow::recompute : Overflow::reserve;
  rules.sequences = pick(1, 12);
  rules.tokens = pick(12, 300);
  rules.page = pick(1, 20);
  rules.pages = pick(60, 400) / rules.page + 1;
  ServingSetup setup;
  setup.pools = {{"pool", rules, std::make_shared<GrowingPrice>(), pick(1, 3)}};
  const std::vector<std::string> routers = sim::RouterRegistry::names();
  setup.prompt_router = setup.decode_router = routers[static_cast<std::size_t>(pick(0, static_cast<int>(routers.size()) - 1))];
  setup.seed = random();
  const bool closed = pick(0, 3) == 0;
  setup.arrivals.kind = closed ? workloads::Arrivals::closed : workloads::Arrivals::trace;
  setup.arrivals.clients = pick(1, 10);
  setup.arrivals.think_s = pick(0, 1) * 1e-3;
  double now = 0;
  for (int i = pick(1, 40); i > 0; --i) {
    now += pick(0, 3) * 2e-3;
    setup.requests.push_back({closed ? 0 : now, {pick(1, 120), pick(1, 60)}});
  }
  return setup;
}

// A prompt and its answer fit, or the request is told that it never will.
void expect_everybody_is_answered(const ServingRun& run) {
  for (const RequestState& request : run.requests) {
    ASSERT_TRUE(request.stage == Stage::done || request.stage == Stage::rejected);
    if (request.stage == Stage::rejected) continue;
    EXPECT_GE(request.first_s, request.arrival_s);
    EXPECT_GE(request.last_s, request.first_s);
  }
}

void expect_stages_add_up(const ServingRun& run) {
  for (const RequestState& request : run.requests) {
    if (request.stage != Stage::done) continue;
    double sum = 0;
    for (const double seconds : request.spent_s) {
      EXPECT_GE(seconds, 0);
      sum += seconds;
    }
    EXPECT_NEAR(sum, request.e2e_s(), 1e-9 * (1 + request.last_s));
  }
}

// What instances counted while they worked is what the requests asked for; recomputed prompts come on top.
void expect_tokens_are_kept(const ServingSetup& setup, const ServingRun& run) {
  double prompts = 0, answers = 0, recomputed = 0;
  for (const RequestState& request : run.requests) {
    if (request.stage != Stage::done) continue;
    prompts += request.tokens.input;
    answers += request.tokens.output;
  }
  double computed = 0, shown = 0;
  for (const sim::InstanceUse& use : run.pools.front().instances) {
    computed += use.prompt_tokens;
    shown += use.answer_tokens;
    recomputed += static_cast<double>(use.recomputed_tokens);
  }
  const Role role = setup.pools.front().rules.role;
  EXPECT_EQ(computed, role == Role::decode ? recomputed : prompts + recomputed);
  EXPECT_EQ(shown, role == Role::prefill ? 0 : answers);
}

// Little: the time that requests spend decoding, added up request by request, is the number of them, added up pass by pass. Passes of
// prompts, during which they wait, are the difference, so that nobody may have waited.
void expect_little(const ServingSetup& setup, const ServingRun& run) {
  if (setup.pools.front().rules.role != Role::decode) return;
  double by_request = 0, by_pass = 0, preemptions = 0;
  for (const RequestState& request : run.requests) by_request += request.spent_s[static_cast<std::size_t>(Stage::decoding)];
  for (const sim::InstanceUse& use : run.pools.front().instances) {
    by_pass += use.sequence_seconds;
    preemptions += use.preemptions;
  }
  if (preemptions > 0) return;
  EXPECT_NEAR(by_request, by_pass, 1e-9 * (1 + by_request));
}

TEST(NothingIsLost, in_random_deployments) {
  std::mt19937 random(14);
  int preemptions = 0, rejected = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    SCOPED_TRACE(trial);
    const ServingSetup setup = random_setup(random);
    const ServingRun run = simulate_serving(setup);
    expect_everybody_is_answered(run);
    expect_stages_add_up(run);
    expect_tokens_are_kept(setup, run);
    expect_little(setup, run);
    for (const sim::InstanceUse& use : run.pools.front().instances) {
      EXPECT_LE(use.most_pages, setup.pools.front().rules.pages);
      preemptions += use.preemptions;
    }
    for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
    for (const RequestState& request : run.requests) rejected += request.stage == Stage::rejected ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(preemptions, 1000);  // the deployments are tight enough to mean something
  EXPECT_GT(rejected, 100);
}

// A run of passes as one activity, cut where somebody comes, is the passes one by one.
TEST(NothingIsLost, when_runs_of_passes_are_one_activity) {
  std::mt19937 random(15);
  for (int trial = 0; trial < 2'000; ++trial) {
    SCOPED_TRACE(trial);
    ServingSetup setup = random_setup(random);
    const ServingRun runs = simulate_serving(setup);
    setup.pools.front().rules.one_by_one = true;
    const ServingRun passes = simulate_serving(setup);
    for (std::size_t i = 0; i < runs.requests.size(); ++i) {
      ASSERT_NEAR(runs.requests[i].first_s, passes.requests[i].first_s, 1e-9 * (1 + passes.end_s));
      ASSERT_NEAR(runs.requests[i].last_s, passes.requests[i].last_s, 1e-9 * (1 + passes.end_s));
    }
    EXPECT_NEAR(runs.pools.front().gaps.mean_s(), passes.pools.front().gaps.mean_s(), 1e-9 * (1 + passes.end_s));
    if (HasFailure()) return;
  }
}

TEST(NothingIsLost, when_the_same_job_runs_again) {
  std::mt19937 random(16);
  for (int trial = 0; trial < 100; ++trial) {
    const ServingSetup setup = random_setup(random);
    const ServingRun one = simulate_serving(setup), other = simulate_serving(setup);
    for (std::size_t i = 0; i < one.requests.size(); ++i) ASSERT_EQ(one.requests[i].last_s, other.requests[i].last_s);
  }
}

}  // namespace
}  // namespace rehearse::tests

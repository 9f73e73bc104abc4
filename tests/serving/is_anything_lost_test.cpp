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

// Of half of the deployments the prompts have blocks, of few kinds, and some pools keep them.
void give_blocks(ServingSetup& setup) {
  for (sim::PoolSetup& pool : setup.pools) pool.rules.blocks = nullptr;
  config::Random draw(setup.seed);
  const auto pick = [&](int low, int high) { return low + static_cast<int>(draw.uniform() * (high - low + 1)); };
  if (pick(0, 1) == 0) return;
  const int page = setup.pools.front().rules.page, tokens = page * pick(1, 4), kinds = pick(1, 3);
  auto blocks = std::make_shared<workloads::PromptBlocks>(tokens);
  for (const workloads::Request& request : setup.requests) {
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(request.tokens.input / tokens));
    for (std::uint64_t& hash : hashes) hash = static_cast<std::uint64_t>(pick(1, kinds));
    blocks->add(hashes);
  }
  for (sim::PoolSetup& pool : setup.pools) {
    sim::InstanceRules& rules = pool.rules;
    if (rules.overflow == Overflow::swap || rules.state_pages > 0 || pick(0, 2) == 0) continue;
    rules.pages = rules.pages * rules.page / page + 1;
    rules.page = page;
    rules.blocks = blocks;
  }
}

ServingSetup random_setup(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  sim::InstanceRules rules;
  rules.role = std::array{Role::both, Role::both, Role::prefill, Role::decode}[static_cast<std::size_t>(pick(0, 3))];
  rules.batching = std::array{Batching::continuous, Batching::prefill_first, Batching::fixed}[static_cast<std::size_t>(pick(0, 2))];
  rules.chunked_prefill = pick(0, 1) == 1;
  rules.overflow = std::array{Overflow::recompute, Overflow::swap, Overflow::reserve}[static_cast<std::size_t>(pick(0, 2))];
  rules.swap_page_s = pick(0, 5) * 1e-4;
  if (pick(0, 2) == 0) rules.swap_pages = pick(0, 30);
  rules.sequences = pick(1, 12);
  rules.tokens = pick(12, 300);
  rules.page = pick(1, 20);
  rules.pages = pick(60, 400) / rules.page + 1;
  ServingSetup setup;
  setup.pools = {{"pool", rules, std::make_shared<GrowingPrice>(), pick(1, 3)}};
  const std::vector<std::string> routers = sim::RouterRegistry::names();
  setup.prompt_router = setup.decode_router = routers[static_cast<std::size_t>(pick(0, static_cast<int>(routers.size()) - 1))];
  setup.seed = random();
  setup.pools.front().rules.ahead = rules.batching != Batching::fixed && setup.seed / 128 % 2 == 1;
  if (rules.overflow == Overflow::reserve && rules.batching != Batching::fixed && setup.seed % 2 == 1) {
    sim::InstanceRules& trying = setup.pools.front().rules;
    trying.speculation = {1 + static_cast<int>(setup.seed / 2 % 4), static_cast<double>(setup.seed / 8 % 11) / 10};
    trying.drawing_seed = setup.seed;
  }
  if (setup.seed / 4096 % 3 == 0) setup.pools.front().rules.state_pages = static_cast<std::int64_t>(setup.seed / 16384 % 4);
  const bool closed = pick(0, 3) == 0;
  setup.arrivals.kind = closed ? workloads::Arrivals::closed : workloads::Arrivals::trace;
  setup.arrivals.clients = pick(1, 10);
  setup.arrivals.think_s = pick(0, 1) * 1e-3;
  double now = 0;
  for (int i = pick(1, 40); i > 0; --i) {
    now += pick(0, 3) * 2e-3;
    setup.requests.push_back({closed ? 0 : now, {pick(1, 120), pick(1, 60)}});
  }
  give_blocks(setup);
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

// What instances counted while they worked is what the requests asked for, without what was found in caches; recomputed prompts come on
// top.
void expect_tokens_are_kept(const ServingSetup& setup, const ServingRun& run) {
  double prompts = 0, answers = 0, recomputed = 0, reused = 0, found = 0, there = 0;
  for (const RequestState& request : run.requests) {
    there += request.there;
    if (request.stage != Stage::done) continue;
    reused += static_cast<double>(request.reused);
    prompts += request.tokens.input;
    answers += request.tokens.output;
  }
  double computed = 0, shown = 0;
  for (const sim::InstanceUse& use : run.pools.front().instances) {
    computed += use.prompt_tokens;
    shown += use.answer_tokens;
    recomputed += static_cast<double>(use.recomputed_tokens);
    found += use.found_tokens;
  }
  const Role role = setup.pools.front().rules.role;
  EXPECT_EQ(computed, (role == Role::decode ? recomputed : prompts + recomputed) - reused);
  EXPECT_EQ(found, reused + there);
  EXPECT_NEAR(shown, role == Role::prefill ? 0 : answers, 1e-9 * answers);  // those of speculative passes are shares
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
  int preemptions = 0, rejected = 0, found = 0;
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
    for (const RequestState& request : run.requests) {
      rejected += request.stage == Stage::rejected ? 1 : 0;
      found += request.reused > 0 ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(preemptions, 1000);  // the deployments are tight enough to mean something
  EXPECT_GT(rejected, 100);
  EXPECT_GT(found, 10'000);
}

// The same with the sides apart: any pages, any policy, requests of any size, caches over one link.
ServingSetup random_apart(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  ServingSetup setup = random_setup(random);
  setup.pools.front().rules.role = Role::prefill;
  setup.pools.push_back(random_setup(random).pools.front());
  setup.pools.back().rules.role = Role::decode;
  for (const Role role : {Role::prefill, Role::decode}) {  // pools that share a role
    if (pick(0, 2) > 0) continue;
    sim::PoolSetup more = random_setup(random).pools.front();
    more.rules.role = role;
    role == Role::prefill ? setup.pools.insert(setup.pools.begin(), more) : setup.pools.insert(setup.pools.end(), more);
  }
  OneLink::Habits habits;
  habits.reserves_first = pick(0, 1) == 1;
  habits.prefill_answers_first = pick(0, 1) == 1;
  habits.by_chunks = pick(0, 1) == 1;
  if (habits.by_chunks) habits.layers = pick(1, 5);
  const auto seconds = [&] { return pick(0, 1) * std::uniform_real_distribution<double>(0, 1e-3)(random); };  // never two things at once
  habits.bytes_per_s = std::uniform_real_distribution<double>(1e3, 2e4)(random);
  habits.before_s = seconds();
  habits.after_s = seconds();
  setup.transfers = std::make_shared<OneLink>(habits);
  for (sim::PoolSetup& pool : setup.pools) pool.request_s = seconds();
  give_blocks(setup);
  return setup;
}

// What decoding instances showed, and with it the first tokens that the other side did.
void expect_answers_are_kept(const ServingSetup& setup, const ServingRun& run) {
  double answers = 0, shown = 0, begun = 0;
  for (const RequestState& request : run.requests) {
    answers += request.generated;
    begun += request.generated > 0 ? 1 : 0;
  }
  for (std::size_t pool = 0; pool < run.pools.size(); ++pool) {
    if (setup.pools[pool].rules.role == Role::prefill) continue;
    for (const sim::InstanceUse& use : run.pools[pool].instances) shown += use.answer_tokens;
  }
  EXPECT_NEAR(shown, answers - (setup.transfers->prefill_answers_first() ? begun : 0), 1e-9 * answers);
}

// A byte per token of the prompt that is not there already, in however many pieces; none where the answer ended with it.
void expect_bytes_are_kept(const ServingSetup& setup, const ServingRun& run) {
  for (const RequestState& request : run.requests) {
    if (request.stage != Stage::done) continue;
    const bool stays = setup.transfers->prefill_answers_first() && request.tokens.output == 1;
    EXPECT_NEAR(request.transfer_bytes, stays ? 0 : request.tokens.input - request.there, 1e-9 * request.tokens.input);
  }
}

TEST(NothingIsLost, between_two_sides) {
  std::mt19937 random(17);
  int preemptions = 0, found = 0, there = 0;
  for (int trial = 0; trial < 5'000; ++trial) {
    SCOPED_TRACE(trial);
    ServingSetup setup = random_apart(random);
    const ServingRun run = simulate_serving(setup);
    expect_everybody_is_answered(run);
    expect_stages_add_up(run);
    expect_answers_are_kept(setup, run);
    expect_bytes_are_kept(setup, run);
    for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
    for (const sim::InstanceUse& use : run.pools.back().instances) {
      EXPECT_LE(use.most_pages, setup.pools.back().rules.pages);
      preemptions += use.preemptions;
    }
    for (const RequestState& request : run.requests) {
      found += request.reused > 0 ? 1 : 0;
      there += request.there > 0 ? 1 : 0;
    }
    for (sim::PoolSetup& pool : setup.pools) pool.rules.one_by_one = true;
    const ServingRun passes = simulate_serving(setup);
    for (std::size_t i = 0; i < run.requests.size(); ++i)
      ASSERT_NEAR(run.requests[i].last_s, passes.requests[i].last_s, 1e-9 * (1 + passes.end_s));
    if (HasFailure()) return;
  }
  EXPECT_GT(preemptions, 500);
  EXPECT_GT(found, 5'000);
  EXPECT_GT(there, 5'000);
}

// Instances that fail at any time and come back, ports that are slow: everybody is answered all the same, or is told why not.
// Of seed 1 a sender is lost whose request has shown a token while room for its shorter prompt is kept.
TEST(NothingIsLost, when_instances_fail) {
  std::mt19937 random(1);
  int retried = 0, apart = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    SCOPED_TRACE(trial);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    ServingSetup setup = pick(0, 1) == 1 ? random_apart(random) : random_setup(random);
    int instances = 0;
    for (const sim::PoolSetup& pool : setup.pools) instances += pool.instances;
    for (int i = pick(1, 6); i > 0; --i) {
      sim::ServiceFault fault{
          .kind = static_cast<sim::ServiceFault::Kind>(pick(0, 3)), .from_s = pick(0, 200) * 1e-3, .for_s = pick(1, 100) * 1e-3};
      fault.times = pick(1, 100);
      const bool of_links = fault.kind == sim::ServiceFault::Kind::link || fault.kind == sim::ServiceFault::Kind::cut;
      if (of_links && !setup.transfers) continue;
      if (of_links)
        fault.links = {{0, 0}};
      else
        fault.instances = {static_cast<std::size_t>(pick(0, instances - 1))};
      setup.faults.push_back(fault);
    }
    setup.timeout_s = pick(1, 100) * 1e-2;
    if (trial % 3 == 0) {  // they load their weights, alone in 10 ms
      setup.loads.links = {1000};
      setup.loads.instances.assign(static_cast<std::size_t>(instances), {{0, 10}});
    }
    const ServingRun run = simulate_serving(setup);
    for (const RequestState& request : run.requests) {
      ASSERT_TRUE(request.stage == Stage::done || request.stage == Stage::rejected || request.stage == Stage::lost);
      retried += request.retries;
    }
    expect_stages_add_up(run);
    // Where the other side shows a token it does so again after every failure.
    if (setup.transfers && !setup.transfers->prefill_answers_first()) expect_answers_are_kept(setup, run);
    apart += setup.transfers ? 1 : 0;
    for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
    if (HasFailure()) return;
  }
  EXPECT_GT(retried, 5'000);
  EXPECT_GT(apart, 1'000);
}

// A run of passes as one activity, cut where somebody comes, is the passes one by one.
TEST(NothingIsLost, when_runs_of_passes_are_one_activity) {
  std::mt19937 random(101);
  for (int trial = 0; trial < 2'500; ++trial) {
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

// Prompts that begin as earlier ones: what is found of them, against a cache that is written out; what is not computed and not sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "config/node.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/prefix_cache.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::tests {
namespace {

using workloads::BlockId;
using Prompt = std::vector<BlockId>;

// A cache of leading blocks as one would write it down: who uses each, and when it was used last.
class WrittenOutCache {
 public:
  struct Block {
    BlockId block = 0;
    std::set<int> users;
    int used = 0;
    std::size_t depth = 0;
  };
  [[nodiscard]] std::size_t found(const Prompt& prompt) const {
    std::size_t count = 0;
    while (count < prompt.size() && at(prompt[count]) != nullptr) ++count;
    return count;
  }
  void use(int who, const Prompt& prompt, std::size_t blocks) {
    for (std::size_t i = 0; i < blocks; ++i) {
      if (at(prompt[i]) == nullptr) blocks_.push_back({prompt[i], {}, 0, i});
      const_cast<Block*>(at(prompt[i]))->users.insert(who);
    }
  }
  void leave(int who, int now) {
    for (Block& one : blocks_) {
      if (one.users.erase(who) > 0) one.used = now;
    }
  }
  // The one of those that nobody uses that was used longest ago, and of one prompt the deepest.
  void keep(std::size_t idle) {
    for (;;) {
      const auto unused = [](const Block& one) { return one.users.empty(); };
      if (static_cast<std::size_t>(std::ranges::count_if(blocks_, unused)) <= idle) return;
      auto oldest = blocks_.end();
      for (auto one = blocks_.begin(); one != blocks_.end(); ++one) {
        if (!unused(*one)) continue;
        if (oldest == blocks_.end() || one->used < oldest->used || (one->used == oldest->used && one->depth > oldest->depth)) oldest = one;
      }
      blocks_.erase(oldest);
    }
  }
  [[nodiscard]] std::int64_t taken() const {
    return std::ranges::count_if(blocks_, [](const Block& one) { return !one.users.empty(); });
  }

 private:
  [[nodiscard]] const Block* at(BlockId block) const {
    const auto one = std::ranges::find(blocks_, block, &Block::block);
    return one == blocks_.end() ? nullptr : &*one;
  }
  std::vector<Block> blocks_;
};

// Prompts along the ways of a random tree.
std::vector<Prompt> random_prompts(std::mt19937& random, int count, int longest, int kinds) {
  workloads::PromptBlocks blocks;
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<Prompt> out;
  for (int i = 0; i < count; ++i) {
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(pick(0, longest)));
    for (std::uint64_t& hash : hashes) hash = static_cast<std::uint64_t>(pick(0, kinds - 1));
    blocks.add(hashes);
    const auto prompt = blocks.of(static_cast<std::size_t>(i));
    out.emplace_back(prompt.begin(), prompt.end());
  }
  return out;
}

// Requests that come, have more and more of their prompts computed, and go, in any order; pages that others need meanwhile.
TEST(APrefixCache, is_the_one_written_out) {
  std::mt19937 random(31);
  constexpr std::int64_t block_pages = 4;
  int found = 0;
  for (int trial = 0; trial < 2'000; ++trial) {
    SCOPED_TRACE(trial);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const std::vector<Prompt> prompts = random_prompts(random, 12, 6, 2);
    sim::PrefixCache cache(block_pages);
    WrittenOutCache expected;
    std::map<sim::RequestId, std::size_t> here;  // and how many of its blocks it has
    std::int64_t taken = 0;                      // pages, of blocks that somebody uses
    for (int step = 1; step <= 60; ++step) {
      const auto id = static_cast<sim::RequestId>(pick(0, 11));
      const Prompt& prompt = prompts[id];
      const auto at = here.find(id);
      ASSERT_EQ(cache.found(prompt), static_cast<std::int64_t>(expected.found(prompt)));
      if (at == here.end()) {
        const std::size_t count = expected.found(prompt);
        found += static_cast<int>(count);
        here[id] = count;
        taken += static_cast<std::int64_t>(count) * block_pages - cache.hold(id, prompt);
        expected.use(static_cast<int>(id), prompt, count);
      } else if (at->second < prompt.size() && pick(0, 2) > 0) {
        const std::size_t count = at->second + static_cast<std::size_t>(pick(1, static_cast<int>(prompt.size() - at->second)));
        taken += static_cast<std::int64_t>(count - at->second) * block_pages - cache.add(id, prompt, static_cast<std::int64_t>(count));
        expected.use(static_cast<int>(id), prompt, count);
        at->second = count;
      } else {
        taken -= static_cast<std::int64_t>(at->second) * block_pages - cache.drop(id, prompt);
        expected.leave(static_cast<int>(id), step);
        here.erase(at);
      }
      ASSERT_EQ(taken, expected.taken() * block_pages);
      const int idle = pick(0, 8);
      cache.keep_within(idle * block_pages + pick(0, 3));
      expected.keep(static_cast<std::size_t>(idle));
    }
  }
  EXPECT_GT(found, 10'000);
}

sim::ServingSetup one_after_another(const std::vector<Prompt>& prompts, int block, const std::vector<int>& ends) {
  sim::ServingSetup setup;
  setup.pools = {prompt_servers(1, 1e-3)};
  auto blocks = std::make_shared<workloads::PromptBlocks>(block);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    blocks->add(std::vector<std::uint64_t>(prompts[i].begin(), prompts[i].end()));
    setup.requests.push_back({100.0 * static_cast<double>(i), {static_cast<int>(prompts[i].size()) * block + ends[i], 1}});
  }
  setup.arrivals.kind = workloads::Arrivals::trace;
  setup.pools.front().rules.page = block;
  setup.pools.front().rules.blocks = blocks;
  return setup;
}

// Prompts one at a time, in caches of any size: what each finds is in the blocks used last, and it waits for the rest alone.
TEST(APrefixCache, of_an_instance_keeps_what_was_used_last) {
  std::mt19937 random(32);
  int found = 0, lost = 0;
  for (int trial = 0; trial < 500; ++trial) {
    SCOPED_TRACE(trial);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const int block = 8;
    const std::vector<Prompt> prompts = random_prompts(random, 30, 8, 2);
    std::vector<int> ends(prompts.size());
    for (int& end : ends) end = pick(1, block - 1);  // at least a token is new
    sim::ServingSetup setup = one_after_another(prompts, block, ends);
    const std::int64_t pages = pick(9, 40);
    setup.pools.front().rules.pages = pages;
    const sim::ServingRun run = simulate_serving(setup);
    WrittenOutCache expected, endless;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto blocks = static_cast<std::int64_t>(expected.found(prompts[i]));
      EXPECT_EQ(run.requests[i].reused, blocks * block);
      EXPECT_NEAR(run.requests[i].ttft_s(), 1e-3 * static_cast<double>(run.requests[i].tokens.input - blocks * block), 1e-9);
      found += blocks > 0 ? 1 : 0;
      lost += endless.found(prompts[i]) > static_cast<std::size_t>(blocks) ? 1 : 0;
      const auto now = static_cast<int>(i) + 1;
      expected.use(now, prompts[i], static_cast<std::size_t>(blocks));  // who holds them keeps them while its own pages are found
      expected.keep(static_cast<std::size_t>(pages - static_cast<std::int64_t>(prompts[i].size()) - 1));
      for (WrittenOutCache* cache : {&expected, &endless}) {
        cache->use(now, prompts[i], prompts[i].size());
        cache->leave(now, now);
      }
    }
  }
  EXPECT_GT(found, 5'000);
  EXPECT_GT(lost, 1'000);
}

// A prompt that is known to its last token has its last page computed again.
TEST(APrefixCache, computes_a_page_of_every_prompt) {
  sim::ServingSetup setup = one_after_another({{1, 2}, {1, 2}, {1, 2}}, 16, {0, 0, 1});
  setup.pools.front().rules.page = 4;
  const sim::ServingRun run = simulate_serving(setup);
  EXPECT_EQ(run.requests[0].reused, 0);
  EXPECT_EQ(run.requests[1].reused, 28);
  EXPECT_NEAR(run.requests[1].ttft_s(), 4e-3, 1e-12);
  EXPECT_EQ(run.requests[2].reused, 32);
}

// Where no two prompts begin alike nothing changes.
TEST(APrefixCache, changes_nothing_for_strangers) {
  sim::ServingSetup setup = one_after_another({{1, 2}, {3, 4, 5}, {6}, {7, 8}}, 16, {3, 1, 0, 5});
  for (std::size_t i = 0; i < setup.requests.size(); ++i) setup.requests[i].arrival_s = 0.01 * static_cast<double>(i);
  setup.pools.front().rules.pages = 6;
  const sim::ServingRun with = simulate_serving(setup);
  setup.pools.front().rules.blocks = nullptr;
  const sim::ServingRun without = simulate_serving(setup);
  for (std::size_t i = 0; i < with.requests.size(); ++i) EXPECT_EQ(with.requests[i].last_s, without.requests[i].last_s);
}

// Two conversations that take turns in coming: each stays where its cache is, although turns alone would send it to the other instance.
TEST(APrefixCache, is_looked_for_by_the_router) {
  const Prompt one{1, 2, 3, 4}, other{5, 6, 7, 8}, none{};
  sim::ServingSetup setup = one_after_another({one, other, none, one, other, none, one, other}, 16, {1, 1, 1, 1, 1, 1, 1, 1});
  setup.pools.front().instances = 2;
  for (const auto& [router, times] : {std::pair{"prefix", 4}, {"round-robin", 2}}) {
    setup.prompt_router = router;
    int found = 0;
    for (const sim::RequestState& request : simulate_serving(setup).requests) found += request.reused == 64 ? 1 : 0;
    EXPECT_EQ(found, times) << router;
  }
}

// What the decoding side has is not sent: a byte a token over a link of a byte a millisecond. In chunks of 16 tokens by three layers, a
// millisecond a token, the last 18 of 50 begin to leave when 32 and a third of the next 16 are computed, and the link is not idle from then
// on.
TEST(APrefixCache, of_the_decoding_side_saves_the_hand_over) {
  for (const bool by_chunks : {false, true}) {
    sim::ServingSetup setup = one_after_another({{1, 2}, {1, 2, 3}, {4}}, 16, {1, 2, 3});
    sim::PoolSetup decode = setup.pools.front();
    decode.rules.role = sim::Role::decode;
    setup.pools.front().rules.blocks = nullptr;
    setup.pools.front().rules.tokens = 16;
    setup.pools.front().rules.chunked_prefill = by_chunks;
    setup.pools.push_back(decode);
    setup.transfers = std::make_shared<OneLink>(OneLink::Habits{.by_chunks = by_chunks, .layers = by_chunks ? 3 : 1});
    const sim::ServingRun run = simulate_serving(setup);
    EXPECT_EQ(run.requests[0].there, 0);
    EXPECT_EQ(run.requests[1].there, 32);
    EXPECT_EQ(run.requests[2].there, 0);
    EXPECT_NEAR(run.requests[0].transfer_bytes, 33, 1e-9);
    EXPECT_NEAR(run.requests[1].transfer_bytes, 18, 1e-9);
    EXPECT_NEAR(run.requests[2].transfer_bytes, 19, 1e-9);
    const double transferring_s = run.requests[1].spent_s[static_cast<std::size_t>(sim::Stage::transferring)];
    EXPECT_NEAR(transferring_s, by_chunks ? (32 + 16 / 3.0 + 18 - 50) * 1e-3 : 18e-3, 1e-9);
  }
}

// The conversations that come with the program, at a twentieth of the side's capacity: who comes is in nobody's way. Caches of instances
// that take turns find what the formula says they do, those behind a router that looks for it a little less than one cache for all would
// (the second of two that come together is sent elsewhere).
TEST(APrefixCache, saves_what_the_formula_says) {
  for (const auto& [router, share_within, ttft_within] : {std::tuple{"round-robin", 1e-12, 0.12}, {"prefix", 0.1, 0.05}}) {
    const std::string pool = "instances: 4, parallel: {tp: 4}, precision: {compute: fp8, weights: fp8, kv: fp8}, prefix_cache: true}";
    const std::string text =
        std::string("model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm-mooncake\nserving:\n  pools:\n") +
        "    p: {role: prefill, " + pool + "\n    d: {role: decode, " + pool + "\n  router: {prefill: " + router + ", decode: " + router +
        "}\n  load: {arrivals: {poisson: 0.5 /s}, input: {from: " + "mooncake-conversation-prefixes}, output: {from: trace}, warmup: 0}\n";
    const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
    const sim::Deployment deployment = deploy(job);
    const sim::ServingSetup setup = setup_of(job, deployment);
    const sim::ServingResult simulated = result_of(job, setup, simulate_serving(setup)),
                             formula = predict_serving(job, deployment, sim::moments_of(job.load, job.seed).input).result;
    EXPECT_GT(formula.pools[0].prefix_share, 0.08) << router;
    EXPECT_NEAR(simulated.pools[0].prefix_share, formula.pools[0].prefix_share, share_within * formula.pools[0].prefix_share) << router;
    EXPECT_NEAR(simulated.ttft.mean_s, formula.ttft.mean_s, ttft_within * formula.ttft.mean_s) << router;
    EXPECT_NEAR(simulated.kv_transfer_bytes, formula.kv_transfer_bytes, 0.02 * formula.kv_transfer_bytes) << router;
  }
}

}  // namespace
}  // namespace rehearse::tests

// Pools that take prompts of different lengths: who goes where, what the formula says of it, and when `tune` divides them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <tuple>

#include "both_ways.hpp"
#include "deployments.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/serving/chosen_plan.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/length_split.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/room_lines.hpp"
#include "sim/serving/serving_result.hpp"
#include "sim/serving/tune.hpp"
#include "sim/serving/tune_lengths.hpp"

namespace rehearse::tests {
namespace {

using sim::LengthRange;
using sim::Role;
using sim::ServingRun;
using sim::ServingSetup;

TEST(RangesOfLengths, begin_where_shorter_ones_end) {
  const int any = std::numeric_limits<int>::max();
  EXPECT_EQ(sim::length_ranges({0, 500, 2000, 500}), (std::vector<LengthRange>{{2000, any}, {0, 500}, {500, 2000}, {0, 500}}));
  EXPECT_EQ(sim::length_ranges({0, 0}), (std::vector<LengthRange>{{0, any}, {0, any}}));
}

sim::PoolSetup pool_for(Role role, LengthRange prompts, int instances = 1) {
  sim::InstanceRules rules;
  rules.role = role;
  rules.pages = 100'000;
  rules.page = 1;
  rules.prompts = prompts;
  return {"pool", rules, std::make_shared<ConstantPrice>(1e-5, 1e-3), instances};
}

double prompt_tokens(const ServingRun& run, std::size_t pool) {
  double sum = 0;
  for (const sim::InstanceUse& use : run.pools[pool].instances) sum += use.prompt_tokens;
  return sum;
}

double answer_tokens(const ServingRun& run, std::size_t pool) {
  double sum = 0;
  for (const sim::InstanceUse& use : run.pools[pool].instances) sum += use.answer_tokens;
  return sum;
}

// Every prompt is computed where its length goes, all of them once, and their answers are written there.
TEST(PromptsByLength, all_go_where_their_length_is_taken) {
  ServingSetup setup;
  setup.pools = {pool_for(Role::both, {0, 500}, 2), pool_for(Role::both, {500, 2000}), pool_for(Role::both, {2000})};
  setup.prompt_router = "by-length";
  std::mt19937 random(3);
  double tokens[3] = {0, 0, 0}, answers[3] = {0, 0, 0}, at_s = 0;
  for (int i = 0; i < 3000; ++i) {
    const int input = std::uniform_int_distribution(1, 4000)(random), output = std::uniform_int_distribution(1, 30)(random);
    setup.requests.push_back({at_s += std::exponential_distribution(40.0)(random), {input, output}});
    const std::size_t pool = input <= 500 ? 0 : input <= 2000 ? 1 : 2;
    tokens[pool] += input;
    answers[pool] += output;
  }
  const ServingRun run = simulate_serving(setup);
  for (std::size_t pool = 0; pool < 3; ++pool) {
    EXPECT_EQ(prompt_tokens(run, pool), tokens[pool]);
    EXPECT_EQ(answer_tokens(run, pool), answers[pool]);
  }
  for (const sim::RequestState& request : run.requests) EXPECT_EQ(request.generated, request.tokens.output);
}

// Caches go to the pool of their prompt's length too. The long one that finds no room keeps back the long one behind it, not the short one:
// of 1,000 pages the first long cache takes 900 until its 1,000 tokens of answer are written, the other two would need as many.
TEST(PromptsByLength, wait_for_their_own_room_alone) {
  ServingSetup setup;
  setup.pools = {pool_for(Role::prefill, {}), pool_for(Role::decode, {0, 500}), pool_for(Role::decode, {500})};
  setup.pools[2].rules.pages = 1900;
  setup.pools[2].rules.overflow = sim::Overflow::reserve;
  setup.decode_router = "by-length";
  setup.requests = {{0, {900, 1000}}, {0, {900, 2}}, {0, {900, 2}}, {0, {100, 2}}};
  setup.transfers = std::make_shared<OneLink>(OneLink::Habits{.bytes_per_s = 1e6});
  const ServingRun run = simulate_serving(setup);
  EXPECT_LT(run.requests[3].last_s, 0.1);
  EXPECT_GT(run.requests[1].last_s, 1);
  EXPECT_GE(run.requests[2].last_s, run.requests[1].last_s);
  EXPECT_EQ(answer_tokens(run, 1), 2);
  EXPECT_EQ(answer_tokens(run, 2), 1004);
}

// Of those that wait for room the first to have come is next, of the lines that are open; who has gone is not asked.
TEST(RoomLines, go_in_the_order_in_which_their_requests_came) {
  sim::RoomLines lines;
  for (sim::RequestId id = 0; id < 6; ++id) lines.push(id, {id % 2 == 0, id % 2 == 1});
  EXPECT_EQ(lines.lines(), 2U);
  EXPECT_EQ(lines.front(*lines.next({})), 0U);
  EXPECT_EQ(lines.front(*lines.next({true, false})), 1U);
  lines.erase(1);
  lines.pop(*lines.next({}));
  EXPECT_EQ(lines.front(*lines.next({})), 2U);
  EXPECT_EQ(lines.front(*lines.next({true})), 3U);
  EXPECT_FALSE(lines.next({true, true}));
  for (sim::RequestId id = 2; id < 6; ++id) lines.erase(id);
  EXPECT_TRUE(lines.empty());
}

// While the only instance for short prompts is away they go to the others, and nothing is lost.
TEST(PromptsByLength, go_elsewhere_while_theirs_is_away) {
  ServingSetup setup;
  setup.pools = {pool_for(Role::both, {0, 500}), pool_for(Role::both, {500})};
  setup.prompt_router = "by-length";
  for (int i = 0; i < 100; ++i) setup.requests.push_back({i * 0.1, {i % 2 == 0 ? 100 : 1000, 5}});
  sim::ServiceFault& away = setup.faults.emplace_back();
  away.instances = {0};
  away.from_s = 1.95;
  away.for_s = 3;
  const ServingRun run = simulate_serving(setup);
  EXPECT_GT(prompt_tokens(run, 1), 50 * 1000);
  EXPECT_GT(prompt_tokens(run, 0), 0);
  EXPECT_GE(prompt_tokens(run, 0) + prompt_tokens(run, 1), 50 * 1100);
  for (const sim::RequestState& request : run.requests) EXPECT_EQ(request.generated, 5);
}

// Prompts of 400 and of 4,000 tokens, two of three short ones, in no order.
class TwoLengths : public testing::Test {
 protected:
  TwoLengths() { write(3); }
  // One of so many is long.
  void write(unsigned one_of) const {
    std::ofstream out(file_);
    out << "num_prefill_tokens,num_decode_tokens\n";
    std::mt19937 random(11);
    for (int i = 0; i < 5000; ++i) out << (random() % one_of == 0 ? "4000,60\n" : "400,120\n");
  }
  ~TwoLengths() override { std::filesystem::remove(file_); }

  [[nodiscard]] std::string load(const std::string& arrivals, int requests) const {
    return fmt::format("  load: {{arrivals: {{{}}}, input: {{from: {}}}, output: {{from: trace}}, requests: {}}}\n", arrivals,
                       file_.string(), requests);
  }
  [[nodiscard]] static sim::ServingJob job(const std::string& pools, const std::string& rest,
                                           const std::string& cluster = "dgx-h100-ndr400") {
    const std::string text =
        fmt::format("model: llama3-8b\ncluster: {}\nsoftware: vllm\nserving:\n  pools: {{{}}}\n{}", cluster, pools, rest);
    return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  }
  std::filesystem::path file_ = std::filesystem::temp_directory_path() / fmt::format("two-lengths-{}.csv", getpid());
};

// Of each length the requests are Poisson arrivals of equal prompts at pools of their own, where the formula goes pass by pass: 5 % of the
// first token and 2 % of a token, as for one pool.
TEST_F(TwoLengths, are_two_queues_by_formula) {
  for (const char* pools : {"short: {role: both, longest_prompt: 400}, long: {role: both}",
                            "short: {role: both, longest_prompt: 1000, instances: 2}, long: {role: both, parallel: {tp: 2}}"}) {
    const BothWays found = both_ways(job(pools, "  router: {prefill: by-length}\n" + load("poisson: 12 /s", 20'000)));
    EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05) << pools;
    EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.02) << pools;
  }
}

TEST_F(TwoLengths, are_two_queues_of_prompts_and_two_of_answers) {
  const BothWays found =
      both_ways(job("p: {role: prefill, longest_prompt: 400}, q: {role: prefill}, d: {role: decode, longest_prompt: 400}, "
                    "e: {role: decode}",
                    "  router: {prefill: by-length, decode: by-length}\n" + load("poisson: 12 /s", 20'000)));
  EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05);
  EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.02);
}

// Two pools for two halves of a load are two jobs of half the load each: the formula says the same of each pool.
TEST_F(TwoLengths, come_to_what_each_comes_to_alone) {
  const sim::ServingJob divided = job("short: {role: both, longest_prompt: 400}, long: {role: both}",
                                      "  router: {prefill: by-length}\n" + load("poisson: 12 /s", 5000));
  const auto result = predict_serving(divided, deploy(divided), sim::moments_of(divided.load, divided.seed).input).result;
  const double share = sim::share_within(sim::moments_of(divided.load, divided.seed), {0, 400});
  EXPECT_NEAR(share, 2 / 3.0, 0.03);
  double ttft_s = 0;
  for (const auto& [input, output, part] : {std::tuple(400, 120, share), {4000, 60, 1 - share}}) {
    const sim::ServingJob alone =
        job("all: {role: both}", fmt::format("  load: {{arrivals: {{poisson: {:.17g} /s}}, input: {}, output: {}, "
                                             "requests: 5000}}\n",
                                             12 * part, input, output));
    ttft_s += part * predict_serving(alone, deploy(alone), input).result.ttft.mean_s;
  }
  EXPECT_NEAR(result.ttft.mean_s, ttft_s, 1e-9 * ttft_s);
}

// So many clients: as many requests of each length end in a time as come, wherever they gather.
TEST_F(TwoLengths, gather_where_they_are_slow) {
  const BothWays found = both_ways(
      job("short: {role: both, longest_prompt: 400}, long: {role: both}", "  router: {prefill: by-length}\n" + load("closed: 24", 6000)));
  EXPECT_NEAR(found.formula.requests_per_s / found.simulated.requests_per_s, 1, 0.1);
  EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.35);  // clients who wait come in bunches
}

// One client's rounds are mostly of short prompts, whichever pool stands first.
TEST_F(TwoLengths, take_as_long_in_whatever_order_pools_stand) {
  const std::string rest =
      fmt::format("  router: {{prefill: by-length}}\n  load: {{arrivals: {{closed: 1}}, input: {{from: {}}}, output: 2, requests: 2000}}\n",
                  file_.string());
  const auto per_s = [&](const char* pools) { return both_ways(job(pools, rest)).formula.requests_per_s; };
  const double short_first = per_s("short: {role: prefill, longest_prompt: 400}, long: {role: prefill}, d: {role: decode}");
  const double long_first = per_s("long: {role: prefill}, short: {role: prefill, longest_prompt: 400}, d: {role: decode}");
  EXPECT_NEAR(long_first / short_first, 1, 1e-9);
}

// A pool that takes no prompts of theirs has no clients.
TEST_F(TwoLengths, leave_a_pool_alone_that_takes_neither) {
  for (const char* arrivals : {"closed: 24", "closed: 24, think: 1 s"}) {
    const BothWays found =
        both_ways(job("short: {role: both, longest_prompt: 400}, middle: {role: both, longest_prompt: 2000}, long: {role: both}",
                      "  router: {prefill: by-length}\n" + load(arrivals, 3000)));
    EXPECT_EQ(found.formula.pools[1].batch, 0);
    EXPECT_EQ(found.simulated.pools[1].batch, 0);
  }
}

// A split by trying every division of the buckets among all plans.
struct Tried {
  double cost = INFINITY;
  int gpus = 0;
};
void try_all(const sim::SplitProblem& problem, std::size_t from, std::vector<int> left, Tried now, Tried& best) {
  if (from == problem.buckets) {
    if (std::tuple(now.cost, now.gpus) < std::tuple(best.cost, best.gpus)) best = now;
    return;
  }
  for (std::size_t to = from + 1; to <= problem.buckets; ++to) {
    for (std::size_t plan = 0; plan < problem.plans.size(); ++plan) {
      const sim::SidePlan& side = problem.plans[plan];
      const int number = problem.least_instances(plan, from, to, left[side.part] / side.gpus);
      if (number == sim::no_number) continue;
      std::vector<int> rest = left;
      rest[side.part] -= number * side.gpus;
      try_all(problem, to, rest, {now.cost + number * side.cost, now.gpus + number * side.gpus}, best);
    }
  }
}

TEST(TheBestSplit, is_that_of_all) {
  std::mt19937 random(5);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  int found = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    sim::SplitProblem problem;
    problem.buckets = static_cast<std::size_t>(draw(1, 4));
    const int prices[2] = {draw(1, 4), draw(1, 4)};
    problem.inventory = {draw(0, 12), draw(0, 12)};
    for (int plan = draw(1, 4); plan > 0; --plan) {
      const auto part = static_cast<std::size_t>(draw(0, 1));
      const int gpus = 1 << draw(0, 2);
      problem.plans.push_back({part, gpus, static_cast<double>(gpus * prices[part])});
    }
    std::vector<int> needed;  // by plan, first and last bucket
    for (std::size_t i = 0; i < problem.plans.size() * 25; ++i) needed.push_back(draw(0, 5) == 0 ? sim::no_number : draw(1, 6));
    problem.least_instances = [&](std::size_t plan, std::size_t from, std::size_t to, int most) {
      const int number = needed[plan * 25 + from * 5 + to];
      return number <= most ? number : sim::no_number;
    };
    Tried best;
    try_all(problem, 0, problem.inventory, {0, 0}, best);
    const std::vector<sim::Split> splits = best_splits(problem);
    ASSERT_EQ(splits.empty(), !std::isfinite(best.cost)) << trial;
    if (splits.empty()) continue;
    ++found;
    ASSERT_EQ(splits.front().cost, best.cost) << trial;
    ASSERT_EQ(splits.front().gpus, best.gpus) << trial;
    std::size_t next = 0;
    for (const sim::SplitPiece& piece : splits.front().pieces) {
      EXPECT_EQ(piece.from, next);
      next = piece.to;
    }
    EXPECT_EQ(next, problem.buckets);
  }
  EXPECT_GT(found, 3000);
}

const char* const market =
    "{parts: {rich: {cluster: dgx-h100-ndr400, nodes: 2}, wide: {cluster: h20-roce-4x400, nodes: 2}}, between: {bandwidth: 1 Gbps}}";

// An H20 computes a prompt of 4,000 tokens in nearly seven times an H100's time, which the promise leaves no room for; short ones it
// carries for an eighth of the price. No network is there that would let it decode alone.
TEST_F(TwoLengths, are_divided_where_the_cheap_gpus_are_too_slow_for_long_ones) {
  write(16);
  const std::string rest = load("poisson: 60 /s", 3000) +
                           "  slo: {ttft: 450 ms, tpot: 40 ms, percentile: 0.98}\n"
                           "tune: {inventory: {rich: 16, wide: 16}, price: {rich: 8 /h, wide: 1 /h}, tp: [1], lengths: [400]}\n";
  const sim::ServingJob tuned = job("a: {role: both, part: rich}, b: {role: both, part: wide}", rest, market);
  const sim::ServingTuning tuning = tune_serving(tuned, [](double) {});
  ASSERT_TRUE(tuning.chosen);
  const sim::TunedDeployment& chosen = tuning.best[*tuning.chosen];
  EXPECT_NE(chosen.kind.find("prompts by length"), std::string::npos) << chosen.kind;
  EXPECT_TRUE(chosen.simulated->kept);
  for (const sim::Pool& pool : chosen.pools) {
    if (pool.role != Role::decode) {
      EXPECT_EQ(pool.longest_prompt > 0, pool.part == 1) << pool.name;
    }
  }
  for (const sim::TunedDeployment& one : tuning.best) {
    if (one.kind.find("prompts by length") == std::string::npos) {
      EXPECT_GT(one.cost_per_s, chosen.cost_per_s) << one.kind;
    }
  }
  // plan.yaml is a job that says the same.
  const sim::ServingJob again = sim::read_serving_job(config::Node::load_text(chosen_plan(tuned, tuning), "plan.yaml"), "plan");
  EXPECT_EQ(again.pools.size(), chosen.pools.size());
  EXPECT_EQ(again.prompt_router, "by-length");
  const BothWays found = both_ways(again);
  EXPECT_DOUBLE_EQ(found.formula.promised_ttft_s, chosen.ttft_s);
  EXPECT_DOUBLE_EQ(found.simulated.promised_ttft_s, chosen.simulated->promised_ttft_s);
}

// Prompts of 400 and 4,000 tokens: two ranges, however many lengths are given. One that has no prompts is no load.
TEST_F(TwoLengths, are_divided_in_two_wherever_else_lengths_are_given) {
  const sim::ServingJob both = job("all: {role: both}", load("poisson: 12 /s", 3000));
  const sim::LoadMoments moments = sim::moments_of(both.load, both.seed);
  sim::ServingTuneSpec spec;
  spec.lengths = {100, 400, 1000, 2000, 4000, 8000};
  EXPECT_EQ(sim::lengths_to_divide_at(spec, moments), std::vector<int>{400});
  EXPECT_EQ(sim::why_undivided(spec, moments), "");
  spec.lengths = {100, 4000};
  EXPECT_EQ(sim::lengths_to_divide_at(spec, moments), std::vector<int>{});
  EXPECT_NE(sim::why_undivided(spec, moments).find("of 400 to 4000 tokens"), std::string::npos);
  spec.lengths = {400};
  spec.goals = {sim::ServingGoal::goodput_per_cost};
  EXPECT_NE(sim::why_undivided(spec, moments).find("goodput-per-cost"), std::string::npos);
}

// Short prompts find other shares of themselves than long ones: each pool has caches of its own.
TEST(PromptsByLength, find_what_their_own_pool_keeps) {
  const sim::ServingJob job =
      sim::read_serving_job(config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
                                                    "  pools: {short: {role: both, prefix_cache: true, longest_prompt: 6000},\n"
                                                    "          long: {role: both, prefix_cache: true}}\n"
                                                    "  router: {prefill: by-length}\n"
                                                    "  load: {arrivals: {poisson: 0.5 /s}, input: {from: mooncake-conversation-prefixes},\n"
                                                    "         output: {from: trace}, warmup: 0}\n",
                                                    "job.yaml"),
                            "job");
  const BothWays found = both_ways(job);
  ASSERT_EQ(found.formula.pools.size(), 2U);
  for (std::size_t pool = 0; pool < 2; ++pool)
    EXPECT_NEAR(found.formula.pools[pool].prefix_share, found.simulated.pools[pool].prefix_share, 0.02) << pool;
}

// One length is never divided; nor is anything that nobody asked for.
TEST_F(TwoLengths, are_not_divided_where_there_is_but_one) {
  const std::string promise = "  slo: {ttft: 300 ms, tpot: 40 ms}\n",
                    tune = "tune: {inventory: {rich: 16, wide: 16}, price: {rich: 3 /h, wide: 1 /h}, tp: [1, 2]";
  for (const std::string& rest :
       {"  load: {arrivals: {poisson: 40 /s}, input: 400, output: 100, requests: 1000}\n" + promise + tune + ", lengths: auto}\n",
        load("poisson: 40 /s", 3000) + promise + tune + "}\n"}) {
    for (const sim::TunedDeployment& one :
         tune_serving(job("a: {role: both, part: rich}, b: {role: both, part: wide}", rest, market), [](double) {}).best) {
      EXPECT_EQ(one.kind.find("prompts by length"), std::string::npos) << one.kind;
    }
  }
}

TEST(PromptsByLength, without_a_pool_are_refused) {
  const auto refusal = [](const std::string& pools, const std::string& rest) {
    const std::string text = fmt::format(
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n{}  router: {{prefill: by-length}}\n"
        "  load: {{arrivals: {{poisson: 2 /s}}, input: 400, output: 10, requests: 10}}\n{}",
        pools, rest);
    try {
      static_cast<void>(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"));
    } catch (const config::InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto has = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  const std::string none = refusal("    a: {role: both, longest_prompt: 100}\n    b: {role: both, longest_prompt: 900}\n", "");
  EXPECT_TRUE(has(none, "job.yaml:7:37") && has(none, "no pool of role both takes prompts of more than 900 tokens")) << none;
  const std::string good = "    a: {role: both, longest_prompt: 100}\n    b: {role: both}\n";
  const std::string falling = refusal(good, "tune: {lengths: [400, 300]}\n");
  EXPECT_TRUE(has(falling, "job.yaml:10:") && has(falling, "lengths rise: 300 does not come behind 400")) << falling;
  const std::string empty = refusal(good, "tune: {lengths: []}\n");
  EXPECT_TRUE(has(empty, "job.yaml:10:") && has(empty, "or auto")) << empty;
  const std::string word = refusal(good, "tune: {lengths: often}\n");
  EXPECT_TRUE(has(word, "job.yaml:10:") && has(word, "auto")) << word;
  EXPECT_EQ(refusal(good, "tune: {lengths: [400, 500]}\n"), "accepted");
}

}  // namespace
}  // namespace rehearse::tests

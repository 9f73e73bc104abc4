// Deployments whose best kind is known: different GPUs where each side has its own strength and price, one kind where it is better at both,
// and none over a network that is too narrow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "sim/kind/job_kind.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/serving_report.hpp"
#include "sim/serving/tune.hpp"
#include "sim/serving/tune_candidates.hpp"
#include "tests/serving/every_deployment.hpp"

namespace rehearse::tests {
namespace {

struct Market {
  const char *rich_price = "3 /h", *wide_price = "1 /h", *between = "1.6 Tbps";
  const char *more = "", *inventory = "{rich: 32, wide: 64}", *confirm = "1";
};

std::string market_job(const Market& market) {
  return fmt::format(
      "model: llama3-70b\n"
      "cluster: {{parts: {{rich: {{cluster: dgx-h100-ndr400, nodes: 4}}, wide: {{cluster: h20-roce-4x400, nodes: 8}}}}, between: "
      "{{bandwidth: {}}}}}\n"
      "software: vllm\nserving:\n"
      "  pools:\n"
      "    prefill: {{role: prefill, part: rich, precision: {{compute: fp8, weights: fp8, kv: fp8}}, parallel: {{tp: 4}}}}\n"
      "    decode: {{role: decode, part: wide, precision: {{compute: fp8, weights: fp8, kv: fp8}}, parallel: {{tp: 4}}}}\n"
      "  load: {{arrivals: {{poisson: 12 /s}}, input: 2048, output: 200, requests: 1000}}\n"
      "  slo: {{ttft: 1 s, tpot: 40 ms}}\n"
      "tune: {{inventory: {}, price: {{rich: {}, wide: {}}}, confirm: {}{}}}\n",
      market.between, market.inventory, market.rich_price, market.wide_price, market.confirm, market.more);
}

sim::ServingTuning tuned(const Market& market) {
  return tune_serving(sim::read_serving_job(config::Node::load_text(market_job(market), "job.yaml"), "job"), [](double) {});
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

// The cheapest is on the front, and none of the front is beaten by what the search for the cheapest has kept.
TEST(TheFrontOfDeployments, begins_with_the_cheapest) {
  const sim::ServingTuning tuning = tuned({.more = ", goal: [cost, ttft, tpot], keep: 30"});
  ASSERT_GT(tuning.front.size(), 10U);
  EXPECT_DOUBLE_EQ(tuning.front.front().cost_per_s, tuning.best.front().cost_per_s);
  for (const sim::TunedDeployment& one : tuning.best) {
    EXPECT_TRUE(std::ranges::any_of(tuning.front, [&](const sim::TunedDeployment& other) {
      constexpr double rounding = 1 + 1e-12;
      return other.cost_per_s <= one.cost_per_s * rounding && other.ttft_s <= one.ttft_s * rounding &&
             other.tpot_s <= one.tpot_s * rounding;
    })) << one.kind;
    EXPECT_LE(one.ttft_s, 1) << one.kind;
    EXPECT_LE(one.tpot_s, 0.04) << one.kind;
  }
}

TEST(TheFrontOfDeployments, of_one_goal_is_that_against_cost) {
  const sim::ServingTuning tuning = tuned({.more = ", goal: tpot"});
  ASSERT_GT(tuning.best.size(), 1U);
  EXPECT_EQ(tuning.best.front().tpot_s, tuning.front.front().tpot_s);
  for (std::size_t i = 1; i < tuning.front.size(); ++i) {
    EXPECT_GT(tuning.front[i].tpot_s, tuning.front[i - 1].tpot_s);
    EXPECT_LT(tuning.front[i].cost_per_s, tuning.front[i - 1].cost_per_s);
  }
}

bool has_several_in_a_role(const sim::TunedDeployment& one) { return one.kind.find("several plans in a role") != std::string::npos; }

// Where one kind of GPU runs out, another one helps in the same role; every instance is counted with what it carries alone, and the
// simulation says whether they keep the promise together.
TEST(SeveralKindsInARole, are_taken_where_one_runs_out) {
  const sim::ServingTuning tuning = tuned({.inventory = "{rich: 3, wide: 32}"});
  int several = 0;
  for (const sim::TunedDeployment& one : tuning.best) {
    if (!has_several_in_a_role(one)) continue;
    ++several;
    double cheapest = INFINITY, sum = 0;
    for (const sim::TunedDeployment& other : tuning.best) {
      if (!has_several_in_a_role(other) && other.kind.substr(0, 5) == one.kind.substr(0, 5))
        cheapest = std::min(cheapest, other.cost_per_s);
    }
    EXPECT_LT(one.cost_per_s, cheapest) << one.kind;
    int rich = 0;
    std::set<std::string> names;
    for (const sim::Pool& pool : one.pools) {
      sum += pool.gpus() * pool.price_per_s;
      rich += pool.part == 0 ? pool.gpus() : 0;
      names.insert(pool.name);
    }
    EXPECT_EQ(names.size(), one.pools.size());
    EXPECT_DOUBLE_EQ(sum, one.cost_per_s);
    EXPECT_LE(rich, 3);
    EXPECT_LE(one.ttft_s, 1);
    EXPECT_LE(one.tpot_s, 0.04);
    ASSERT_TRUE(one.simulated) << one.kind;
    EXPECT_EQ(one.simulated->finished, one.simulated->counted);
  }
  EXPECT_GT(several, 0);
}

// None of their instances can be spared, by predict.
TEST(SeveralKindsInARole, have_no_instance_too_many) {
  const std::string text = market_job({.inventory = "{rich: 3, wide: 32}", .confirm = "0"});
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  int spared = 0;
  for (const sim::TunedDeployment& one : tune_serving(job, [](double) {}).best) {
    if (!has_several_in_a_role(one)) continue;
    for (std::size_t pool = 0; pool < one.pools.size(); ++pool) {
      sim::TunedDeployment fewer = one;
      if (--fewer.pools[pool].instances == 0) fewer.pools.erase(fewer.pools.begin() + static_cast<std::ptrdiff_t>(pool));
      const auto has = [&](sim::Role role) { return std::ranges::find(fewer.pools, role, &sim::Pool::role) != fewer.pools.end(); };
      if (!has(sim::Role::both) && !(has(sim::Role::prefill) && has(sim::Role::decode))) continue;
      const sim::ServingJob plan = with_pools(job, fewer, 12);
      EXPECT_FALSE(predicted_promise(plan, deploy(plan)).keeps(job.promise)) << one.kind << pool;
      ++spared;
    }
  }
  EXPECT_GT(spared, 1);
}

// Of few rich GPUs and few wide ones some of both carry more than either kind in a role does.
TEST(SeveralKindsInARole, carry_more) {
  const sim::ServingTuning tuning = tuned({.more = ", goal: goodput, tp: [4]", .inventory = "{rich: 4, wide: 16}", .confirm = "0"});
  const auto several = std::ranges::find_if(tuning.best, has_several_in_a_role);
  ASSERT_NE(several, tuning.best.end());
  ASSERT_FALSE(tuning.notes.empty());
  EXPECT_NE(tuning.notes.back().find("several plans in a role carry"), std::string::npos) << tuning.notes.back();
}

TEST(SeveralKindsInARole, take_the_fewest_gpus_where_those_are_asked_for) {
  const sim::ServingTuning tuning = tuned({.more = ", goal: gpus, tp: [4]", .inventory = "{rich: 8, wide: 16}", .confirm = "0"});
  ASSERT_FALSE(tuning.best.empty());
  for (const sim::TunedDeployment& one : tuning.best) {
    EXPECT_GE(one.gpus, tuning.best.front().gpus);
    int gpus = 0;
    for (const sim::Pool& pool : one.pools) gpus += pool.gpus();
    EXPECT_EQ(gpus, one.gpus);
  }
  for (std::size_t i = 1; i < tuning.front.size(); ++i) EXPECT_LT(tuning.front[i].cost_per_s, tuning.front[i - 1].cost_per_s);
}

// A deployment of several plans in a role is written as a job, which is simulated as it was in the search.
TEST(SeveralKindsInARole, are_written_as_a_job) {
  sim::KindRequest request;
  request.name = "job";
  request.document = config::Node::load_text(market_job({.inventory = "{rich: 4, wide: 24}"}), "job.yaml");
  request.progress = [](double) {};
  const sim::KindAnswer answer = sim::JobKindRegistry::get("serving").answer("tune", request);
  const auto& report = answer.report.get<sim::ServingReport>();
  ASSERT_TRUE(report.tuning->chosen);
  const sim::TunedDeployment& chosen = report.tuning->best[*report.tuning->chosen];
  EXPECT_TRUE(has_several_in_a_role(chosen)) << chosen.kind;
  const sim::ServingJob plan = sim::read_serving_job(config::Node::load_text(report.plan_yaml, "plan.yaml"), "plan");
  ASSERT_EQ(plan.pools.size(), chosen.pools.size());
  const sim::Deployment deployment = deploy(plan);
  const sim::ServingSetup setup = setup_of(plan, deployment);
  const sim::ServingResult simulated = result_of(plan, setup, simulate_serving(setup));
  EXPECT_EQ(simulated.ttft.mean_s, chosen.simulated->ttft.mean_s);
  EXPECT_TRUE(simulated.kept);
}

// Each pool of a role stands for its part: its software, format and limits go into the plans there.
TEST(SeveralPoolsOfARole, are_what_plans_of_their_parts_are_made_from) {
  const std::string more =
      "    slow: {role: prefill, part: wide, precision: {compute: bf16, weights: bf16, kv: bf16}, limits: {tokens: 4096}}\n";
  std::string text = market_job({.inventory = "{rich: 16, wide: 64}"});
  text.insert(text.find("    decode:"), more);
  const sim::ServingTuning tuning = tune_serving(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"), [](double) {});
  int on_wide = 0;
  for (const sim::TunedDeployment& one : tuning.best) {
    for (const sim::Pool& pool : one.pools) {
      if (pool.role != sim::Role::prefill) continue;
      on_wide += pool.part == 1 ? 1 : 0;
      EXPECT_EQ(pool.like, pool.part == 1 ? "slow" : "prefill");
      EXPECT_EQ(pool.plan.precision.kv, pool.part == 1 ? workloads::DType::bf16 : workloads::DType::fp8);
      if (pool.part == 1) {
        EXPECT_EQ(pool.habits.tokens, 4096);
      }
    }
  }
  EXPECT_GT(on_wide, 0);
}

// The highest rate: the inventory is used up, and a little more is not carried.
// A deployment that is simulated says its own highest rate; the highest of them is chosen.
TEST(TheHighestRate, is_chosen_by_simulation) {
  const sim::ServingTuning tuning = tuned({.more = ", goal: goodput, tp: [4, 8]"});
  ASSERT_TRUE(tuning.chosen);
  const double chosen = tuning.best[*tuning.chosen].simulated->goodput_per_s;
  EXPECT_GT(chosen, 10);
  for (const sim::TunedDeployment& one : tuning.best) EXPECT_LE(one.simulated ? one.simulated->goodput_per_s : 0, chosen);
}

// Passes of 16,384 tokens with stages: decoding alone in large batches, which is no graph, is priced above a mixed pass.
TEST(TheCheapestDeployment, is_found_where_mixed_passes_are_priced_below_decoding) {
  EXPECT_FALSE(tuned({.more = ", pp: [1, 2], tokens: [512, 16384]", .confirm = "0"}).best.empty());
}

TEST(Prices, that_nobody_gave_are_said) {
  EXPECT_TRUE(tuned({}).notes.empty());
  const std::string text =
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {all: {role: both, instances: 2, parallel: {tp: 1}}}\n"
      "  load: {arrivals: {poisson: 2 /s}, input: 500, output: 50, requests: 100}\n  slo: {ttft: 2 s, tpot: 100 ms}\n";
  const auto notes = [](const std::string& job) {
    return tune_serving(sim::read_serving_job(config::Node::load_text(job, "job.yaml"), "job"), [](double) {}).notes;
  };
  ASSERT_EQ(notes(text).size(), 1U);
  EXPECT_NE(notes(text).front().find("no price is given for a GPU: each counts as 1 an hour"), std::string::npos) << notes(text).front();
  EXPECT_TRUE(notes(text + "tune: {price: 2 /h}\n").empty());
}

// What tune cannot answer is refused where the job says it.
TEST(WhatTuneCannotAnswer, is_refused_at_its_place) {
  const auto refusal = [](const std::string& pool, const std::string& load, const std::string& more) {
    const std::string text =
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {all: {role: both, instances: 2" + pool +
        "}}\n  load: {arrivals: " + load + "}\n" + more;
    const config::Node document = config::Node::load_text(text, "job.yaml");
    try {
      check_tunable(sim::read_serving_job(document, "job"), document.at("serving"));
    } catch (const config::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string slo = "  slo: {ttft: 2 s}\n", load = "{poisson: 2 /s}, input: 500, output: 50, requests: 100";
  EXPECT_EQ(refusal("", load, slo), "");
  EXPECT_EQ(refusal("", load, "").substr(0, 47), "job.yaml:4:1: error: tune needs a promise to ke") << refusal("", load, "");
  EXPECT_NE(refusal("", "{closed: 4}, input: 500, output: 50, requests: 100", slo).find("job.yaml:6:20: error: tune needs requests"),
            std::string::npos)
      << refusal("", "{closed: 4}, input: 500, output: 50, requests: 100", slo);
  EXPECT_NE(refusal(", prefix_cache: true", "{trace: mooncake-conversation-prefixes}", slo)
                .find("job.yaml:5:57: error: tune knows no prefix caches"),
            std::string::npos)
      << refusal(", prefix_cache: true", "{trace: mooncake-conversation-prefixes}", slo);
}

TEST(TheHighestRate, is_where_the_inventory_ends) {
  const sim::ServingTuning most = tuned({.more = ", goal: goodput"});
  ASSERT_FALSE(most.best.empty());
  EXPECT_GT(most.rate_per_s, 100);
  const sim::ServingTuning half = tuned({.more = ", goal: goodput, tp: [8]"});
  EXPECT_LE(half.rate_per_s, most.rate_per_s * 1.002);
}

// What tune says of a deployment is what predict says of it, to the last bit, and the cheapest is that of asking predict about every one.
sim::PromisedTimes by_predict(const sim::ServingJob& job, const sim::TunedDeployment& one, double rate_per_s) {
  const sim::ServingJob plan = with_pools(job, one, rate_per_s);
  return predicted_promise(plan, deploy(plan));
}

std::string small_market(const char* load, const char* more, const char* goal) {
  return fmt::format(
      "model: llama3-8b\ncluster: {{parts: {{rich: {{cluster: dgx-h100-ndr400, nodes: 1}}, wide: {{cluster: h20-roce-4x400, nodes: 1}}}}, "
      "between: {{bandwidth: 400 Gbps}}}}\nsoftware: vllm\nserving:\n"
      "  pools:\n    prefill: {{role: prefill, part: rich}}\n    decode: {{role: decode, part: wide}}\n"
      "  load: {{{}, requests: 400}}\n  slo: {{ttft: 300 ms, tpot: 12 ms}}\n{}"
      "tune: {{inventory: {{rich: 4, wide: 6}}, price: {{rich: 3 /h, wide: 1 /h}}, tp: [1, 2], tokens: [1024, 8192], confirm: 0, keep: 4, "
      "goal: {}}}\n",
      load, more, goal);
}

constexpr const char* equal_load = "arrivals: {poisson: 9 /s}, input: 1500, output: 120";
constexpr const char* unlike_load = "arrivals: {poisson: 9 /s}, input: {uniform: [200, 2000]}, output: {uniform: [20, 300]}";
constexpr const char* early_tokens = "  transfer: {first_token: prefill}\n";

TEST(WhatTuneSays, is_what_predict_says_of_it) {
  int compared = 0;
  for (const char* load : {equal_load, unlike_load}) {
    for (const char* more : {"", early_tokens, "  transfer: {mode: chunkwise}\n", "  router: {prefill: random, decode: random}\n"}) {
      for (const char* goal : {"cost", "[cost, ttft, tpot]", "goodput"}) {
        const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(small_market(load, more, goal), "job.yaml"), "job");
        const sim::ServingTuning tuning = tune_serving(job, [](double) {});
        for (const auto* all : {&tuning.best, &tuning.front}) {
          for (const sim::TunedDeployment& one : *all) {
            const sim::PromisedTimes times = by_predict(job, one, tuning.rate_per_s);
            EXPECT_EQ(one.ttft_s, times.ttft_s) << load << more << one.kind;
            EXPECT_EQ(one.tpot_s, times.tpot_s) << load << more << one.kind;
            EXPECT_TRUE(times.keeps(job.promise)) << one.kind;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 250);
}

// Every pair and every number of both, as predict has them.
double cheapest_by_predict(const sim::ServingJob& job) {
  sim::ServingTuning counts;
  const sim::TuneSides sides(job, counts);
  double least = INFINITY;
  const auto ask = [&](std::vector<sim::Pool> pools, double cost) {
    if (cost >= least) return;
    sim::TunedDeployment one;
    one.pools = std::move(pools);
    if (by_predict(job, one, sides.load.rate_per_s).keeps(job.promise)) least = cost;
  };
  for_every_deployment(sides, ask);
  return least;
}

using LoadRateAndMore = std::tuple<const char*, double, const char*>;
class WhatTuneSaysOf : public testing::TestWithParam<LoadRateAndMore> {};

TEST_P(WhatTuneSaysOf, is_the_cheapest_of_all_by_predict) {
  const auto& [load, rate, more] = GetParam();
  std::string text = small_market(load, more, "cost");
  text.replace(text.find("9 /s"), 4, fmt::format("{} /s", rate));
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::ServingTuning tuning = tune_serving(job, [](double) {});
  double least = INFINITY;
  for (const sim::TunedDeployment& one : tuning.best) {
    if (!has_several_in_a_role(one)) least = std::min(least, one.cost_per_s);
  }
  EXPECT_EQ(least, cheapest_by_predict(job)) << text;
  EXPECT_TRUE(std::isfinite(least) || rate > 9) << text;
}

INSTANTIATE_TEST_SUITE_P(Loads, WhatTuneSaysOf,
                         testing::Combine(testing::Values(equal_load, unlike_load), testing::Values(3.0, 9.0, 30.0, 50.0),
                                          testing::Values("", early_tokens)));

// Plans that differ in limits and role share their prices: each has the memory and the passes of one that is deployed by itself.
TEST(PlansThatShareTheirPrices, are_as_if_alone) {
  const sim::ServingJob job = sim::read_serving_job(
      config::Node::load_text(market_job({.more = ", tp: [2, 4], sequences: [16, 256], tokens: [512, 8192], precision: [{compute: bf16, "
                                                  "weights: bf16, kv: bf16}, {compute: fp8, weights: fp8, kv: fp8}]"}),
                              "job.yaml"),
      "job");
  sim::ServingTuning counts;
  const sim::TuneSides sides(job, counts);
  int plans = 0;
  for (const auto& role : {std::cref(sides.together), std::cref(sides.prompts), std::cref(sides.decodes)}) {
    for (const sim::Candidates& part : role.get()) {
      for (const sim::PoolCandidate& plan : part) {
        const sim::PoolDeployment alone = deploy_pool(job, *plan.pool);
        const sim::PassShape pass{.prompt_tokens = 512, .prompt_pairs = 512 * 513 / 2.0, .chunks = 1, .decodes = 7, .context = 7000};
        EXPECT_EQ(plan.deployment.rules.pages, alone.rules.pages);
        EXPECT_EQ(plan.deployment.rules.tokens, alone.rules.tokens);
        EXPECT_EQ(plan.deployment.price->seconds(pass), alone.price->seconds(pass));
        ++plans;
      }
    }
  }
  EXPECT_GT(plans, 30);
}

// Whether one was tried is asked of all that makes a deployment another one.
TEST(Deployments, are_told_apart_by_formats_and_lengths) {
  sim::TunedDeployment one;
  one.pools.emplace_back();
  sim::TunedDeployment narrow = one, divided = one;
  narrow.pools.front().plan.precision.kv = workloads::DType::fp8;
  divided.pools.front().longest_prompt = 400;
  EXPECT_EQ(pools_key(one), pools_key(sim::TunedDeployment(one)));
  EXPECT_NE(pools_key(one), pools_key(narrow));
  EXPECT_NE(pools_key(one), pools_key(divided));
}

}  // namespace
}  // namespace rehearse::tests

// Several pools of one role: prompts on GPUs of two kinds for one decoding pool, one prompt pool for two that decode.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/node.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::tests {
namespace {

using sim::Role;
using sim::ServingRun;
using sim::ServingSetup;

sim::PoolSetup a_pool(Role role, double prompt_token_s, double pass_s = 1e-3) {
  sim::InstanceRules rules;
  rules.role = role;
  rules.pages = 10'000;
  rules.page = 1;
  return {"pool", rules, std::make_shared<ConstantPrice>(prompt_token_s, pass_s), 1};
}

// The first of two prompts of 100 tokens goes to the fast pool, the second one to the slow pool, which is idle: 0.1 and 0.2 s; then 0.1 s
// on the link, and 11 passes of 1 and 2 ms, since caches take turns as well.
TEST(PoolsOfARole, work_side_by_side) {
  ServingSetup setup;
  setup.pools = {a_pool(Role::prefill, 1e-3), a_pool(Role::prefill, 2e-3), a_pool(Role::decode, 1e-3), a_pool(Role::decode, 1e-3, 2e-3)};
  setup.prompt_router = "shortest-wait";
  setup.decode_router = "round-robin";
  setup.requests = {{0, {100, 11}}, {0, {100, 11}}};
  setup.transfers = std::make_shared<OneLink>(OneLink::Habits{});
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 0.1 + 0.1 + 0.011, 1e-12);
  EXPECT_NEAR(run.requests[1].last_s, 0.2 + 0.1 + 0.022, 1e-12);
  for (std::size_t pool = 0; pool < 2; ++pool) EXPECT_EQ(run.pools[pool].instances[0].prompt_tokens, 100);
  for (std::size_t pool = 2; pool < 4; ++pool) EXPECT_EQ(run.pools[pool].instances[0].answer_tokens, 11);
}

struct Answers {
  sim::ServingJob job;
  sim::ServingResult formula, simulated;
  ServingRun run;
};

Answers answers(const std::string& pools, const std::string& rest, const std::string& cluster = "dgx-h100-ndr400") {
  const std::string text =
      fmt::format("model: llama3-8b\ncluster: {}\nsoftware: vllm\nserving:\n  pools: {{{}}}\n{}", cluster, pools, rest);
  Answers out{.job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"), .formula = {}, .simulated = {}, .run = {}};
  const sim::Deployment deployment = deploy(out.job);
  EXPECT_EQ(deployment.misfit, "");
  const ServingSetup setup = setup_of(out.job, deployment);
  const sim::ServingPrediction prediction = predict_serving(out.job, deployment, out.job.load.input.low);
  EXPECT_EQ(prediction.overloaded, "");
  out.formula = prediction.result;
  out.run = simulate_serving(setup);
  out.simulated = result_of(out.job, setup, out.run);
  return out;
}

const std::string poisson = "  load: {arrivals: {poisson: 12 /s}, input: 2000, output: 100, requests: 2000}\n";

// Two pools of equal instances are one pool of as many, whatever routes: each request has the same times, and the formula the same means.
TEST(PoolsOfARole, that_are_alike_are_one_pool) {
  for (const char* router : {"round-robin", "random", "least-requests", "least-tokens", "least-kv", "shortest-wait"}) {
    const std::string rest = fmt::format("  router: {{prefill: {}, decode: {}}}\n", router, router) + poisson;
    const Answers one = answers("p: {role: prefill, instances: 3}, d: {role: decode, instances: 3}", rest),
                  more = answers("p: {role: prefill}, d: {role: decode, instances: 2}, q: {role: prefill, instances: 2}, e: {role: decode}",
                                 rest);
    for (std::size_t i = 0; i < one.run.requests.size(); ++i) {
      ASSERT_EQ(one.run.requests[i].first_s, more.run.requests[i].first_s) << router;
      ASSERT_EQ(one.run.requests[i].last_s, more.run.requests[i].last_s) << router;
    }
    EXPECT_NEAR(one.formula.tpot.mean_s, more.formula.tpot.mean_s, 1e-9) << router;
    EXPECT_NEAR(one.formula.kv_transfer_s, more.formula.kv_transfer_s, 1e-9) << router;
    if (router != std::string("round-robin") && router != std::string("random")) {
      EXPECT_NEAR(one.formula.ttft.mean_s, more.formula.ttft.mean_s, 1e-9) << router;
    }
  }
}

const std::string two_kinds =
    "{parts: {rich: {cluster: dgx-h100-ndr400, nodes: 1}, wide: {cluster: h20-roce-4x400, nodes: 1}}, between: {bandwidth: 800 Gbps, "
    "efficiency: 1, "
    "latency: 8 us}}";

// Prompts on H100 and on H20, decoded on H20: both work, the faster one more, and only the first one's caches cross between the parts.
TEST(PoolsOfARole, on_two_kinds_of_gpus_feed_one_that_decodes) {
  const Answers found = answers(
      "fast: {role: prefill, part: rich}, slow: {role: prefill, part: wide, instances: 2}, decode: {role: decode, part: wide, instances: "
      "2}",
      "  router: {prefill: shortest-wait}\n  load: {arrivals: {poisson: 14 /s}, input: 2000, output: 100, requests: 4000}\n", two_kinds);
  EXPECT_EQ(found.simulated.finished, found.simulated.counted);
  double tokens[2] = {0, 0};
  for (std::size_t pool = 0; pool < 2; ++pool) {
    for (const sim::InstanceUse& use : found.run.pools[pool].instances) tokens[pool] += use.prompt_tokens;
  }
  EXPECT_EQ(tokens[0] + tokens[1], 4000 * 2000.0);
  EXPECT_GT(tokens[0], tokens[1] / 2);  // of one instance each
  EXPECT_GT(tokens[1], 0);
  EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05);
  EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.05);
  const sim::Deployment deployment = deploy(found.job);
  EXPECT_EQ(deployment.transfers->lanes().size(), 2U);
  EXPECT_FALSE(deployment.transfers->lanes()[0].one_part());
  EXPECT_TRUE(deployment.transfers->lanes()[1].one_part());
}

// Instances of both on two kinds of GPUs: the means are near those of the formula, which takes what comes to an instance for Poisson
// arrivals (routers even it out) and many sequences for granted where shares of caches are compared.
TEST(PoolsOfARole, compute_prompts_and_decode_on_two_kinds_of_gpus) {
  struct Near {
    const char* router;
    double ttft, tpot;
  };
  for (const auto& [router, ttft, tpot] :
       {Near{"least-requests", 0.15, 0.05}, {"round-robin", 0.15, 0.05}, {"shortest-wait", 0.15, 0.05}, {"least-kv", 0.21, 0.14}}) {
    const Answers found = answers("fast: {role: both, part: rich, instances: 2}, slow: {role: both, part: wide, instances: 2}",
                                  fmt::format("  router: {{prefill: {}}}\n  load: {{arrivals: {{poisson: 8 /s}}, input: 1000, output: 200, "
                                              "requests: 4000}}\n",
                                              router),
                                  two_kinds);
    EXPECT_EQ(found.simulated.finished, found.simulated.counted);
    EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, ttft) << router;
    EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, tpot) << router;
    EXPECT_NEAR(found.formula.e2e.mean_s / found.simulated.e2e.mean_s, 1, 0.11) << router;
  }
}

// Instances that are alike are one pool however they are written, together and of a side alone, under any load.
TEST(PoolsOfARole, that_are_alike_are_one_pool_of_both_and_of_a_side_alone) {
  struct Case {
    const char *role, *rest;
  };
  for (const Case& one : {Case{"both", ""}, Case{"prefill", "  isolate: prefill\n"}, Case{"decode", "  isolate: decode\n"}}) {
    for (const char* arrivals : {"{poisson: 12 /s}", "{closed: 24}", "at-once"}) {
      for (const char* router : {"round-robin", "least-requests", "least-kv"}) {
        const std::string rest =
            fmt::format("{}  router: {{prefill: {}, decode: {}}}\n  load: {{arrivals: {}, input: 2000, output: 100, requests: 300}}\n",
                        one.rest, router, router, arrivals);
        const Answers whole = answers(fmt::format("p: {{role: {}, instances: 3}}", one.role), rest),
                      cut = answers(fmt::format("p: {{role: {}}}, q: {{role: {}, instances: 2}}", one.role, one.role), rest);
        for (std::size_t i = 0; i < whole.run.requests.size(); ++i) {
          ASSERT_EQ(whole.run.requests[i].first_s, cut.run.requests[i].first_s) << one.role << " " << arrivals << " " << router;
          ASSERT_EQ(whole.run.requests[i].last_s, cut.run.requests[i].last_s) << one.role << " " << arrivals << " " << router;
        }
        const double near = router == std::string("round-robin") ? 3e-3 : 1e-6;  // a round of clients has steps, which bisection meets
        EXPECT_NEAR(cut.formula.requests_per_s / whole.formula.requests_per_s, 1, near) << one.role << " " << arrivals << " " << router;
        if (router == std::string("round-robin") && one.role == std::string("prefill")) continue;  // queues of their own
        EXPECT_NEAR(cut.formula.ttft.mean_s / whole.formula.ttft.mean_s, 1, near) << one.role << " " << arrivals << " " << router;
        EXPECT_NEAR(cut.formula.e2e.mean_s / whole.formula.e2e.mean_s, 1, near) << one.role << " " << arrivals << " " << router;
      }
    }
  }
}

// Each pair of pools makes caches fit in its own way, and hands over its own bytes.
TEST(PoolsOfARole, differ_in_what_makes_a_cache_fit) {
  const Answers found =
      answers("prefill: {role: prefill}, same: {role: decode}, small: {role: decode, precision: {kv: fp8}, kv: {layout: hnd}}",
              "  router: {decode: round-robin}\n  load: {arrivals: {closed: 1}, input: 1600, output: 20, requests: 20}\n");
  const sim::Deployment deployment = deploy(found.job);
  EXPECT_TRUE(deployment.transfers->lanes()[0].alignment.empty());
  EXPECT_EQ(deployment.transfers->lanes()[1].alignment.size(), 2U);
  for (std::size_t i = 0; i < found.run.requests.size(); ++i)
    EXPECT_EQ(found.run.requests[i].transfer_bytes, 1600 * 131'072.0 / (i % 2 == 0 ? 1 : 2));
  EXPECT_NEAR(found.formula.kv_transfer_bytes, 1600 * 131'072.0 * 0.75, 1);
}

// What one pool's caches can never hold goes to the other one.
TEST(PoolsOfARole, get_what_they_can_hold) {
  const Answers found = answers("prefill: {role: prefill}, small: {role: decode, kv_tokens: 900}, large: {role: decode}",
                                "  load: {arrivals: at-once, input: 1000, output: 50, requests: 20}\n");
  EXPECT_EQ(found.simulated.rejected, 0);
  EXPECT_EQ(found.run.pools[1].instances[0].answer_tokens, 0);
  EXPECT_EQ(found.run.pools[2].instances[0].answer_tokens, 20 * 50);
}

// GPUs of two vendors meet in the memory of their hosts, and no job can say otherwise.
TEST(TwoVendors, hand_over_through_their_hosts) {
  const std::string amd =
      "{parts: {one: {cluster: dgx-h100-ndr400, nodes: 1}, other: {cluster: {name: amd, gpu: mi300x, gpus_per_node: 8, intra_node: {kind: "
      "full_mesh, bandwidth: 64 GB/s, efficiency: 1, latency: 2 us}, nics: {per_node: 8, bandwidth: 400 Gbps, efficiency: 1, latency: 2 "
      "us}, network: {kind: "
      "single_switch}, host: {bandwidth: 64 GB/s, efficiency: 1, latency: 5 us}}, nodes: 1}}, between: {bandwidth: 800 Gbps}}";
  const std::string pools = "prefill: {role: prefill, part: one}, decode: {role: decode, part: other}";
  const std::string load = "  load: {arrivals: {closed: 1}, input: 1600, output: 20, requests: 10}\n";
  const Answers found = answers(pools, load, amd), staged = answers(pools, "  transfer: {path: host-staged}\n" + load, amd);
  const sim::Deployment deployment = deploy(found.job);
  ASSERT_EQ(deployment.transfers->lanes()[0].alignment.size(), 1U);
  EXPECT_EQ(text_of(deployment.transfers->lanes()[0].alignment[0]), "from nvidia to amd it goes through the memory of both hosts");
  EXPECT_EQ(found.simulated.kv_transfer_s, staged.simulated.kv_transfer_s);
  try {
    static_cast<void>(answers(pools, "  transfer: {path: gpu-direct}\n" + load, amd));
    FAIL() << "accepted";
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("nothing leads from the memory of h100-sxm5-80g (nvidia) to that of mi300x (amd)"),
              std::string::npos)
        << error.what();
  }
}

// What takes no kernel is named as well: other peers, more copies.
TEST(ADifference, of_peers_and_copies_is_named) {
  const auto reasons = [](const std::string& sender, const std::string& receiver) {
    const Answers found = answers(
        fmt::format(
            "prefill: {{role: prefill, parallel: {}, kv: {{layout: hnd}}}}, decode: {{role: decode, parallel: {}, kv: {{layout: hnd}}}}",
            sender, receiver),
        "  load: {arrivals: {closed: 1}, input: 160, output: 2, requests: 2}\n", "gb200-nvl72");
    std::vector<std::string> out;
    const sim::Deployment deployment = deploy(found.job);
    for (const sim::KvAlignmentWork& work : deployment.transfers->lanes()[0].alignment) out.push_back(text_of(work));
    return out;
  };
  EXPECT_EQ(reasons("{pp: 2}", "{pp: 1}"), std::vector<std::string>{"layers of pp 2 go to the stages of pp 1"});
  EXPECT_EQ(reasons("{tp: 8}", "{tp: 16}"),
            std::vector<std::string>{"a head is held by 1 ranks of the sender and by 2 of the receiver: each of these is sent its own"});
}

}  // namespace
}  // namespace rehearse::tests

// Failures in the middle of a prompt, a hand-over, an answer: with constant prices every time can be written out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/service_history.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::tests {
namespace {

using sim::RequestState;
using sim::Role;
using sim::ServiceFault;
using sim::ServingRun;
using sim::ServingSetup;
using sim::Stage;

constexpr double failing_token_s = 1e-3, pass_s = 1e-3;
constexpr double eps = 1e-9;

sim::PoolSetup pool(Role role, int instances) {
  sim::InstanceRules rules;
  rules.role = role;
  rules.sequences = 64;
  rules.tokens = 100'000;
  rules.pages = 10'000;
  return {"pool", rules, std::make_shared<ConstantPrice>(failing_token_s, pass_s), instances};
}

ServingSetup one_request(std::vector<sim::PoolSetup> pools, int input, int output) {
  ServingSetup setup;
  setup.pools = std::move(pools);
  setup.requests = {{0, {input, output}}};
  if (setup.pools.size() > 1) setup.transfers = std::make_shared<OneLink>(OneLink::Habits{});
  return setup;
}

ServiceFault failing(std::size_t instance, double at_s, double for_s) {
  return {.kind = ServiceFault::Kind::fails, .instances = {instance}, .from_s = at_s, .for_s = for_s};
}

// A prompt of a second, its instance away from 0.5 to 2.5 s: from the beginning.
TEST(AFailure, in_a_prompt_begins_it_again) {
  ServingSetup setup = one_request({pool(Role::prefill, 1)}, 1000, 1);
  setup.faults = {failing(0, 0.5, 2)};
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].ttft_s(), 3.5, eps);
  EXPECT_EQ(run.requests[0].retries, 1);
  EXPECT_EQ(run.failures, 1);
}

// Its weights are 50 bytes, of a disk of 100 a second: half a second behind the repair, twice that where another one reads beside it. Who
// fails while it loads begins again.
TEST(AnInstance, that_returns_loads_its_weights) {
  const auto ends_s = [](int instances, std::vector<ServiceFault> faults) {
    ServingSetup setup = one_request({pool(Role::prefill, instances)}, 1000, 1);
    setup.faults = std::move(faults);
    setup.loads.links = {100};
    setup.loads.instances.assign(static_cast<std::size_t>(instances), {{0, 50}});
    const ServingRun run = simulate_serving(setup);
    EXPECT_EQ(run.requests[0].stage, Stage::done);
    return run.requests[0].last_s;
  };
  EXPECT_NEAR(ends_s(1, {failing(0, 0.5, 2)}), 2.5 + 0.5 + 1, eps);
  EXPECT_NEAR(ends_s(2, {failing(0, 0.5, 2), failing(1, 0.6, 1.9)}), 2.5 + 1 + 1, eps);
  EXPECT_NEAR(ends_s(1, {failing(0, 0.5, 2), failing(0, 2.7, 1)}), 3.7 + 0.5 + 1, eps);
  EXPECT_NEAR(ends_s(1, {failing(0, 0.5, 2), failing(0, 1, 3)}), 4 + 0.5 + 1, eps);
  EXPECT_NEAR(ends_s(1, {failing(0, 0.5, 2), failing(0, 2.7, 0.1), failing(0, 2.75, 1)}), 3.75 + 0.5 + 1, eps);
}

// A GPU's share of the weights over the disk of its node, which both GPUs of an instance read at once.
TEST(AnInstance, that_returns_reads_what_its_gpus_hold) {
  const std::string text =
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools:\n    all: {role: both, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "  load: {arrivals: at-once, input: 1000, output: 10, requests: 1}\n";
  const auto run_with = [&](const std::string& reload) {
    const sim::ServingJob job = sim::read_serving_job(
        config::Node::load_text(text + "  reload: " + reload + "\nsimulation: {faults: [instance all.0 at 1 ms for 2 s]}\n", "job.yaml"),
        "job");
    const sim::Deployment deployment = deploy(job);
    return std::pair(simulate_serving(setup_of(job, deployment)), deployment.pools[0].memory.weights);
  };
  const auto [counted, weights] = run_with("counted");
  EXPECT_NEAR(weights, 8.03e9, 0.05e9);  // half of 8.03 billion numbers of two bytes
  EXPECT_NEAR(run_with("disk").first.requests[0].last_s - counted.requests[0].last_s, 2 * weights / 56e9, 1e-6);
  try {
    static_cast<void>(run_with("storage"));
    ADD_FAILURE();
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("job.yaml:8:11: error: pool all: its cluster does not say how fast that is read"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(static_cast<void>(run_with("tape")), config::InputError);
  try {
    static_cast<void>(run_with("peer"));
    ADD_FAILURE();
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("job.yaml:8:11: error: pool all: no other instance of its part has its weights"),
              std::string::npos)
        << error.what();
  }
}

// Weights of 50 bytes a GPU over the link of the caches, which moves a hundred a second: half a second behind the repair, twice that where
// another one returns. Whose peer stops begins again with another one; where none works the disk is read, at 10 bytes a second.
TEST(AnInstance, that_returns_reads_from_another_one) {
  const auto down_s = [](std::size_t instance, std::vector<ServiceFault> faults) {
    ServingSetup setup = one_request({pool(Role::both, 3)}, 1000, 1);
    setup.requests = {{20, {1000, 1}}};
    setup.faults = std::move(faults);
    setup.transfers = std::make_shared<OneLink>(OneLink::Habits{.bytes_per_s = 100});
    setup.loads.links = {10};
    setup.loads.instances.assign(3, {{0, 50}});
    setup.loads.peers = {{1, 2}, {0, 2}, {0, 1}};
    setup.loads.gpu_bytes.assign(3, 50);
    return simulate_serving(setup).down_s[instance];
  };
  const double forever = INFINITY;
  EXPECT_NEAR(down_s(2, {failing(2, 0.5, 1.5)}), 1.5 + 0.5, eps);
  EXPECT_NEAR(down_s(1, {failing(0, 0.5, 1.5), failing(1, 0.5, 1.5)}), 1.5 + 1, eps);
  EXPECT_NEAR(down_s(0, {failing(0, 0.5, 1.5), failing(1, 2.2, forever)}), 1.5 + 0.2 + 0.5, eps);
  EXPECT_NEAR(down_s(0, {failing(0, 0.5, 1.5), failing(1, 0.5, forever), failing(2, 0.5, forever)}), 1.5 + 5, eps);
  EXPECT_NEAR(down_s(0, {failing(0, 0.5, 1.5), failing(0, 2.1, 1)}), 2.6 + 0.5, eps);  // it fails while it reads: repaired at 3.1 s
}

// Each GPU's weights over its own port, at the share of its rate that hand-overs reach.
TEST(AnInstance, that_returns_reads_over_the_network) {
  const sim::ServingJob job =
      sim::read_serving_job(config::Node::load_text("model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
                                                    "    p: {role: prefill, parallel: {tp: 8}}\n    d: {role: decode, parallel: {tp: 8}}\n"
                                                    "  reload: peer\n  load: {arrivals: at-once, input: 1000, output: 10, requests: 1}\n"
                                                    "simulation: {faults: [instance p.0 at 1 ms for 2 s]}\n",
                                                    "job.yaml"),
                            "job");
  const sim::Deployment deployment = deploy(job);
  const sim::ServingSetup setup = setup_of(job, deployment);
  ServingSetup counted = setup;
  counted.loads = {};
  const double port_bytes_per_s = job.parts[0].cluster.rail_bytes_per_s(), share = job.pools[0].habits.transfer_share;
  EXPECT_NEAR(simulate_serving(setup).requests[0].first_s - simulate_serving(counted).requests[0].first_s,
              deployment.pools[0].memory.weights / share / port_bytes_per_s, 1e-4);
}

// d.0 is repaired at 5 s and would read from d.1, whose ports are all gone, before it begins or while it reads: it has its weights from one
// of the other pool, and the pool is not lost.
TEST(AnInstance, that_returns_reads_from_who_can_be_reached) {
  const auto done_with = [](const std::string& cut_at, const std::string& others) {
    std::string faults = "instance d.0 at 2 s for 3 s";
    for (int gpu = 24; gpu < 32; ++gpu) faults += fmt::format(", nic {} at {}", gpu, cut_at);
    const sim::ServingJob job = sim::read_serving_job(
        config::Node::load_text(
            fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
                        "    p: {{role: prefill, parallel: {{tp: 8}}, instances: 2{}}}\n    d: {{role: decode, parallel: {{tp: 8}}, "
                        "instances: 2}}\n"
                        "  reload: peer\n  load: {{arrivals: {{constant: 4 /s}}, input: 1000, output: 50, requests: 100, warmup: 0}}\n"
                        "simulation: {{faults: [{}]}}\n",
                        others, faults),
            "job.yaml"),
        "job");
    const sim::Deployment deployment = deploy(job);
    const sim::ServingRun run = simulate_serving(setup_of(job, deployment));
    EXPECT_LT(run.down_s[2], 4);
    return std::ranges::count(run.requests, Stage::done, &RequestState::stage);
  };
  EXPECT_GT(done_with("4 s", ""), 85);  // who waits for d.1 meanwhile is given up
  EXPECT_GT(done_with("5.01 s", ""), 85);
  EXPECT_GT(done_with("4 s", ", precision: {compute: fp8, weights: fp8, kv: bf16}"), 85);  // from its disk: p has other weights
}

// Between instances of both it is a network too.
TEST(AnInstance, that_returns_reads_over_ports_that_are_slow) {
  const auto job = [](const std::string& pools, const std::string& faults) {
    return sim::read_serving_job(
        config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n" + pools +
                                    "  reload: peer\n  load: {arrivals: {constant: 1 /s}, input: 1000, output: 10, requests: 10}\n" +
                                    faults,
                                "job.yaml"),
        "job");
  };
  const std::string two = "    all: {role: both, parallel: {tp: 8}, instances: 2}\n", one = "instance all.0 at 1 ms for 2 s";
  const auto down_s = [](const sim::ServingJob& job) {
    const sim::Deployment deployment = deploy(job);
    return simulate_serving(setup_of(job, deployment)).down_s[0] - 2;
  };
  const double alone_s = down_s(job(two, "simulation: {faults: [" + one + "]}\n"));
  EXPECT_NEAR(down_s(job(two, "simulation: {faults: [" + one + ", nic 8 slow 2]}\n")) / alone_s, 2, 0.01);
  const sim::ServingJob drawn =
      job(two, "faults: {known: {source: script, faults: [{at: 1 s, node: 1, component: nic, kind: slow, slowdown: 3, duration: 9 s}]}}\n");
  EXPECT_EQ(draw_service_faults(drawn, 1, 60).size(), 1U);
}

// A model that proposes tokens is part of the weights.
TEST(AnInstance, that_returns_reads_its_draft_too) {
  const auto refusal = [](const std::string& a, const std::string& b) -> std::string {
    const std::string like = "{role: both, overflow: reserve";
    try {
      static_cast<void>(sim::read_serving_job(
          config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n    a: " + like + a +
                                      "}\n    b: " + like + b + "}\n  reload: peer\n" +
                                      "  load: {arrivals: at-once, input: 1000, output: 10, requests: 1}\n",
                                  "job.yaml"),
          "job"));
    } catch (const config::InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string draft = ", speculative: {tokens: 4, acceptance: 0.8, draft: llama3-8b}";
  EXPECT_EQ(refusal(draft, draft), "accepted");
  EXPECT_EQ(refusal("", ""), "accepted");
  EXPECT_NE(refusal(draft, "").find("pool a: no other instance of its part has its weights"), std::string::npos) << refusal(draft, "");
}

// The other instance takes it over at once.
TEST(AFailure, of_one_of_two_goes_to_the_other) {
  ServingSetup setup = one_request({pool(Role::prefill, 2)}, 1000, 1);
  setup.faults = {failing(0, 0.5, INFINITY)};
  EXPECT_NEAR(simulate_serving(setup).requests[0].ttft_s(), 1.5, eps);
}

// First token at 0.1 s, a pass per millisecond: 501 tokens are shown at 0.6 s and stay shown. At 1.6 s prompt and answer so far are
// computed, 601 tokens, which yields token 502; 498 passes more.
TEST(AFailure, in_an_answer_computes_its_cache_again) {
  ServingSetup setup = one_request({pool(Role::both, 1)}, 100, 1000);
  setup.faults = {failing(0, 0.6005, 0.9995)};
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].ttft_s(), 0.1, eps);
  EXPECT_NEAR(run.requests[0].last_s, 1.6 + 0.601 + 0.498, eps);
  EXPECT_EQ(run.requests[0].redone, 601);
  EXPECT_NEAR(run.pools[0].gaps.largest_s(), 1.601, eps);  // between tokens 501 and 502
  EXPECT_EQ(run.pools[0].instances[0].answer_tokens, 1000);
}

// Apart, the prompt of 100 tokens takes 0.1 s and its cache 0.1 s on the link; the decoding instance fails in the middle and the other one
// gets the cache from its beginning: the sender has it still.
TEST(AFailure, of_the_receiver_sends_the_cache_elsewhere) {
  ServingSetup setup = one_request({pool(Role::prefill, 1), pool(Role::decode, 2)}, 100, 11);
  setup.faults = {failing(1, 0.15, INFINITY)};
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 0.15 + 0.1 + 0.011, eps);
  EXPECT_EQ(run.requests[0].redone, 0);
  EXPECT_EQ(run.requests[0].retries, 1);
}

// The sender fails: the receiver notices when its time is out, 2 s after the hand-over began at 0.1 s, and the prompt is computed
// elsewhere.
TEST(AFailure, of_the_sender_is_noticed_when_time_is_out) {
  ServingSetup setup = one_request({pool(Role::prefill, 2), pool(Role::decode, 1)}, 100, 11);
  setup.faults = {failing(0, 0.15, INFINITY)};
  setup.timeout_s = 2;
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 2.1 + 0.1 + 0.1 + 0.011, eps);
  EXPECT_EQ(run.requests[0].redone, 100);
  for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
}

// A port that is down for a second in the middle of a hand-over: a second more, nothing lost.
TEST(AFailure, of_a_port_holds_a_cache_up) {
  ServingSetup setup = one_request({pool(Role::prefill, 1), pool(Role::decode, 1)}, 100, 11);
  setup.faults = {{.kind = ServiceFault::Kind::link, .links = {{0, 0}}, .times = 1e9, .from_s = 0.15, .for_s = 1}};
  const ServingRun run = simulate_serving(setup);
  EXPECT_NEAR(run.requests[0].last_s, 0.2 + 1 + 0.011, 1e-6);
  EXPECT_EQ(run.requests[0].retries, 0);
}

// It stays down: after ten hand-overs that timed out the request is given up; no endless loop.
TEST(AFailure, of_a_port_for_good_ends_with_an_answer) {
  ServingSetup setup = one_request({pool(Role::prefill, 1), pool(Role::decode, 1)}, 100, 11);
  setup.faults = {{.kind = ServiceFault::Kind::link, .links = {{0, 0}}, .times = 1e9, .from_s = 0.15, .for_s = INFINITY}};
  setup.timeout_s = 1;
  const ServingRun run = simulate_serving(setup);
  EXPECT_EQ(run.requests[0].stage, Stage::lost);
  for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
}

// Twice as long for a while: passes that begin meanwhile take twice their time.
TEST(ASlowInstance, takes_so_many_times_as_long) {
  ServingSetup setup = one_request({pool(Role::both, 1)}, 100, 1001);
  setup.faults = {{.kind = ServiceFault::Kind::slows, .instances = {0}, .times = 2, .from_s = 0.3, .for_s = 0.4}};
  EXPECT_NEAR(simulate_serving(setup).requests[0].last_s, 0.1 + 1 + 0.2, 3 * pass_s);
}

// Nobody is left who could decode: the simulation ends, and says who was not served.
TEST(AnInstance, that_never_comes_back_is_an_answer) {
  ServingSetup setup = one_request({pool(Role::prefill, 1), pool(Role::decode, 1)}, 100, 11);
  setup.requests.push_back({1, {100, 11}});
  setup.faults = {failing(1, 0.5, INFINITY)};
  const ServingRun run = simulate_serving(setup);
  EXPECT_EQ(run.requests[0].stage, Stage::done);
  EXPECT_EQ(run.requests[1].stage, Stage::waiting);
}

// Operators saw throughput collapse where senders were lost often and receivers waited long: room is held for caches that never come
// (sglang#28651). Senders flicker every 0.5 s; the receiver has room for four caches.
TEST(ALongTimeout, holds_room_and_throughput_collapses) {
  const auto seconds_with = [](double timeout_s) {
    ServingSetup setup = one_request({pool(Role::prefill, 2), pool(Role::decode, 1)}, 100, 50);
    setup.transfers = std::make_shared<OneLink>(OneLink::Habits{.bytes_per_s = 4000});
    setup.pools[0].rules.tokens = 100;
    setup.pools[1].rules.sequences = 4;
    setup.requests.clear();
    for (int i = 0; i < 200; ++i) setup.requests.push_back({0, {100, 50}});
    for (int i = 0; i < 40; ++i) setup.faults.push_back(failing(static_cast<std::size_t>(i % 2), 0.25 + 0.5 * i, 0.2));
    setup.timeout_s = timeout_s;
    const ServingRun run = simulate_serving(setup);
    for (const RequestState& request : run.requests) EXPECT_EQ(request.stage, Stage::done);
    return run.end_s;
  };
  EXPECT_GT(seconds_with(120), 4 * seconds_with(0.5)) << seconds_with(120) << " " << seconds_with(0.5);
}

std::string fault_refusal(const std::string& item) {
  try {
    static_cast<void>(sim::read_serving_job(
        config::Node::load_text(std::string(small_job) + "simulation: {faults: ['" + item + "']}\n", "job.yaml"), "job"));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AFault, that_names_nothing_is_refused_at_its_place) {
  EXPECT_EQ(fault_refusal("instance all.0 at 10 s for 5 s"), "accepted");
  EXPECT_EQ(fault_refusal("gpu 0 slow 1.5 from 1 s for 2 s"), "accepted");
  EXPECT_EQ(fault_refusal("node 0 at 1 s"), "accepted");
  const auto expect = [](const std::string& item, const std::string& why) {
    const std::string message = fault_refusal(item);
    EXPECT_NE(message.find(why), std::string::npos) << item << ": " << message;
    EXPECT_NE(message.find("job.yaml:8:"), std::string::npos) << message;
  };
  expect("instance all.1 at 1 s", "pool all has instances 0 to 0: there is no all.1");
  expect("instance other.0 at 1 s", "'other.0' is no instance");
  expect("rail 0 slow 2", "nothing is handed over between two sides");
  expect("cable 0 slow 2", "'cable' is nothing that can fail");
  expect("gpu 100000 at 1 s", "there is no GPU 100000");
  expect("gpu 0 at 1 m", "'1 m' is not a time");
  expect("gpu 0 explodes", "'explodes' is not what happens to it");
  expect("nic 0 slow 2", "nothing is handed over between two sides");
  expect("gpu 0 at 1 s for 2 s more", "is not a time");
}

}  // namespace
}  // namespace rehearse::tests

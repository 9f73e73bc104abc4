// Links of the network that fail or are slow in the middle of a hand-over: what is left of it goes on at the rate that is left, waits, or
// all of it goes another way. A hand-over takes b + x: what it pays before its flows, and bytes over rate.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <random>

#include "hand_over_jobs.hpp"
#include "sim/serving/service_history.hpp"

namespace rehearse::tests {
namespace {

using sim::RequestState;
using sim::ServingJob;
using sim::ServingRun;
using sim::Stage;

constexpr double rounding = 1e-6;  // a link that is down moves a billionth

ServingJob linked_job(const std::string& text) { return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"); }

ServingRun run_of(const std::string& text, const std::vector<std::string>& faults = {}) {
  config::Node document = config::Node::load_text(text, "job.yaml");
  if (!faults.empty()) document.set("simulation.faults", fmt::format("['{}']", fmt::join(faults, "', '")));
  const ServingJob job = sim::read_serving_job(document, "job");
  const sim::Deployment deployment = deploy(job);
  return simulate_serving(setup_of(job, deployment));
}

double on_the_way_s(const ServingRun& run) { return run.requests[0].spent_s[static_cast<std::size_t>(Stage::transferring)]; }

// One request, so that nothing else is on the links.
struct OneHandOver {
  std::string text;
  double begins_s = 0, before_s = 0, flows_s = 0;

  // `slow` makes its narrowest links half as wide.
  OneHandOver(std::string job, const std::string& slow) : text(std::move(job)) {
    const ServingRun alone = run_of(text);
    const auto spent = [&](Stage stage) { return alone.requests[0].spent_s[static_cast<std::size_t>(stage)]; };
    begins_s = spent(Stage::queued) + spent(Stage::prefilling) + spent(Stage::waiting);
    flows_s = on_the_way_s(run_of(text, {slow})) - on_the_way_s(alone);
    before_s = on_the_way_s(alone) - flows_s;
  }
  [[nodiscard]] double with(const std::string& what) const { return on_the_way_s(run_of(text, {what})); }
  [[nodiscard]] std::string half_way(const std::string& word) const {
    return fmt::format("{} {:.12f} s", word, begins_s + before_s + flows_s / 2);
  }
};

// Eight GPUs with a port each send to eight others.
OneHandOver between_eight_ports() {
  return {hand_over_job("after-prefill", "{arrivals: at-once, input: 16000, output: 20, requests: 1}", 32'000), "nic 3 slow 2"};
}

// One port a node, which two spines share.
const std::string one_port =
    "model: llama3-8b\n"
    "cluster: {gpu: h100-sxm5-80g, gpus_per_node: 1, intra_node: {kind: none}, nics: {per_node: 1, bandwidth: 100 Gbps, latency: 5 us},\n"
    "  host: {bandwidth: 50 GB/s},\n"
    "  network: {kind: leaf_spine, nodes_per_leaf: 1, spines: 2, trunk: {bandwidth: 100 Gbps}}}\n"
    "software: vllm\n"
    "serving:\n"
    "  pools:\n"
    "    prefill: {role: prefill, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
    "    decode: {role: decode, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
    "  load: {arrivals: at-once, input: 8000, output: 20, requests: 1}\n";

TEST(AFailingLink, that_is_slow_goes_on_at_the_rate_that_is_left) {
  const OneHandOver one = between_eight_ports();
  EXPECT_GT(one.before_s, 0);
  // Half of it in x/2, the other half in x.
  for (const char* what : {"nic 3", "rail 3", "nic 8", "rail 0"})
    EXPECT_NEAR(one.with(fmt::format("{} slow 2 {} for 1 min", what, one.half_way("from"))), one.before_s + 1.5 * one.flows_s, rounding);
  // Slow for half of its time: x/2, then x/4 of the work in x/2, and what is left.
  EXPECT_NEAR(one.with(fmt::format("rail 5 slow 2 {} for {:.12f} s", one.half_way("from"), one.flows_s / 2)),
              one.before_s + 1.25 * one.flows_s, rounding);
  EXPECT_NEAR(one.with(fmt::format("rail 5 down {} for 3 s", one.half_way("from"))), one.before_s + one.flows_s + 3, rounding);
}

// Two GPUs share the neighbour's port then: from its beginning in twice the time, and a start of its own.
TEST(AFailingLink, sends_over_a_neighbours_port) {
  const OneHandOver one = between_eight_ports();
  for (const char* what : {"nic 3", "nic 11", "rail 3", "link leaf3 node0/nic3"}) {
    EXPECT_NEAR(one.with(fmt::format("{} at 0 s", what)), one.before_s + 2 * one.flows_s, rounding) << what;
    EXPECT_NEAR(one.with(fmt::format("{} {}", what, one.half_way("at"))), 2 * one.before_s + 2.5 * one.flows_s, rounding) << what;
  }
  // It is back before anything is sent, or gone when all has been.
  EXPECT_NEAR(one.with(fmt::format("nic 3 at 0 s for {:.12f} s", one.begins_s / 2)), one.before_s + one.flows_s, rounding);
  EXPECT_NEAR(one.with(fmt::format("nic 3 at {:.12f} s", one.begins_s + 2 * (one.before_s + one.flows_s))), one.before_s + one.flows_s,
              rounding);
  const ServingRun run = run_of(one.text, {fmt::format("nic 3 {}", one.half_way("at"))}), alone = run_of(one.text);
  EXPECT_EQ(run.requests[0].transfer_bytes, alone.requests[0].transfer_bytes);  // what arrived
  EXPECT_EQ(run.requests[0].retries, 0);
}

TEST(AFailingLink, waits_where_there_is_no_other_way) {
  const OneHandOver one(one_port, "spine slow 2");
  EXPECT_NEAR(one.with(fmt::format("nic 0 {} for 2 s", one.half_way("at"))), one.before_s + one.flows_s + 2, rounding);
  EXPECT_NEAR(one.with(fmt::format("nic 1 {} for 2 s", one.half_way("at"))), one.before_s + one.flows_s + 2, rounding);
  EXPECT_EQ(run_of(one.text, {"nic 1 at 0 s"}).requests[0].stage, Stage::lost);  // for good: given up after its timeouts, never a hang
}

// Two spines, each with half the rate of a port, which is what a flow gets over either; what is cut goes over the other.
// What waits because no way is left goes on by the first that comes back, and not by the one that it waits on.
TEST(AFailingLink, is_gone_around_when_another_comes_back) {
  const OneHandOver one = between_eight_ports();
  std::vector<std::string> gone{one.half_way("nic 0 at")};
  for (int port = 1; port < 8; ++port) gone.push_back(fmt::format("{} for 1 s", one.half_way(fmt::format("nic {} at", port))));
  const ServingRun run = run_of(one.text, gone);
  EXPECT_EQ(run.requests[0].stage, Stage::done);
  EXPECT_LT(on_the_way_s(run), 3);
  EXPECT_GT(on_the_way_s(run), 1);
}

TEST(AFailingLink, between_switches_is_gone_around) {
  const OneHandOver one(one_port, "spine slow 2");
  EXPECT_NEAR(one.with("spine slow 2"), one.before_s + 2 * one.flows_s, rounding);
  EXPECT_NEAR(one.with("spine lost"), one.before_s + 2 * one.flows_s, rounding);
  double slowest = 0, fastest = INFINITY;
  for (const char* spine : {"spine0", "spine1"}) {
    EXPECT_NEAR(one.with(fmt::format("link leaf0 {} at 0 s", spine)), one.before_s + one.flows_s, rounding);
    const double half_way = one.with(fmt::format("link leaf0 {} {}", spine, one.half_way("at")));
    slowest = std::max(slowest, half_way);
    fastest = std::min(fastest, half_way);
  }
  EXPECT_NEAR(fastest, one.before_s + one.flows_s, rounding);  // the one that it is not on
  EXPECT_NEAR(slowest, 2 * one.before_s + 1.5 * one.flows_s, rounding);
}

TEST(AFailingLink, joins_two_parts) {
  const std::string text =
      "model: llama3-8b\n"
      "cluster: {parts: {rich: {cluster: dgx-h100-ndr400, nodes: 1}, wide: {cluster: h20-roce-4x400, nodes: 1}},\n"
      "  between: {bandwidth: 100 Gbps, latency: 8 us}}\n"
      "software: vllm\n"
      "serving:\n"
      "  pools:\n"
      "    prefill: {role: prefill, part: rich, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "    decode: {role: decode, part: wide, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "  load: {arrivals: at-once, input: 8000, output: 20, requests: 1}\n";
  const OneHandOver one(text, "link rich wide slow 2");
  EXPECT_NEAR(one.flows_s, 8000 * 131'072.0 / 12.5e9, 0.5 * one.flows_s);  // of the right size: the engine reaches a share of the rate
  EXPECT_NEAR(one.with(fmt::format("link wide rich slow 3 {} for 1 h", one.half_way("from"))), one.before_s + 2 * one.flows_s, rounding);
  EXPECT_NEAR(one.with(fmt::format("link rich wide {} for 2 s", one.half_way("at"))), one.before_s + one.flows_s + 2, rounding);
  EXPECT_NEAR(one.with("nic 0 slow 1"), one.before_s + one.flows_s, rounding);
  // Two ports down on the wide side: the neighbour's port, which is wider than what joins the parts.
  EXPECT_NEAR(one.with("link wide/node0/nic0 wide/leaf0 at 0 s"), one.before_s + one.flows_s, rounding);
}

// Out of a supernode of 72 GPUs a cache goes over the ports: half their rate is twice the time, where nothing is narrower.
TEST(AFailingLink, leads_out_of_a_supernode) {
  const std::string text =
      "model: llama3-8b\n"
      "cluster: {parts: {rich: {cluster: gb200-nvl72, nodes: 18}, wide: {cluster: gb200-nvl72, nodes: 18}}, between: {bandwidth: 100 "
      "Tbps}}\n"
      "software: vllm\n"
      "serving:\n"
      "  pools:\n"
      "    prefill: {role: prefill, part: rich, parallel: {tp: 4}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "    decode: {role: decode, part: wide, parallel: {tp: 4}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "  load: {arrivals: at-once, input: 8000, output: 20, requests: 1}\n";
  const OneHandOver one(text, "rail 0 slow 2");
  EXPECT_GT(one.flows_s, 8000 * 131'072.0 / 4 / 50e9);  // a quarter of it over a port of at most 400 Gb/s
  EXPECT_NEAR(one.with("rail 1 slow 3"), one.before_s + 3 * one.flows_s, rounding);
}

TEST(AFailingLink, that_is_none_is_refused_at_its_place) {
  const auto expect = [](const std::string& item, const std::string& why) {
    try {
      static_cast<void>(linked_job(one_port + "simulation: {faults: ['" + item + "']}\n"));
      ADD_FAILURE() << item;
    } catch (const config::InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(why), std::string::npos) << item << ": " << message;
      EXPECT_NE(message.find("job.yaml:11:"), std::string::npos) << message;
    }
  };
  expect("link leaf0 spine9 at 1 s", "no link leads from 'leaf0' to 'spine9'");
  expect("link leaf0", "is not complete");
  expect("rail 1 slow 2", "no node has a port 1");
  expect("spine at 1 s", "'at' is not what happens to it: slow or lost");
  expect("spine down from 1 s for 1 s", "'down' is not what happens to it");
  expect("nic 0 explodes", "'explodes' is not what happens to it: at, slow or down");
  expect("link leaf0 spine0 down", "a link is down from TIME for TIME");
  expect("cable 3 slow 2", "'cable' is nothing that can fail: instance, gpu, node, nic, rail, link or spine");
  const std::string one_spine = std::string(one_port).replace(one_port.find("spines: 2"), 9, "spines: 1");
  try {
    static_cast<void>(linked_job(one_spine + "simulation: {faults: [spine lost]}\n"));
    ADD_FAILURE();
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("one spine, and one must be left"), std::string::npos);
  }
}

// Of days: a spine that is slow slows the hand-overs, one that is lost by as much as the others take of it.
TEST(AFailingLink, is_drawn_from_a_scenario) {
  const auto drawn = [](const std::string& fault) {
    return sim::draw_service_faults(linked_job(one_port + "faults: {known: {source: script, faults: [" + fault + "]}}\n"), 1, 600);
  };
  const auto slow = drawn("{at: 60 s, component: spine, kind: slow, slowdown: 3, duration: 30 s}");
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].kind, sim::ServiceFault::Kind::link);
  EXPECT_EQ(slow[0].times, 3);
  EXPECT_EQ(slow[0].links.size(), 12U);  // three leaves (one for the way out) by two spines, both directions
  EXPECT_EQ(drawn("{at: 60 s, component: spine, kind: slow}").front().times, 2);
}

// Links that go and come back at any time while many caches move: everybody is served, and no page is left behind.
TEST(AFailingLink, loses_nothing) {
  std::mt19937 random(11);
  std::map<std::string, ServingRun> without;  // faults, by job
  int longer = 0;
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const char* modes[] = {"after-prefill", "chunkwise", "layerwise"};
    const std::string text =
        hand_over_job(modes[pick(0, 2)], "{arrivals: {poisson: 12 /s}, input: {uniform: [100, 8000]}, output: 20, requests: 60}", 2048,
                      pick(0, 1) == 1 ? ", reserve: before-prefill" : "");
    std::vector<std::string> faults;
    for (int i = pick(1, 5); i > 0; --i) {
      const std::string of = pick(0, 1) == 1 ? fmt::format("nic {}", pick(0, 15)) : fmt::format("rail {}", pick(0, 7));
      const double at_s = 0.01 * pick(0, 500), for_s = 0.01 * pick(1, 100);
      faults.push_back(pick(0, 2) > 0 ? fmt::format("{} at {} s for {} s", of, at_s, for_s)
                                      : fmt::format("{} slow {} from {} s for {} s", of, pick(1, 50), at_s, for_s));
    }
    const ServingRun run = run_of(text, faults);
    const auto [known, fresh] = without.try_emplace(text);
    if (fresh) known->second = run_of(text);
    const ServingRun& alone = known->second;
    for (std::size_t i = 0; i < run.requests.size(); ++i) {
      const RequestState& request = run.requests[i];
      ASSERT_EQ(request.stage, Stage::done);
      ASSERT_NEAR(request.transfer_bytes, alone.requests[i].transfer_bytes, 1e-6 * request.transfer_bytes);
      double sum = 0;
      for (const double spent : request.spent_s) sum += spent;
      ASSERT_NEAR(sum, request.e2e_s(), 1e-9);
    }
    for (const std::int64_t left : run.pages_left) EXPECT_EQ(left, 0);
    const auto moving_s = [](const ServingRun& of) {
      double sum = 0;
      for (const RequestState& request : of.requests) sum += request.spent_s[static_cast<std::size_t>(Stage::transferring)];
      return sum;
    };
    longer += moving_s(run) > moving_s(alone) ? 1 : 0;
  }
  EXPECT_GT(longer, 10);
}

}  // namespace
}  // namespace rehearse::tests

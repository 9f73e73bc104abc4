// What is told of links and of requests that are followed: with constant prices every time can be written out.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "deployments.hpp"
#include "hand_over_jobs.hpp"
#include "sim/serving/explain.hpp"
#include "sim/serving/goodput.hpp"

namespace rehearse::tests {
namespace {

using sim::Role;
using sim::ServingRun;
using sim::ServingSetup;

sim::PoolSetup waiting_pool(Role role, int instances) {
  sim::InstanceRules rules;
  rules.role = role;
  rules.sequences = 64;
  rules.tokens = 1000;
  rules.pages = 10'000;
  return {"pool", rules, std::make_shared<ConstantPrice>(1e-3, 1e-3), instances};
}

// Two caches of 100 and 50 bytes begin together at 0.1 s on a link of 1000 bytes a second, where alone they take 0.1 and 0.05 s: the second
// is there after 0.1 s, the first after 0.15 s.
TEST(ALink, says_the_longest_that_somebody_waited) {
  ServingSetup setup;
  setup.pools = {waiting_pool(Role::prefill, 2), waiting_pool(Role::decode, 1)};
  setup.requests = {{0, {100, 2}}, {0.05, {50, 2}}};
  setup.transfers = std::make_shared<OneLink>(OneLink::Habits{});
  setup.records = true;
  const ServingRun run = simulate_serving(setup);
  ASSERT_EQ(run.record->links().size(), 1U);
  EXPECT_NEAR(run.record->links().begin()->second.worst_wait_s, 0.05, 1e-9);
  setup.requests.pop_back();
  EXPECT_EQ(simulate_serving(setup).record->links().begin()->second.worst_wait_s, 0);
}

// One after another without gaps from the arrival to the last token, as long in each stage as the request's own sums: where instances fail
// on its way, too.
TEST(AFollowedRequest, is_in_one_stage_at_a_time) {
  for (const bool fails : {false, true}) {
    ServingSetup setup;
    setup.pools = {waiting_pool(Role::prefill, 2), waiting_pool(Role::decode, 2)};
    for (int i = 0; i < 20; ++i) setup.requests.push_back({0.03 * i, {100 + i, 30}});
    setup.transfers = std::make_shared<OneLink>(OneLink::Habits{});
    setup.followed = {3, 11};
    for (int i = 0; fails && i < 6; ++i)
      setup.faults.push_back({.instances = {static_cast<std::size_t>(i % 4)}, .from_s = 0.2 + 0.1 * i, .for_s = 0.15});
    const ServingRun run = simulate_serving(setup);
    ASSERT_EQ(run.followed.size(), 2U);
    for (const auto& [id, spans] : run.followed) {
      const sim::RequestState& request = run.requests[id];
      ASSERT_FALSE(spans.empty());
      EXPECT_EQ(spans.back().end_s, request.last_s);
      std::array<double, sim::timed_stages> sums{};
      for (std::size_t i = 0; i < spans.size(); ++i) {
        EXPECT_EQ(spans[i].start_s, i > 0 ? spans[i - 1].end_s : request.arrival_s);
        sums.at(static_cast<std::size_t>(spans[i].stage)) += spans[i].end_s - spans[i].start_s;
      }
      for (std::size_t stage = 0; stage < sim::timed_stages; ++stage) EXPECT_NEAR(sums.at(stage), request.spent_s.at(stage), 1e-9);
    }
  }
}

std::string two_parts(const std::string& rate) {
  return "model: llama3-8b\n"
         "cluster: {parts: {rich: {cluster: dgx-h100-ndr400, nodes: 1}, wide: {cluster: h20-roce-4x400, nodes: 1}}, between: {bandwidth: " +
         rate +
         "}}\n"
         "software: vllm\n"
         "serving:\n"
         "  pools:\n"
         "    prefill: {role: prefill, part: rich, price: 3 /h}\n"
         "    decode: {role: decode, part: wide, price: 1 /h}\n"
         "  load: {arrivals: {poisson: 2 /s}, input: 1000, output: 20, requests: 100}\n"
         "  slo: {ttft: 1 s, tpot: 50 ms}\n";
}

// Four ports of 400 Gb/s on the narrower side, of which 0.97 or so: 200 GB/s.
TEST(ANetworkBetweenParts, is_remarked_on_where_no_port_carries_it) {
  const auto notes = [](const std::string& rate) {
    std::string all;
    for (const std::string& note : sim::read_serving_job(config::Node::load_text(two_parts(rate), "job.yaml"), "job").notes) all += note;
    return all;
  };
  EXPECT_EQ(notes("1 Tbps").find("between"), std::string::npos);
  EXPECT_NE(notes("2 Tbps").find("more than the network ports of part wide carry"), std::string::npos);
  EXPECT_EQ(notes("2 Tbps").find("part rich"), std::string::npos);
  EXPECT_NE(notes("12500 GB/s").find("part rich"), std::string::npos);
}

// What explain says of a choice's goodput is what its job's goodput is.
TEST(EachChoice, has_the_goodput_of_its_job) {
  const config::Node document = config::Node::load_text(two_parts("1 Tbps"), "job.yaml");
  int asked = 0;
  for (const sim::ServingEffect& effect : sim::serving_effects(document, sim::read_serving_job(document, "job"), true, [](double) {})) {
    if (effect.key != "transfer.mode") continue;
    config::Node changed = document;
    changed.set("serving.transfer.mode", effect.value);
    const sim::ServingJob job = sim::read_serving_job(changed, "job");
    EXPECT_EQ(effect.simulated->goodput_per_s, goodput_of(job, deploy(job), [](double) {}));
    EXPECT_NEAR(effect.simulated->cost_per_s * 3600, 4, 1e-9);
    ++asked;
  }
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace rehearse::tests

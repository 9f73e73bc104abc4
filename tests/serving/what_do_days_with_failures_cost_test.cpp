// Histories of failures, and what they leave of a service.
#include <gtest/gtest.h>

#include <numeric>

#include "deployments.hpp"
#include "sim/serving/service_days.hpp"
#include "sim/serving/service_history.hpp"
#include "sim/serving/service_links.hpp"

namespace rehearse::tests {
namespace {

using sim::ServiceDays;
using sim::ServiceFault;
using sim::ServingJob;

// Prompts on nodes 0 (four instances), decoding on nodes 1 and 2 (four each).
std::string apart_job(const std::string& faults, const std::string& more = "") {
  return "model: llama3-8b\n"
         "cluster: dgx-h100-ndr400\n"
         "software: vllm\n"
         "serving:\n"
         "  pools:\n"
         "    prefill: {role: prefill, instances: 4, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
         "    decode: {role: decode, instances: 8, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
         "  load: {arrivals: {constant: 5 /s}, input: 500, output: 20, requests: 3000, warmup: 0}\n"
         "  slo: {ttft: 1 s, tpot: 50 ms}\n"
         "  recovery: 3 min\n" +
         more + "faults: " + faults + "\n";
}

ServingJob job_of(const std::string& text) { return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"); }

ServiceDays days_of(const std::string& text, int runs = 1) {
  const ServingJob job = job_of(text);
  return sim::run_service(job, sim::deploy(job), runs, [](double) {});
}

using Instances = std::vector<std::size_t>;

TEST(HistoriesOfFailures, strike_the_instances_that_stand_there) {
  const auto drawn = [](const std::string& faults) { return sim::draw_service_faults(job_of(apart_job(faults)), 1, 600); };
  const auto one = drawn("{known: {source: script, faults: [{at: 60 s, node: 1, level: pod, recovery: 2 min}]}}");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].instances, (Instances{4, 5, 6, 7}));
  EXPECT_EQ(one[0].from_s, 60);
  EXPECT_EQ(one[0].for_s, 120);
  const auto process = drawn("{known: {source: script, faults: [{at: 60 s, component: gpu, gpu: 3, node: 2, level: process}]}}");
  ASSERT_EQ(process.size(), 1U);
  EXPECT_EQ(process[0].instances, (Instances{9}));
  EXPECT_EQ(process[0].for_s, 180);  // serving.recovery
  const auto all = drawn("{known: {source: script, faults: [{at: 60 s, level: job, nodes: 3}]}}");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].instances.size(), 12U);
  const auto slow =
      drawn("{known: {source: script, faults: [{at: 60 s, component: host, kind: slow, slowdown: 2, node: 0, duration: 30 s}]}}");
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].kind, ServiceFault::Kind::slows);
  EXPECT_EQ(slow[0].instances, (Instances{0, 1, 2, 3}));
  EXPECT_EQ(slow[0].for_s, 30);
  const auto port = drawn("{known: {source: script, faults: [{at: 60 s, component: nic, kind: slow, slowdown: 2, rail: 5, node: 1}]}}");
  ASSERT_EQ(port.size(), 1U);
  EXPECT_EQ(port[0].kind, ServiceFault::Kind::link);
  EXPECT_EQ(port[0].links, sim::ServiceLinks(job_of(apart_job("{nodes: {source: poisson, rate: 1 /day}}"))).port(0, 13));
  EXPECT_EQ(port[0].links.size(), 2U);  // out and in
  EXPECT_TRUE(drawn("{known: {source: script, faults: [{at: 601 s, node: 1, level: pod}]}}").empty());
}

// Three nodes, one failure in 100 s on average of each: 18 in 600 s, and one instance of the four on a node each time. Over 200 seeds the
// mean is within four standard errors, sqrt(18 / 200).
TEST(HistoriesOfFailures, come_as_often_as_they_should) {
  const ServingJob job = job_of(apart_job("{nodes: {source: poisson, rate: 0.6 /min, level: process}}"));
  double failures = 0;
  std::vector<int> struck(12);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    for (const ServiceFault& fault : sim::draw_service_faults(job, seed, 600)) {
      ++failures;
      ASSERT_EQ(fault.instances.size(), 1U);
      ++struck[fault.instances.front()];
    }
  }
  EXPECT_NEAR(failures / 200, 18, 4 * std::sqrt(18.0 / 200));
  for (const int hits : struck) EXPECT_NEAR(hits, 300, 4 * std::sqrt(300.0));  // each as often as any other
}

// All that compute prompts are gone for 120 of 600 s: whoever comes then, but for the last second of it, waits too long, and nobody else
// but those few that were under way. 5 requests a second.
TEST(DaysWithFailures, cost_the_requests_of_an_outage) {
  const ServiceDays days = days_of(apart_job("{known: {source: script, faults: [{at: 200 s, node: 0, level: pod, recovery: 2 min}]}}"));
  EXPECT_EQ(days.healthy.within, 3000);
  EXPECT_EQ(days.healthy.minutes_kept, 1);
  EXPECT_EQ(days.healthy.up, (std::vector<double>{1, 1}));
  const sim::ServiceDay& day = days.runs.front();
  EXPECT_NEAR(day.within, 3000 - 5 * 119, 10);
  EXPECT_NEAR(days.availability(day), 1 - 119.0 / 600, 10.0 / 3000);
  EXPECT_NEAR(day.up[0], 1 - 120 / days.seconds, 1e-9);
  EXPECT_EQ(day.up[1], 1);
  EXPECT_EQ(day.instance_failures, 4);
  // From 200 to 320 s: minutes 3 (40 of 60 s), 4 and 5 (19 of 60 s).
  EXPECT_EQ(day.longest_below_min, 3);
  EXPECT_NEAR(day.minutes_kept, 1 - 3.0 / 10, 1e-9);
  int requests = 0, within = 0;
  for (const sim::ServiceMinute& minute : day.minutes) {
    requests += minute.requests;
    within += minute.both;
  }
  EXPECT_EQ(requests, 3000);
  EXPECT_EQ(within, day.within);
}

TEST(DaysWithFailures, are_the_same_for_the_same_seed_and_nothing_without_failures) {
  const std::string random = apart_job("{nodes: {source: poisson, rate: 0.2 /min}}");
  const ServiceDays one = days_of(random, 3), other = days_of(random, 3);
  for (std::size_t run = 0; run < 3; ++run) EXPECT_EQ(one.runs[run].within, other.runs[run].within);
  EXPECT_NE(one.runs[0].faults.size() * 1000 + static_cast<std::size_t>(one.runs[0].within),
            one.runs[1].faults.size() * 1000 + static_cast<std::size_t>(one.runs[1].within));
  const ServiceDays none = days_of(apart_job("{nodes: {source: poisson, rate: 0.000001 /day}}"));
  EXPECT_EQ(none.runs.front().within, none.healthy.within);
  EXPECT_EQ(none.availability(none.runs.front()), 1);
}

std::string refusal_of_days(const std::string& text) {
  try {
    static_cast<void>(days_of(text));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DaysWithFailures, are_refused_without_what_they_need) {
  const std::string faults = "{nodes: {source: poisson, rate: 1 /day}}";
  const auto without = [&](const std::string& what, const std::string& instead) {
    std::string text = apart_job(faults);
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, what.size(), instead);
  };
  EXPECT_NE(refusal_of_days(without("faults: " + faults, "")).find("run needs to know what fails"), std::string::npos);
  EXPECT_NE(refusal_of_days(without("  slo: {ttft: 1 s, tpot: 50 ms}\n", "")).find("run needs a promise"), std::string::npos);
  EXPECT_NE(refusal_of_days(without("{constant: 5 /s}", "{closed: 4}")).find("requests that come over time"), std::string::npos);
  EXPECT_NE(refusal_of_days(without("1 /day", "1")).find("job.yaml:11:"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::tests

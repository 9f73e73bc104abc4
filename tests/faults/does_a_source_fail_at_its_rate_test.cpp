// Counts of random faults against their expectation. A count of mean m is off by more than 4 sqrt(m) once in 16,000 tries; seeds are fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/faults/context.hpp"

namespace rehearse::sim {
namespace {

using tests::history;
using tests::scenario;

void expect_count(double count, double mean) { EXPECT_NEAR(count, mean, 4 * std::sqrt(mean)); }

TEST(DoesASourceFailAtItsRate, poisson_per_node) {
  const FaultScenario faults = scenario("{all: {source: poisson, rate: 0.5 /day}}");
  const std::vector<Fault> drawn = history(faults, 1, 1000);
  expect_count(static_cast<double>(drawn.size()), 16 * 0.5 * 1000);
  std::array<double, 16> per_node{};
  std::array<double, level_count> per_level{};
  for (const Fault& fault : drawn) {
    ++per_node.at(static_cast<std::size_t>(fault.node));
    ++per_level.at(static_cast<std::size_t>(fault.level));
  }
  for (const double count : per_node) expect_count(count, 500);
  // 3 : 6 : 1, as in MoFa.
  expect_count(per_level[0], 2400);
  expect_count(per_level[1], 4800);
  expect_count(per_level[2], 800);
}

// The time between two faults exceeds x means with probability exp(-x).
TEST(DoesASourceFailAtItsRate, poisson_has_no_memory) {
  const std::vector<Fault> drawn = history(scenario("{all: {source: poisson, rate: 1 /day, per: job}}"), 2, 20000);
  for (const double x : {0.1, 0.7, 2.0}) {
    double longer = 0;
    for (std::size_t i = 1; i < drawn.size(); ++i) longer += to_s(drawn[i].at - drawn[i - 1].at) > x * seconds_per_day ? 1 : 0;
    expect_count(longer, std::exp(-x) * static_cast<double>(drawn.size()));
  }
}

// In the long run one failure per mean life; before that more of them when they come early (shape < 1), fewer when they come with wear.
TEST(DoesASourceFailAtItsRate, weibull) {
  const auto count = [](double shape, double days) {
    const std::string text = fmt::format("{{all: {{source: weibull, rate: 0.1 /day, shape: {}}}}}", shape);
    return static_cast<double>(history(scenario(text), 3, days).size());
  };
  // Counts over many lives spread by the coefficient of variation of a life: 1.46 for shape 0.7, 0.36 for shape 3.
  EXPECT_NEAR(count(0.7, 10000), 16000, 4 * 1.46 * std::sqrt(16000));
  EXPECT_NEAR(count(3, 10000), 16000, 4 * 0.36 * std::sqrt(16000) + 16);  // and one life of each node is under way
  expect_count(count(1, 10000), 16000);
  // Within the first day of 16 nodes, over 400 clusters: 1 - exp(-(t / scale)^shape) of them fail.
  const auto first_day = [](double shape) {
    const FaultScenario faults = scenario(fmt::format("{{all: {{source: weibull, rate: 0.1 /day, shape: {}}}}}", shape));
    double failed = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) failed += static_cast<double>(history(faults, seed, 1).size());
    return failed;
  };
  const double scale_days = 10 / std::tgamma(1 + 1 / 3.0);
  expect_count(first_day(3), 6400 * (1 - std::exp(-std::pow(1 / scale_days, 3))));
  EXPECT_GT(first_day(0.5), 2 * 640);
}

TEST(DoesASourceFailAtItsRate, groups_fail_together) {
  const FaultScenario racks = scenario("{rack: {source: poisson, component: rack, rate: 1 /day, per: group, nodes: 4, level: pod}}");
  const std::vector<Fault> drawn = history(racks, 4, 1000);
  expect_count(static_cast<double>(drawn.size()), 4 * 1000);
  for (const Fault& fault : drawn) {
    EXPECT_EQ(fault.node % 4, 0);
    EXPECT_EQ(fault.nodes, 4);
  }
}

TEST(DoesASourceFailAtItsRate, the_formula_hears_the_same) {
  const FaultScenario faults = scenario(
      "{all: {source: poisson, rate: 0.5 /day}, jobs: {source: weibull, rate: 2 /day, per: job, shape: 2, level: job, recovery: 33 s},"
      " slow: {source: poisson, rate: 9 /day, component: gpu, kind: slow, slowdown: 2},"
      " once: {source: script, faults: [{at: 1 h, level: pod}, {at: 3 days, level: pod}]}}");
  double per_day = 0;
  for (const FailureRate& rate : faults.rates(2 * seconds_per_day)) {
    per_day += rate.per_s * seconds_per_day;
    if (rate.level == FaultLevel::job && rate.recovery_s) {
      EXPECT_EQ(*rate.recovery_s, 33);
    }
  }
  EXPECT_NEAR(per_day, 8 + 2 + 0.5, 1e-9);  // of the script one in two days
}

TEST(DoesASeedDecide, everything) {
  const FaultScenario faults =
      scenario("{a: {source: poisson, rate: 1 /day, recovery: {lognormal: 100 s, sigma: 1}}, b: {source: poisson, rate: 1 /day}}");
  const std::vector<Fault> one = history(faults, 5, 50), again = history(faults, 5, 50), other = history(faults, 6, 50);
  ASSERT_EQ(one.size(), again.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].at, again[i].at);
    EXPECT_EQ(one[i].node, again[i].node);
    EXPECT_EQ(one[i].recovery, again[i].recovery);
    if (i > 0) {
      EXPECT_GE(one[i].at, one[i - 1].at);
    }
  }
  EXPECT_NE(one.front().at, other.front().at);
}

TEST(DoesADurationFollowItsLaw, with_the_mean_it_states) {
  for (const char* text :
       {"100 s", "{exponential: 100 s}", "{weibull: 100 s, shape: 0.7}", "{lognormal: 100 s, sigma: 0.8}", "{uniform: [50 s, 150 s]}"}) {
    SCOPED_TRACE(text);
    const DurationLaw law = DurationLaw::read(config::Node::load_text(text, "t"));
    EXPECT_EQ(law.mean_s(), 100);
    Random random(7);
    constexpr int draws = 100000;
    double sum = 0;
    for (int i = 0; i < draws; ++i) sum += law.draw_s(random);
    EXPECT_NEAR(sum / draws, 100, 4 * 146 / std::sqrt(draws));  // the widest, Weibull of shape 0.7, deviates by 1.46 means
  }
}

TEST(DoesASwitchFlap, in_its_rhythm) {
  const FaultScenario faults = scenario("{rail: {source: flapping, component: switch, from: 10 s, period: 60 s, down: 5 s, times: 3}}");
  const std::vector<Fault> drawn = history(faults, 1, 1);
  ASSERT_EQ(drawn.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(drawn[i].at, to_ns(10 + 60.0 * static_cast<double>(i)));
    EXPECT_EQ(drawn[i].duration, to_ns(5));
    EXPECT_DOUBLE_EQ(drawn[i].slowdown, 8.0 / 7);  // seven rails carry the traffic of eight
  }
}

}  // namespace
}  // namespace rehearse::sim

// Cuts and shares against brute force over all choices, on random instances with fixed seeds; certificates that prove themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/federated/cuts.hpp"
#include "sim/federated/plan.hpp"
#include "sim/federated/protocol.hpp"
#include "sim/federated/shares.hpp"
#include "sim/federated/sum_cuts.hpp"
#include "tests/federated/instances.hpp"
#include "tests/federated/jobs.hpp"

namespace rehearse::federated {
namespace {

// Every number random: 1 to 4 devices, 1 to 3 resources, some of which a device does not use, 1 to 5 cuts.
Problem random_problem(std::uint64_t seed) {
  config::Random random(seed);
  const auto devices = 1 + random.next() % 4, resources = 1 + random.next() % 3;
  Problem problem{.resources = static_cast<int>(resources), .options = {}};
  for (std::uint64_t n = 0; n < devices; ++n) {
    std::vector<Option> options(1 + random.next() % 5);
    for (Option& option : options) {
      option.alpha_s = 60 * random.uniform();
      for (std::uint64_t i = 0; i < resources; ++i) option.root[i] = random.next() % 6 == 0 ? 0 : std::sqrt(60 * random.uniform());
    }
    problem.add_device(options);
  }
  return problem;
}

// The least of a value over all choices of cuts.
double brute_force(const Problem& problem, const std::function<double(const Cuts&)>& value) {
  Cuts cuts(problem.devices(), 0);
  double best = value(cuts);
  while (true) {
    std::size_t n = 0;
    while (n < cuts.size() && ++cuts[n] == problem.of(n).size()) cuts[n++] = 0;
    if (n == cuts.size()) return best;
    best = std::min(best, value(cuts));
  }
}

double largest(const std::vector<double>& values) { return *std::ranges::max_element(values); }

TEST(IsTheChoiceOptimal, on_1000_random_instances) {
  int proven = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Problem problem = random_problem(seed);
    const ChosenCuts found = choose_cuts(problem);
    const double optimum_s = brute_force(problem, [&](const Cuts& cuts) { return exact_shares(chosen(problem, cuts)).round_s; });
    proven += found.proven ? 1 : 0;
    EXPECT_NEAR(found.round_s, optimum_s, 1e-11 * optimum_s) << seed;
    EXPECT_LE(found.bound_s, optimum_s * (1 + 1e-11)) << seed;
  }
  EXPECT_EQ(proven, 1000);
}

// (11) from the devices' blame alone = T* = the largest latency with the shares; shares fit; no schedule is faster than (14).
TEST(IsTheChoiceOptimal, primal_is_dual) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Problem problem = random_problem(seed);
    const std::vector<Option> options = chosen(problem, choose_cuts(problem).cuts);
    const Shares shares = exact_shares(options);
    EXPECT_NEAR(shares.certificate_s, shares.round_s, 1e-11 * shares.round_s) << seed;
    EXPECT_NEAR(largest(shares.latency_s), shares.round_s, 1e-11 * shares.round_s) << seed;
    EXPECT_GE(shares.round_s, any_schedule_s(options) * (1 - 1e-12)) << seed;
    for (int i = 0; i < max_resources; ++i) {
      double sum = 0;
      for (const PerResource& share : shares.share) sum += share[i];
      EXPECT_LE(sum, 1 + 1e-12) << seed;
    }
  }
}

// Reserved shares are at most R + 1 times as slow as any schedule, and never slower than one device after another.
TEST(IsTheChoiceOptimal, the_bounds_of_reserved_shares) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem problem = random_problem(seed);
    const std::vector<Option> options = chosen(problem, alone_best(problem));
    double one_by_one_s = 0;
    for (const Option& option : options) one_by_one_s += option.alone_s();
    const double round_s = exact_shares(options).round_s;
    EXPECT_LE(round_s, (problem.resources + 1) * any_schedule_s(options) * (1 + 1e-12)) << seed;
    EXPECT_LE(round_s, one_by_one_s * (1 + 1e-12)) << seed;
  }
}

// dT / d ln(capacity) and dT / d alpha by differences.
TEST(IsTheChoiceOptimal, sensitivities_are_derivatives) {
  constexpr double step = 1e-6;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Problem problem = random_problem(seed);
    std::vector<Option> options = chosen(problem, alone_best(problem));
    const Shares shares = exact_shares(options);
    if (shares.prices[0] + shares.prices[1] + shares.prices[2] == 0) continue;
    for (int i = 0; i < max_resources; ++i) {
      std::vector<Option> faster = options, slower = options;
      for (std::size_t n = 0; n < options.size(); ++n) {
        faster[n].root[i] *= std::exp(-step / 2);
        slower[n].root[i] *= std::exp(step / 2);
      }
      const double slope = (exact_shares(slower).round_s - exact_shares(faster).round_s) / (2 * step);
      EXPECT_NEAR(shares.seconds_per_log[i], slope, 1e-5 * shares.round_s) << seed;
    }
    for (std::size_t n = 0; n < options.size(); ++n) {
      std::vector<Option> later = options, earlier = options;
      later[n].alpha_s += step * shares.round_s;
      earlier[n].alpha_s -= step * shares.round_s;
      const double slope = (exact_shares(later).round_s - exact_shares(earlier).round_s) / (2 * step * shares.round_s);
      EXPECT_NEAR(shares.blame[n], slope, 1e-4) << seed;
    }
  }
}

// Two devices that share nothing: one uses the first resource alone, the other the second. Each has its own to itself: T = alpha + seconds.
TEST(IsTheChoiceOptimal, where_groups_of_resources_do_not_touch) {
  const std::vector<Option> options{{10, {std::sqrt(5.0), 0, 0}}, {3, {0, std::sqrt(4.0), 0}}, {14.5, {}}};
  const Shares shares = exact_shares(options);
  EXPECT_NEAR(shares.round_s, 15, 1e-12);
  EXPECT_NEAR(shares.latency_s[1], 7, 1e-12);
  EXPECT_NEAR(shares.share[0][0], 1, 1e-12);
  EXPECT_NEAR(shares.share[1][1], 1, 1e-12);
  EXPECT_EQ(shares.share[2], PerResource{});
  EXPECT_NEAR(shares.certificate_s, 15, 1e-12);
}

TEST(IsTheChoiceOptimal, for_the_sum_of_latencies) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem problem = random_problem(seed);
    const ChosenCuts found = choose_cuts_for_sum(problem);
    const double optimum_s = brute_force(problem, [&](const Cuts& cuts) { return least_sum_s(chosen(problem, cuts)); });
    EXPECT_NEAR(found.round_s, optimum_s, 1e-11 * optimum_s) << seed;
    EXPECT_LE(found.bound_s, optimum_s * (1 + 1e-11)) << seed;
  }
  for (const reference::Instance& instance : reference::instances()) {
    const ChosenCuts found = choose_cuts_for_sum(instance.problem);
    const double optimum_s = reference::number(instance.expected.at("least_sum_s"));
    EXPECT_NEAR(found.round_s, optimum_s, 1e-9 * optimum_s) << instance.name;
    EXPECT_EQ(instance.named(found.cuts), reference::words(instance.expected.at("least_sum_cuts"))) << instance.name;
  }
}

TEST(IsTheChoiceOptimal, decentral_finds_what_the_centre_finds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem problem = random_problem(seed);
    const std::vector<Option> options = chosen(problem, alone_best(problem));
    const Negotiation given = negotiate(options);
    const double round_s = exact_shares(options).round_s;
    EXPECT_TRUE(given.settled) << seed;
    EXPECT_NEAR(given.round_s, round_s, 1e-8 * round_s) << seed << " after " << given.rounds;
    const Negotiation free = negotiate(problem);
    const double optimum_s = choose_cuts(problem).round_s;
    EXPECT_GE(free.round_s, optimum_s * (1 - 1e-8)) << seed;
    EXPECT_TRUE(!free.fixed_point || free.round_s <= optimum_s * (1 + 1e-8)) << seed;
  }
  for (const reference::Instance& instance : reference::instances()) {
    const std::vector<Option> options = chosen(instance.problem, choose_cuts(instance.problem).cuts);
    const double optimum_s = reference::number(instance.expected.at("optimum_s"));
    EXPECT_NEAR(negotiate(options).round_s, optimum_s, 1e-8 * optimum_s) << instance.name;
  }
}

// Many devices: the gap vanishes.
TEST(IsTheChoiceOptimal, nearly_with_thousands_of_devices) {
  const Job job = job_from(
      "model: resnet18-cifar\nfederated:\n  devices:\n    - {name: d, count: 3000, speed: {lognormal: 20 GFLOP/s, sigma: 1}, samples: "
      "{uniform: "
      "[50, 500]}, uplink: {lognormal: 1 Gbps, sigma: 1}, downlink: {lognormal: 3 Gbps, sigma: 1}}\n  server: {speed: 100 TFLOP/s}\n");
  EXPECT_LE(tuned_plan(job).gap(), 1e-6);
}

}  // namespace
}  // namespace rehearse::federated

// What must follow from the model without having been put in: which way the optimum moves when something changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "sim/federated/faults.hpp"
#include "sim/federated/methods.hpp"
#include "sim/federated/run_rounds.hpp"
#include "sim/federated/simulate_round.hpp"
#include "sim/federated/tune.hpp"
#include "tests/federated/jobs.hpp"

namespace rehearse::federated {
namespace {

// Three devices of 8 to 30 GFLOP/s.
std::string job_text(double uplink_mbps, double limit = 1, const std::string& server = "500 GFLOP/s", double first_gflops = 8) {
  return fmt::format(
      "model: resnet18-cifar\nfederated:\n  devices:\n"
      "    - {{name: a, speed: {} GFLOP/s, samples: 500, uplink: {} Mbps, downlink: 200 Mbps, latency: 2 ms}}\n"
      "    - {{name: b, speed: 15 GFLOP/s, samples: 700, uplink: {} Mbps, downlink: 200 Mbps, latency: 2 ms}}\n"
      "    - {{name: c, speed: 30 GFLOP/s, samples: 900, uplink: {} Mbps, downlink: 200 Mbps, latency: 2 ms}}\n"
      "  server: {{speed: {}}}\n  leakage: {{limit: {}}}\n",
      first_gflops, uplink_mbps, uplink_mbps, uplink_mbps, server, limit);
}

Plan plan_of(const std::string& text) { return make_plan(job_from(text)); }

int depth(const Plan& plan) { return std::accumulate(plan.cuts.begin(), plan.cuts.end(), 0); }

TEST(Directions, more_uplink_moves_cuts_earlier) {
  int before = depth(plan_of(job_text(5))), first = before;
  for (const double mbps : {20.0, 80.0, 320.0, 1280.0, 5120.0}) {
    const int now = depth(plan_of(job_text(mbps)));
    EXPECT_LE(now, before) << mbps;
    before = now;
  }
  EXPECT_LT(before, first);
}

TEST(Directions, a_tighter_limit_never_shortens_the_round) {
  double before_s = 0;
  for (const double limit : {1.0, 0.99, 0.95, 0.9, 0.7, 0.5, 0.1, 0.0}) {
    const Job job = job_from(job_text(300, limit));
    const Plan plan = make_plan(job);
    EXPECT_GE(plan.round_s, before_s * (1 - 1e-9)) << limit;
    for (std::size_t n = 0; n < plan.cuts.size(); ++n) EXPECT_LE(job.leakage[plan.cuts[n]], limit);
    before_s = plan.round_s;
  }
}

TEST(Directions, twice_of_a_resource_never_lengthens_the_round) {
  for (const double mbps : {10.0, 40.0, 160.0}) EXPECT_LE(plan_of(job_text(2 * mbps)).round_s, plan_of(job_text(mbps)).round_s);
  EXPECT_LE(plan_of(job_text(40, 1, "1000 GFLOP/s")).round_s, plan_of(job_text(40)).round_s);
}

TEST(Directions, one_straggler_takes_the_blame) {
  double before = 0;
  for (const double gflops : {8.0, 2.0, 0.5, 0.1, 0.01}) {
    const double blame = plan_of(job_text(100, 0, "500 GFLOP/s", gflops)).blame[0];
    EXPECT_GE(blame, before);
    before = blame;
  }
  EXPECT_GT(before, 0.99);
}

TEST(Directions, tuned_is_never_slower_than_any_other_method) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Job job = job_from(random_job_text(seed));
    const std::vector<MethodRow> rows = compare_methods(job, {}, {.runs = 3});
    for (const MethodRow& row : rows) {
      if (row.method == "retune") continue;  // these rounds are alike
      EXPECT_LE(rows.front().formula_s, row.formula_s * (1 + 1e-9)) << seed << " " << row.method;
      EXPECT_GE(row.simulated_s.value_or(row.formula_s), row.any_schedule_s * (1 - 1e-9)) << seed << " " << row.method;
    }
  }
}

// Total power: sending everything over half of the band takes less than twice as long, so that no round gets longer; with two devices a
// grid over shares finds nothing faster.
TEST(Directions, total_power_against_a_grid) {
  const auto text = [](const char* power) {
    return fmt::format(
        "model: vgg16-cifar\nfederated:\n  devices:\n"
        "    - {{name: a, speed: 15 GFLOP/s, samples: 400, radio: {{distance: 200 m}}}}\n"
        "    - {{name: b, speed: 40 GFLOP/s, samples: 900, radio: {{distance: 450 m}}}}\n"
        "  server: {{speed: 500 GFLOP/s}}\n  cuts: conv4\n  radio: {{power: {}}}\n",
        power);
  };
  const Job job = job_from(text("total"));
  const Plan plan = make_plan(job);
  EXPECT_LE(plan.round_s, plan_of(text("per-hertz")).round_s);
  EXPECT_NEAR(plan.round_s, plan.bound_s, 1e-7 * plan.round_s);
  double best_s = 1e300;
  constexpr int steps = 40;
  for (int x = 1; x < steps; ++x) {
    for (int y = 1; y < steps; ++y) {
      for (int z = 1; z < steps; ++z) {
        const double a = static_cast<double>(x) / steps, b = static_cast<double>(y) / steps, c = static_cast<double>(z) / steps;
        best_s = std::min(best_s, plan_with_shares(job, plan.cuts, {{a, b, c}, {1 - a, 1 - b, 1 - c}}).round_s);
      }
    }
  }
  EXPECT_GE(best_s, plan.round_s);
  EXPECT_LE(best_s, 1.02 * plan.round_s);
}

// Cuts free: the bound over all cuts is met by those that it leads to.
TEST(Directions, total_power_with_free_cuts) {
  const Job job = job_from(
      "model: vgg16-cifar\nfederated:\n  devices:\n    - {name: d, count: 20, speed: {lognormal: 20 GFLOP/s, sigma: 0.6}, samples: "
      "{uniform: [100, 900]}, "
      "radio: {distance: {uniform: [50 m, 400 m]}}}\n  server: {speed: 500 GFLOP/s}\n  radio: {power: total}\n");
  const Plan plan = make_plan(job);
  EXPECT_LE(plan.bound_s, plan.round_s * (1 + 1e-9));
  EXPECT_LE(plan.gap(), 1e-3);
  const RoundResult formula = round_by_formula(job, plan);
  EXPECT_NEAR(simulate_round(job, plan).result.round_s, formula.round_s, 1e-9 * formula.round_s);
}

// One band for both directions against a grid over how it is shared out.
TEST(Directions, one_band_against_a_grid) {
  const Job job = job_from(
      "model: vgg16-cifar\nfederated:\n  devices:\n"
      "    - {name: a, speed: 15 GFLOP/s, samples: 400, uplink: 100 Mbps, downlink: 300 Mbps}\n"
      "    - {name: b, speed: 40 GFLOP/s, samples: 900, uplink: 50 Mbps, downlink: 90 Mbps}\n"
      "  server: {speed: 50 TFLOP/s}\n  cuts: conv4\n  radio: {duplex: tdd}\n");
  const Plan plan = make_plan(job);
  double best_s = 1e300;
  constexpr int steps = 40;
  for (int x = 1; x < steps; ++x) {
    for (int y = 1; x + y < steps; ++y) {
      for (int z = 1; x + y + z < steps; ++z) {
        const auto part = [](int of) { return static_cast<double>(of) / steps; };
        best_s =
            std::min(best_s, plan_with_shares(job, plan.cuts, {{part(x), part(y), 0.5}, {part(z), part(steps - x - y - z), 0.5}}).round_s);
      }
    }
  }
  EXPECT_GE(best_s, plan.round_s * (1 - 1e-3));  // the grid gives the server away in halves
  EXPECT_LE(best_s, 1.05 * plan.round_s);
}

TEST(Draws, of_a_device_do_not_depend_on_how_many_there_are) {
  const auto text = [](int count) {
    return fmt::format(
        "model: vgg5-cifar\nfederated:\n  devices:\n    - {{name: d, count: {}, speed: {{lognormal: 5 GFLOP/s, sigma: 0.6}}, samples: "
        "{{uniform: [10, 500]}}, radio: {{distance: {{uniform: [20 m, 300 m]}}}}}}\n  server: {{speed: 1 TFLOP/s}}\n",
        count);
  };
  const Job few = job_from(text(7)), many = job_from(text(70));
  for (std::size_t n = 0; n < few.devices.size(); ++n) {
    EXPECT_EQ(few.devices[n].flop_per_s, many.devices[n].flop_per_s);
    EXPECT_EQ(few.devices[n].samples, many.devices[n].samples);
    EXPECT_EQ(few.devices[n].uplink_bytes_per_s, many.devices[n].uplink_bytes_per_s);
  }
  EXPECT_NE(many.devices[0].flop_per_s, many.devices[1].flop_per_s);
  // Means of 70 draws: the law's within a few deviations.
  double sum = 0;
  for (const Device& device : many.devices) sum += device.flop_per_s;
  EXPECT_NEAR(sum / 70, 5e9, 1.5e9);
}

TEST(Run, rounds_differ_only_by_what_is_drawn) {
  const std::string base = job_text(100) + "training: {rounds: 8}\n";
  const RunHistory steady = run_rounds(job_from(base), [](double) {});
  ASSERT_EQ(steady.rounds.size(), 8U);
  EXPECT_NEAR(steady.training_s, 8 * steady.rounds.front().round_s, 1e-9 * steady.training_s);
  EXPECT_EQ(steady.useful_share(), 1);

  const RunHistory drops = run_rounds(job_from(job_text(100) + "  dropout: 0.3 /round\ntraining: {rounds: 40}\n"), [](double) {});
  std::size_t left = 0, finished = 0;
  for (const RoundRow& row : drops.rounds) {
    left += row.dropped;
    finished += row.finished;
  }
  EXPECT_EQ(left + finished, 120U);
  EXPECT_NEAR(static_cast<double>(left), 36, 20);  // 120 chances of 0.3: four deviations
  EXPECT_LT(drops.useful_share(), 1);
  EXPECT_EQ(run_rounds(job_from(job_text(100) + "  dropout: 0.3 /round\ntraining: {rounds: 40}\n"), [](double) {}).training_s,
            drops.training_s);
}

TEST(Run, where_nobody_finishes_in_time) {
  const RunHistory history = run_rounds(job_from(job_text(100) + "  deadline: 1 s\ntraining: {rounds: 2}\n"), [](double) {});
  for (const RoundRow& row : history.rounds) EXPECT_EQ(row.late, 3U);
  EXPECT_EQ(history.useful_share(), 0);
}

TEST(Run, the_first_ones_count) {
  const RunHistory history =
      run_rounds(job_from(job_text(100) + "  select: {devices: 2, over: 1.5}\ntraining: {rounds: 5}\n"), [](double) {});
  for (const RoundRow& row : history.rounds) {
    EXPECT_EQ(row.selected, 3U);
    EXPECT_GE(row.finished, 2U);
    EXPECT_EQ(row.finished + row.late, 3U);
  }
}

TEST(Run, a_server_that_fails_loses_its_round) {
  const Job job = job_from(job_text(100) + "training: {rounds: 30}\nfaults: {server: {mtbf: 10 min, repair: 1 min}}\n");
  const RunHistory history = run_rounds(job, [](double) {});
  EXPECT_GT(history.failures, 0U);
  EXPECT_EQ(history.rounds.size(), 30 + history.failures);
  EXPECT_LT(history.useful_share(), 1);
}

TEST(Faults, who_is_slow_who_leaves_who_is_late) {
  const Job job = job_from(job_text(100));
  const Plan plan = make_plan(job);
  const double round_s = simulate_round(job, plan).result.round_s;
  const RoundResult slow = simulate_round(job, plan, conditions_of(job, {"device 0 slow 3"})).result;
  const double own_s = slow.devices[0].phases[Phase::forward] + slow.devices[0].phases[Phase::backward];
  EXPECT_NEAR(slow.round_s, round_s + own_s * 2 / 3, 1e-6 * round_s);  // three times its own work, the rest as before
  const RoundResult left = simulate_round(job, plan, conditions_of(job, {"device b at 1 s"})).result;
  EXPECT_EQ(left.devices[1].fate, Fate::dropped);
  EXPECT_NEAR(left.devices[1].phases.sum(), 1, 1e-9);
  const SimulatedRound lost = simulate_round(job, plan, conditions_of(job, {"server at 5 s"}));
  EXPECT_TRUE(lost.lost);
  EXPECT_NEAR(lost.result.round_s, 5, 1e-9);
  const RoundResult healthy = simulate_round(job, plan).result,
                    uplink = simulate_round(job, plan, conditions_of(job, {"uplink slow 2"})).result;
  for (std::size_t n = 0; n < 3; ++n)
    EXPECT_NEAR(uplink.devices[n].phases[Phase::uplink], 2 * healthy.devices[n].phases[Phase::uplink], 1e-6);
  const Job hurried = job_from(job_text(100) + "  deadline: 10 s\n");
  const RoundResult late = simulate_round(hurried, plan, conditions_of(hurried, {})).result;
  EXPECT_NEAR(late.round_s, 10, 1e-6);
  EXPECT_EQ(late.devices[0].fate, Fate::late);
  EXPECT_NEAR(late.devices[0].phases.sum(), late.round_s, 1e-9 * late.round_s);
}

// With reserved shares, who is late by formula is late when simulated, and at the same time.
TEST(Deadline, holds_in_the_formula_too) {
  const Job free = job_from(job_text(100));
  const Plan plan = plan_with_shares(free, make_plan(free).cuts, equal_shares(free, make_plan(free).cuts));
  const auto [first_s, last_s] = std::ranges::minmax(plan.latency_s);
  ASSERT_LT(first_s, 0.99 * last_s);
  for (const double deadline_s : {0.5 * first_s, (first_s + last_s) / 2, 2 * last_s}) {
    const Job job = job_from(job_text(100) + fmt::format("  deadline: {} s\n", deadline_s));
    const RoundResult formula = round_by_formula(job, plan), simulated = simulate_round(job, plan, conditions_of(job, {})).result;
    EXPECT_NEAR(formula.round_s, simulated.round_s, 1e-9 * simulated.round_s);
    EXPECT_EQ(formula.anybody_finished(), deadline_s > first_s);
    for (std::size_t n = 0; n < formula.devices.size(); ++n) {
      EXPECT_EQ(formula.devices[n].fate, simulated.devices[n].fate);
      EXPECT_NEAR(formula.devices[n].end_s, simulated.devices[n].end_s, 1e-9 * deadline_s);
      EXPECT_NEAR(formula.devices[n].phases.sum(), formula.round_s, 1e-9 * formula.round_s);
    }
  }
}

// The file that tune writes simulates to the round that it promises.
TEST(TunedJob, simulates_to_the_same_round) {
  const Job job = job_from(
      "model: vgg5-cifar\nfederated:\n  devices:\n    - {name: d, count: 4, speed: {lognormal: 5 GFLOP/s, sigma: 0.6}, samples: {uniform: "
      "[10, 500]}, "
      "radio: {distance: {uniform: [20 m, 300 m]}}}\n    - {name: w, speed: 9 GFLOP/s, samples: 100, uplink: 10 Mbps, downlink: 20 Mbps, "
      "link: "
      "dedicated}\n  server: {speed: 10 GFLOP/s}\n");
  const Plan plan = tuned_plan(job);
  const std::string folder = testing::TempDir();
  const std::string shares = folder + "/tuned-shares.csv";
  std::ofstream(shares) << shares_csv(job, plan);
  const std::string yaml = tuned_job_yaml(job, plan, shares);
  EXPECT_EQ(yaml.find("d 3"), std::string::npos) << "devices stay as they were listed:\n" << yaml;
  const Job tuned = job_from(yaml);
  EXPECT_EQ(tuned.given_cuts, plan.cuts);
  const Plan again = make_plan(tuned);
  EXPECT_NEAR(again.round_s, plan.round_s, 1e-12 * plan.round_s);
  const double expected_s = round_by_formula(job, plan).round_s;
  const RoundResult simulated = simulate_round(tuned, again).result;
  EXPECT_NEAR(simulated.round_s, expected_s, 1e-9 * expected_s);
  // Links of a device's own are no part of the band.
  EXPECT_NEAR(simulated.uplink.busy_s, round_by_formula(job, plan).uplink.busy_s, 1e-9 * expected_s);
  EXPECT_NEAR(simulated.downlink.busy_s, round_by_formula(job, plan).downlink.busy_s, 1e-9 * expected_s);
}

// Rates that change between rounds: a round has those of its beginning, and tuning for every round is worth its negotiation.
TEST(RatesOverTime, are_those_of_the_beginning_of_a_round) {
  const std::string text =
      "model: vgg5-cifar\nfederated:\n  devices:\n    - {name: a, speed: 9 GFLOP/s, samples: 100, uplink: 10 Mbps, downlink: 20 Mbps}\n"
      "    - {name: b, speed: 9 GFLOP/s, samples: 100, uplink: 10 Mbps, downlink: 20 Mbps}\n  server: {speed: 100 GFLOP/s}\n";
  const double plain_s = round_by_formula(job_from(text), make_plan(job_from(text))).round_s;
  const auto with_rates = [&](double from_s) {
    return job_from(text + fmt::format("  radio: {{rates: [[{}, a, 1.25e5, 2.5e5]]}}\ntraining: {{rounds: 4}}\n", from_s));
  };
  const auto rounds_of = [](const Job& job) { return run_rounds(job, [](double) {}).rounds; };
  const auto late = rounds_of(with_rates(1.5 * plain_s));
  EXPECT_NEAR(late[0].round_s, plain_s, 1e-9 * plain_s);
  EXPECT_NEAR(late[1].round_s, plain_s, 1e-9 * plain_s);
  EXPECT_GT(late[2].round_s, 2 * plain_s);
  EXPECT_EQ(late[2].round_s, late[3].round_s);
  const auto early = rounds_of(with_rates(0));
  EXPECT_EQ(early[0].round_s, early[3].round_s);
  EXPECT_GT(late[3].round_s, early[0].round_s);  // the cuts and shares are those of the first round's rates

  const std::vector<MethodRow> rows = compare_methods(with_rates(1.5 * plain_s), {"retune"}, {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_LT(*rows[1].simulated_s, *rows[0].simulated_s);
  EXPECT_FALSE(compare_methods(job_from(text), {"retune"}, {})[0].simulated_s);
}

}  // namespace
}  // namespace rehearse::federated

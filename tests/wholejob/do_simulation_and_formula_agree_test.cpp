// Where the formula's assumptions hold (failures rare against the recovery time and the interval), the mean over many simulated runs is
// the formula's ETTR.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "sim/wholejob/report.hpp"
#include "sim/wholejob/reporters/numbers.hpp"
#include "sim/wholejob/simulate_run.hpp"
#include "tests/wholejob/runs.hpp"

namespace rehearse::sim {
namespace {

Statistics simulated_ettr(const WholeJobPlan& plan, int runs) {
  return statistics_over(simulate_runs(plan, 1, runs, 2), [](const RunResult& run) { return run.ettr(); });
}

std::string sections(double steps, int interval, double save_s, double rate_per_day) {
  return fmt::format(
      "training: {{steps: {}, init: 100 s}}\ncheckpoint: {{interval: {}, save_time: {} s, load_time: 0 s}}\n"
      "faults: {{all: {{source: poisson, rate: {} /day}}}}\n",
      steps, interval, save_s, rate_per_day);
}

struct Setting {
  double steps;
  int interval;
  double save_s, rate_per_day;
};

class DoSimulationAndFormulaAgree : public testing::TestWithParam<Setting> {};

// The formula leaves out failures during recovery and saving, which are a share 1 - ETTR of all, and the piece of a save that a failure
// undoes: both of second order. What they can do to ETTR is bounded by (1 - ETTR)^2, and added to the confidence interval.
TEST_P(DoSimulationAndFormulaAgree, over_seeds) {
  const auto& [steps, interval, save_s, rate] = GetParam();
  const tests::TenSecondJob ten(sections(steps, interval, save_s, rate));
  const double by_formula = formula(ten.plan.formula_input).ettr;
  const Statistics all = simulated_ettr(ten.plan, 200);
  const double second_order = (1 - by_formula) * (1 - by_formula);
  EXPECT_GE(by_formula, all.low - second_order);
  EXPECT_LE(by_formula, all.high + second_order);
  EXPECT_LT(std::abs(all.mean - by_formula), 0.003);
}

INSTANTIATE_TEST_SUITE_P(Settings, DoSimulationAndFormulaAgree,
                         testing::Values(Setting{300000, 10, 1.0, 0.005}, Setting{300000, 100, 5.0, 0.005}, Setting{100000, 50, 4.0, 0.05},
                                         Setting{100000, 200, 20.0, 0.05}));

// Two runs that differ say little: Student's t is wide, yet no run is in step for more than all of its time, or has less than no failures.
TEST(IntervalsOfTheMean, EndWhereTheQuantityDoes) {
  const tests::TenSecondJob ten(sections(3000, 100, 5, 2));
  WholeJobReport report;
  report.plan = ten.plan;
  report.runs = simulate_runs(ten.plan, 1, 2, 1);
  ASSERT_GT(statistics_over(report.runs, [](const RunResult& run) { return run.ettr(); }).high, 1);
  int cut = 0;
  for (const Quantity& quantity : quantities_of(report)) {
    const Statistics all = statistics_of(quantity, report.runs).value();
    EXPECT_GE(all.low, 0) << quantity.name;
    EXPECT_LE(all.low, all.mean) << quantity.name;
    EXPECT_GE(all.high, all.mean) << quantity.name;
    EXPECT_LE(all.high, quantity.unit == Quantity::Unit::share ? 1 : INFINITY) << quantity.name;
    cut += all.low == 0 && all.mean > 0 ? 1 : 0;
  }
  EXPECT_GT(cut, 0);
}

// Nothing fails in half of the runs: they have no time between failures of their own, and their time counts all the same. The mean of those
// that had any would be at most as long as a run, however rare failures are. A Poisson source fails at its rate in all of the time; 40 runs
// of some 20 failures in all are within three standard errors of it.
TEST(TimeBetweenFailures, IsAllTimeOverAllFailures) {
  const tests::TenSecondJob ten(sections(3000, 100, 5, 0.25));
  WholeJobReport report;
  report.plan = ten.plan;
  report.runs = simulate_runs(ten.plan, 1, 40, 1);
  report.formula = formula(ten.plan.formula_input);
  const std::vector<Quantity> quantities = quantities_of(report);
  const auto& mttf = *std::ranges::find(quantities, "mttf_s", &Quantity::key);
  double time_s = 0, failures = 0;
  for (const RunResult& run : report.runs) {
    time_s += to_s(run.wall);
    failures += static_cast<double>(run.all_failures());
  }
  const Statistics all = statistics_of(mttf, report.runs).value();
  EXPECT_NEAR(all.mean, time_s / failures, 1e-9 * all.mean);
  EXPECT_NEAR(all.mean, *mttf.by_formula, 3 / std::sqrt(failures) * all.mean);
  EXPECT_LT(all.low, *mttf.by_formula);
  EXPECT_GT(all.high, *mttf.by_formula);
  std::vector<RunResult> without;
  std::ranges::copy_if(report.runs, std::back_inserter(without), [](const RunResult& run) { return run.all_failures() == 0; });
  ASSERT_GT(without.size(), 6U);
  ASSERT_LT(without.size(), 34U);
  EXPECT_FALSE(statistics_of(mttf, without).has_value());
}

// A job of so much time saves nothing after its last step: where nothing fails and the interval is as long as the job, nothing at all.
TEST(CheckpointsByFormula, AreThoseTaken) {
  for (const auto& [length, saves] : {std::pair("time: 10 h", 0.0), {"steps: 3600", 1.0}}) {
    const tests::TenSecondJob ten(
        fmt::format("training: {{{}, init: 100 s}}\ncheckpoint: {{interval: auto, save_time: 5 s, load_time: 0 s}}\n", length));
    const RunResult run = tests::run_alone(ten.plan, 1);
    EXPECT_EQ(run.saves, saves) << length;
    EXPECT_EQ(ten.plan.formula_input.saves(), saves) << length;
    EXPECT_NEAR(run.ettr(), formula(ten.plan.formula_input).ettr, ten.plan.step_s / to_s(run.wall)) << length;
  }
}

// The spans of a run are SimGrid activities one after another: its clock ends where the exact account does, up to the rounding of one
// double (2e-16) per event.
TEST(DoesSimgridsClockAgree, with_the_account) {
  const tests::TenSecondJob ten(sections(100000, 50, 4, 1));
  const RunResult result = simulate_runs(ten.plan, 3, 1, 1).front();
  EXPECT_GT(result.all_failures(), 50);
  EXPECT_NEAR(result.clock_s / to_s(result.wall), 1, 1e-12);
}

TEST(DoSeedsDecideAlone, whatever_the_number_of_processes) {
  const tests::TenSecondJob ten(sections(5000, 50, 4, 1));
  const std::vector<RunResult> one = simulate_runs(ten.plan, 7, 12, 1);
  const std::vector<RunResult> three = simulate_runs(ten.plan, 7, 12, 3);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].seed, 7 + i);
    EXPECT_EQ(to_numbers(one[i]), to_numbers(three[i]));
  }
  EXPECT_NE(one[0].wall, one[1].wall);
}

// Simulated ETTR over common histories is lower at intervals well below and well above (44): the optimum lies between.
TEST(DoesTheSimulatedOptimumBracketYoungs, on_both_sides) {
  const auto ettr_at = [](int interval) {
    const tests::TenSecondJob ten(sections(40000, interval, 30, 0.5));
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) sum += tests::run_alone(ten.plan, seed).ettr();
    return sum / 100;
  };
  // 8 nodes x 0.5 a day = 4 / 86400 s: sqrt(2 * 30 * 21600) = 1138 s, 114 steps.
  const tests::TenSecondJob automatic(
      "training: {steps: 40000, init: 100 s}\ncheckpoint: {interval: auto, save_time: 30 s, load_time: 0 s}\n"
      "faults: {all: {source: poisson, rate: 0.5 /day}}\n");
  EXPECT_EQ(automatic.plan.training.interval, 114);
  const double best = ettr_at(114);
  EXPECT_GT(best, ettr_at(57));
  EXPECT_GT(best, ettr_at(228));
}

}  // namespace
}  // namespace rehearse::sim

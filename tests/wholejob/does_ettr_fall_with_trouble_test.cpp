// More failures, more nodes, longer repairs, longer saves: each alone lowers ETTR, by the formula and simulated.
#include <gtest/gtest.h>

#include "tests/wholejob/runs.hpp"

namespace rehearse::sim {
namespace {

struct Trouble {
  double rate_per_day = 0.2, recovery_s = 200, save_s = 10;
};

struct Answer {
  double formula = 0, simulated = 0;
};

Answer answer(const Trouble& trouble) {
  const tests::TenSecondJob ten(
      fmt::format("training: {{steps: 20000, init: 100 s}}\ncheckpoint: {{interval: 40, save_time: {} s, load_time: 5 s}}\n"
                  "faults: {{all: {{source: poisson, rate: {} /day, recovery: {} s}}}}\n",
                  trouble.save_s, trouble.rate_per_day, trouble.recovery_s));
  constexpr int runs = 60;
  Answer out{.formula = formula(ten.plan.formula_input).ettr};
  for (std::uint64_t seed = 1; seed <= runs; ++seed) out.simulated += tests::run_alone(ten.plan, seed).ettr() / runs;
  return out;
}

template <class Set>
void expect_falls(const std::vector<double>& values, Set set) {
  Answer before{2, 2};
  for (const double value : values) {
    Trouble trouble;
    set(trouble, value);
    const Answer now = answer(trouble);
    EXPECT_LT(now.formula, before.formula) << value;
    EXPECT_LT(now.simulated, before.simulated) << value;
    before = now;
  }
}

TEST(DoesEttrFallWithTrouble, failure_rate) {
  expect_falls({0.05, 0.2, 0.8, 3.2}, [](Trouble& trouble, double value) { trouble.rate_per_day = value; });
}
TEST(DoesEttrFallWithTrouble, repair_time) {
  expect_falls({20, 100, 500, 2500}, [](Trouble& trouble, double value) { trouble.recovery_s = value; });
}
TEST(DoesEttrFallWithTrouble, save_time) {
  expect_falls({1, 5, 25, 125}, [](Trouble& trouble, double value) { trouble.save_s = value; });
}

// The same job on more nodes, each failing as often.
TEST(DoesEttrFallWithTrouble, nodes) {
  Answer before{2, 2};
  for (const int dp : {1, 2, 4, 8}) {
    const Job job = tests::small_job(16 * dp, fmt::format("{{tp: 8, pp: 2, dp: {}}}", dp), "{global: 48, micro: 1, sequence: 128}",
                                     "training: {steps: 20000}\ncheckpoint: {interval: 40, save_time: 10 s, load_time: 5 s}\n"
                                     "faults: {all: {source: poisson, rate: 0.5 /day}}\n");
    const WholeJobPlan plan = plan_whole_job(job, 10, "given");
    Answer now{.formula = formula(plan.formula_input).ettr};
    for (std::uint64_t seed = 1; seed <= 60; ++seed) now.simulated += tests::run_alone(plan, seed).ettr() / 60;
    EXPECT_LT(now.formula, before.formula);
    EXPECT_LT(now.simulated, before.simulated);
    before = now;
  }
}

}  // namespace
}  // namespace rehearse::sim

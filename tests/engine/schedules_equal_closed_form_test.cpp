// Uniform chunks and free messages: T = (m v + p - 1)(f + b), exactly (Narayanan et al. 2021; equations (9)-(12)).
#include <gtest/gtest.h>

#include <random>

#include "pipelines.hpp"
#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::tests {
namespace {

constexpr double forward_s = 0.37, backward_s = 0.81;  // neither is a multiple of the other, nor a short binary fraction
constexpr double form_relative = 1e-9;                 // a double clock adds up to 16*8*128 activities

ChunkSeconds uniform() {
  return [](int, bool forward) { return forward ? forward_s : backward_s; };
}

double closed_form_s(int p, int v, int m) { return (static_cast<double>(m) * v + p - 1) * (forward_s + backward_s); }

double formula_s(const std::string& schedule, int p, int v, int m) {
  sim::PipelineTimes times;
  times.microbatches = m;
  times.forward_s.assign(p, std::vector<double>(v, forward_s));
  times.backward_s.assign(p, std::vector<double>(v, backward_s));
  times.hop_s.assign(p, 0);
  return sim::PipelineFormulaRegistry::get(schedule).seconds(times);
}

void expect_closed_form(const std::string& schedule, int p, int v, int m) {
  const double expected = closed_form_s(p, v, m);
  const PricedPipeline job = priced(pipeline(schedule, p, v, m), uniform(), 0);
  EXPECT_NEAR(longest_path_s(job), expected, form_relative * expected) << schedule << " p " << p << " v " << v << " m " << m;
  EXPECT_NEAR(formula_s(schedule, p, v, m), expected, form_relative * expected) << schedule << " p " << p << " v " << v << " m " << m;
}

void expect_closed_form_on_simgrid(const std::string& schedule, int p, int v, int m) {
  const double expected = closed_form_s(p, v, m);
  EXPECT_NEAR(on_simgrid_in_child_s(priced(pipeline(schedule, p, v, m), uniform(), 0)), expected, form_relative * expected)
      << schedule << " p " << p << " v " << v << " m " << m;
}

TEST(SchedulesEqualClosedForm, EachHasOneUnderItsName) {
  EXPECT_EQ(sim::PipelineFormulaRegistry::names(), workloads::ScheduleRegistry::names());
}

TEST(SchedulesEqualClosedForm, GPipeForEveryShape) {
  for (int p = 1; p <= 16; ++p)
    for (const int m : {1, 2, 3, 5, 8, 13, 32, 128}) expect_closed_form("gpipe", p, 1, m);
}

TEST(SchedulesEqualClosedForm, OneForwardOneBackwardForEveryShape) {
  for (int p = 1; p <= 16; ++p)
    for (const int m : {1, 2, 3, 5, 8, 13, 32, 128}) expect_closed_form("1f1b", p, 1, m);
}

TEST(SchedulesEqualClosedForm, InterleavedForEveryShape) {
  for (int p = 2; p <= 16; ++p)
    for (int v = 2; v <= 8; ++v)
      for (int m = p; m <= 128; m += m < 4 * p ? p : 128 / p * p - m > 0 ? 128 / p * p - m : p)
        expect_closed_form("interleaved-1f1b", p, v, m);
}

// Fewer micro-batches than stages: the first stage waits for its first micro-batch's round trip.
TEST(ZeroBubbleFormula, HoldsForFewMicroBatches) {
  constexpr double weight_s = 0.4;
  for (const int p : {4, 8, 16}) {
    for (int m = 1; m <= 2 * p; ++m) {
      sim::PipelineTimes times;
      times.microbatches = m;
      times.forward_s.assign(p, {forward_s});
      times.backward_s.assign(p, {backward_s - weight_s});
      times.weight_s.assign(p, {weight_s});
      times.hop_s.assign(p, 0);
      const double formula = sim::PipelineFormulaRegistry::get("zb-h2").seconds(times);
      // A stage's own work, and for the first stage all stages forth and back once.
      EXPECT_GE(formula, (1 - form_relative) * m * (forward_s + backward_s)) << p << " " << m;
      EXPECT_GE(formula, (1 - form_relative) * (p * (forward_s + backward_s - weight_s) + weight_s)) << p << " " << m;
    }
  }
}

TEST(SchedulesEqualClosedForm, OnSimGridForRandomShapes) {
  std::mt19937 random(20260101);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int i = 0; i < 25; ++i) {
    expect_closed_form_on_simgrid("gpipe", between(1, 16), 1, between(1, 128));
    expect_closed_form_on_simgrid("1f1b", between(1, 16), 1, between(1, 128));
    const int p = between(2, 16);
    expect_closed_form_on_simgrid("interleaved-1f1b", p, between(2, 8), p * between(1, 128 / p));
  }
}

TEST(SchedulesEqualClosedForm, OnSimGridForTheLargestShape) {
  expect_closed_form_on_simgrid("interleaved-1f1b", 16, 8, 128);
  expect_closed_form_on_simgrid("1f1b", 16, 1, 128);
  expect_closed_form_on_simgrid("gpipe", 16, 1, 128);
}

// Zero-bubble schedules: backward is cut in input gradient (B) and weight gradient (W). The longest rank, from its own start to its own
// end, takes m (F + B + W) + (p-1)(F + B - W) with ZB-H1 and m (F + B + W) + (p-1)(F + B - 2W) with ZB-H2 (Qi et al., ICLR 2024,
// section 2.2).
struct ZeroBubble {
  const char* schedule;
  int saved;
};

double split_pipeline_s(const ZeroBubble& z, int p, int m, double f, double b, double w, bool on_simgrid) {
  PricedPipeline job = priced(
      pipeline(z.schedule, p, 1, m), [&](int, bool forward) { return forward ? f : b; }, 0);
  for (workloads::OpId id = 0; id < job.graph.size(); ++id) {
    const workloads::Op op = job.graph.op(id);
    if (op.pass == workloads::Pass::backward_weight) job.prices.work_s[op.item] = w;
  }
  return on_simgrid ? on_simgrid_in_child_s(job) : longest_path_s(job);
}

class ZeroBubbleEqualsClosedForm : public testing::TestWithParam<ZeroBubble> {};

TEST_P(ZeroBubbleEqualsClosedForm, ForEveryShape) {
  const ZeroBubble z = GetParam();
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0.5, 1.0);
  for (int p = 1; p <= 16; ++p) {
    for (const int m : {2 * p, 3 * p + 1, 8 * p}) {
      // The papers' setting F = B = W, and F >= B >= W with B + F >= 2W, where the handcrafted order has no other stalls.
      for (const bool equal : {true, false}) {
        const double f = equal ? 1.0 : 1.0, b = equal ? 1.0 : seconds(random), w = equal ? 1.0 : b * seconds(random);
        const double expected = m * (f + b + w) + (p - 1) * (f + b - z.saved * w);
        EXPECT_NEAR(split_pipeline_s(z, p, m, f, b, w, false), expected, form_relative * expected)
            << "p " << p << " m " << m << " b " << b << " w " << w;
      }
    }
  }
  EXPECT_NEAR(split_pipeline_s(z, 8, 24, 1, 0.9, 0.6, true), split_pipeline_s(z, 8, 24, 1, 0.9, 0.6, false), form_relative * 100);
}

INSTANTIATE_TEST_SUITE_P(Schedules, ZeroBubbleEqualsClosedForm, testing::Values(ZeroBubble{"zb-h1", 1}, ZeroBubble{"zb-h2", 2}),
                         [](const auto& info) { return info.param.saved == 1 ? "ZbH1" : "ZbH2"; });

// The bubble is (p-1)/(m v) of the ideal time on every rank.
TEST(SchedulesEqualClosedForm, BubbleShareOfEveryRank) {
  const PricedPipeline job = priced(pipeline("interleaved-1f1b", 4, 3, 8), uniform(), 0);
  const sim::Execution run = sim::longest_path(job.graph, job.prices);
  for (const sim::PhaseTimes& phases : sim::account(job.graph, run)) {
    EXPECT_NEAR(phases[sim::Phase::bubble] / phases[sim::Phase::compute], 3.0 / (8 * 3), form_relative);
    EXPECT_NEAR(phases.total(), run.step_s, form_relative * run.step_s);
  }
}

}  // namespace
}  // namespace rehearse::tests

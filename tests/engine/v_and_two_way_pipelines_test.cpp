// ZB-V and DualPipe against their closed forms: the bubble of the papers where F = B = W, and every other uniform chunk time.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "pipelines.hpp"
#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::tests {
namespace {

constexpr double pipeline_relative = 1e-9;

struct Times {
  double forward, input, weight, hop = 0;  // backward in its two parts
};

PricedPipeline timed(const std::string& schedule, int p, int m, const Times& t) {
  const bool v_shaped = schedule == "zb-v";
  workloads::Workload workload = pipeline(schedule, p, v_shaped ? 2 : 1, m);
  PricedPipeline job = priced(
      workload, [&](int, bool forward) { return forward ? t.forward : t.input; }, t.hop);
  std::set<std::tuple<std::uint32_t, int, int>> split;  // (rank, chunk, micro-batch) with a weight gradient of its own
  for (workloads::OpId id = 0; id < job.graph.size(); ++id) {
    const workloads::Op op = job.graph.op(id);
    if (op.pass == workloads::Pass::backward_weight) split.emplace(op.rank, op.chunk, op.microbatch);
  }
  for (workloads::OpId id = 0; id < job.graph.size(); ++id) {
    const workloads::Op op = job.graph.op(id);
    if (op.kind != workloads::OpKind::compute) continue;
    if (op.pass == workloads::Pass::backward_weight) job.prices.work_s[op.item] = t.weight;
    if (op.pass == workloads::Pass::backward_input && !split.contains({op.rank, op.chunk, op.microbatch})) {
      job.prices.work_s[op.item] = t.input + t.weight;
    }
  }
  return job;
}

double formula_s(const std::string& schedule, int p, int m, const Times& t) {
  sim::PipelineTimes times;
  times.microbatches = m;
  times.forward_s.assign(p, std::vector<double>(2, t.forward));
  times.backward_s.assign(p, std::vector<double>(2, t.input));
  times.weight_s.assign(p, std::vector<double>(2, t.weight));
  times.hop_s.assign(p, t.hop);
  return sim::PipelineFormulaRegistry::get(schedule).seconds(times);
}

std::string text(int p, int m, const Times& t) {
  return fmt::format("p {} m {} F {} B {} W {} hop {}", p, m, t.forward, t.input, t.weight, t.hop);
}

TEST(ZbV, HasNoBubbleWhereForwardInputAndWeightTakeEquallyLong) {
  for (int p = 2; p <= 16; ++p) {
    for (const int m : {2 * p - 1, 2 * p, 3 * p + 1, 8 * p}) {
      const double ideal = 2 * m * 3 * 0.7;
      EXPECT_NEAR(longest_path_s(timed("zb-v", p, m, {0.7, 0.7, 0.7})), ideal, pipeline_relative * ideal) << p << " " << m;
      EXPECT_NEAR(formula_s("zb-v", p, m, {0.7, 0.7, 0.7}), ideal, pipeline_relative * ideal) << p << " " << m;
    }
  }
}

TEST(ZbV, EqualsItsClosedFormForAnyUniformChunk) {
  std::mt19937 random(6);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  for (int i = 0; i < 400; ++i) {
    const int p = std::uniform_int_distribution(2, 12)(random);
    const int m = std::uniform_int_distribution(2 * p - 1, 5 * p)(random);
    const Times t{seconds(random), seconds(random), i % 7 == 0 ? 0 : seconds(random)};
    const double expected = formula_s("zb-v", p, m, t);
    EXPECT_NEAR(longest_path_s(timed("zb-v", p, m, t)), expected, pipeline_relative * expected) << text(p, m, t);
  }
}

// With hops of up to a fifth of the shortest chunk; with p = 2 two more ways tie within a hop or two.
TEST(ZbV, EqualsItsClosedFormWithHops) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  for (int i = 0; i < 400; ++i) {
    const int p = std::uniform_int_distribution(3, 12)(random);
    const int m = std::uniform_int_distribution(2 * p - 1, 5 * p)(random);
    const Times t{seconds(random), seconds(random), seconds(random), 0.1 * seconds(random) / 1.5};
    const double expected = formula_s("zb-v", p, m, t);
    EXPECT_NEAR(longest_path_s(timed("zb-v", p, m, t)), expected, pipeline_relative * expected) << text(p, m, t);
  }
}

// DeepSeek-V3's table 2: (p/2 - 1)(FB + B - 3W), where B is the whole backward and a pair FB takes its two parts one after the other.
TEST(DualPipe, HasTheBubbleOfThePaper) {
  for (int p = 2; p <= 16; p += 2) {
    for (const int m : {2 * p, 2 * p + 2, 4 * p, 8 * p}) {
      const double chunk = 0.7;
      const double expected = m * 3 * chunk + (p / 2.0 - 1) * (3 * chunk + 2 * chunk - 3 * chunk);
      EXPECT_NEAR(longest_path_s(timed("dualpipe", p, m, {chunk, chunk, chunk})), expected, pipeline_relative * expected) << p << " " << m;
      EXPECT_NEAR(formula_s("dualpipe", p, m, {chunk, chunk, chunk}), expected, pipeline_relative * expected) << p << " " << m;
    }
  }
}

TEST(DualPipe, EqualsItsClosedFormForAnyUniformChunk) {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  for (int i = 0; i < 400; ++i) {
    const int p = 2 * std::uniform_int_distribution(1, 8)(random);
    const int m = 2 * std::uniform_int_distribution(p, 3 * p)(random);
    Times t{seconds(random), seconds(random), seconds(random)};
    double expected = formula_s("dualpipe", p, m, t);
    EXPECT_NEAR(longest_path_s(timed("dualpipe", p, m, t)), expected, pipeline_relative * expected) << text(p, m, t);
    // Which neighbour a pair waits for is not followed hop by hop: two hops and a half per cent.
    t.hop = 0.05 * seconds(random);
    expected = formula_s("dualpipe", p, m, t);
    EXPECT_NEAR(longest_path_s(timed("dualpipe", p, m, t)), expected, 0.005 * expected + 2 * t.hop) << text(p, m, t);
  }
}

TEST(VAndTwoWayPipelines, TakeTheLongestPathOnSimGrid) {
  for (const char* schedule : {"zb-v", "dualpipe"}) {
    for (const Times& t : {Times{1, 1, 1}, Times{0.9, 1.1, 0.6}, Times{0.9, 1.1, 0.6, 0.05}}) {
      const PricedPipeline job = timed(schedule, 6, 16, t);
      EXPECT_NEAR(on_simgrid_in_child_s(job), longest_path_s(job), pipeline_relative * 100) << schedule << " " << text(6, 16, t);
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

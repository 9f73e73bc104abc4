// What `tune` leaves out without a walk through passes it must be right about: what it takes plans to need at least is no more than what
// they come to, for equal prompts and others, at any percentile.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "sim/serving/tune_candidates.hpp"
#include "sim/serving/tune_formula.hpp"

namespace rehearse::tests {
namespace {

struct Lengths {
  const char *name, *text;
};

using Asked = std::tuple<const char*, Lengths, double, double>;  // engine, load, percentile, requests a second
class TuneFloors : public testing::TestWithParam<Asked> {};

std::string name_of(const testing::TestParamInfo<Asked>& info) {
  const auto& [software, lengths, percentile, rate_per_s] = info.param;
  return fmt::format("{}_{}_{}_{}", software, lengths.name, std::lround(100 * percentile), rate_per_s < 1 ? "idle" : "busy");
}

TEST_P(TuneFloors, are_below_what_plans_come_to) {
  const auto& [software, lengths, percentile, rate_per_s] = GetParam();
  const std::string text = fmt::format(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n  pools: {{all: {{role: both}}}}\n"
      "  load: {{arrivals: {{poisson: {} /s}}, {}, requests: 1000}}\n  slo: {{ttft: 100 s, tpot: 10 s, percentile: {}}}\n"
      "tune: {{inventory: 4, price: 1 /h, tp: [1, 2], tokens: [1024, 8192]}}\n",
      software, rate_per_s, lengths.text, percentile);
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  sim::ServingTuning counts;
  const sim::TuneSides sides(job, counts);
  const sim::TuneFormula formula(sides);
  int compared = 0;
  for (const sim::PoolCandidate& plan : sides.together.front()) {
    for (int n = 1; n <= sides.most(plan); ++n) {
      const sim::PromisedTimes least = formula.together_at_least(plan, n), times = formula.together(plan, n);
      EXPECT_LE(least.ttft_s, times.ttft_s) << n << " of tp " << plan.pool->plan.tp << ", passes of " << plan.pool->habits.tokens;
      EXPECT_LE(least.tpot_s, times.tpot_s) << n << " of tp " << plan.pool->plan.tp << ", passes of " << plan.pool->habits.tokens;
      compared += std::isfinite(times.ttft_s) ? 1 : 0;
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(
    Loads, TuneFloors,
    testing::Combine(testing::Values("vllm", "sglang"),
                     testing::Values(Lengths{"equal", "input: 1000, output: 100"},
                                     Lengths{"answers", "input: 1000, output: {lognormal: {median: 60, p90: 200}, max: 400}"},
                                     Lengths{"prompts", "input: {lognormal: {median: 500, p90: 4000}, max: 8000}, output: 100"},
                                     Lengths{"both", "input: {uniform: [100, 1900]}, output: {uniform: [10, 200]}"}),
                     testing::Values(0.5, 0.9, 0.99), testing::Values(0.2, 12.0)),
    name_of);

}  // namespace
}  // namespace rehearse::tests

// `compare` says why formula and timeline part: made-up steps that differ in one way each.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "../engine/jobs.hpp"
#include "sim/compare/compare.hpp"
#include "sim/compare/reasons.hpp"

namespace rehearse::tests {
namespace {

// Of steps by formula, by formula without sharing, and simulated; the critical path is as long as the second.
std::string reason(double predicted_s, double alone_s, double simulated_s) {
  sim::Comparison made;
  made.analytic.step_s = predicted_s;
  made.analytic_alone_s = made.critical.step_s = alone_s;
  made.simulated.step_s = simulated_s;
  made.simulated.collectives = {
      {.name = "all-gather",
       .group = "tp",
       .algorithm = "ring",
       .protocol = "Simple",
       .calls = 1000,
       .seconds = 1e-3,
       .in_step_s = 1.001e-3},
      {.name = "send-recv", .group = "pp", .algorithm = "send", .protocol = "", .calls = 10, .seconds = 10e-3, .in_step_s = 20e-3}};
  sim::explain(small_job(16, "{tp: 4, pp: 2, dp: 2}", "{global: 8, micro: 1, sequence: 2048}", ""), made);
  return made.reasons.empty() ? "" : made.reasons.front();
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(WhyFormulaAndTimelinePart, NamesTheCallsThatLoseMostToOthers) {
  const std::string longer = reason(1, 1, 1.1);
  EXPECT_TRUE(says(longer, "calls of pp take 2.00 times as long as alone")) << longer;
}

TEST(WhyFormulaAndTimelinePart, SaysWhatTheFormulaCountsOnWhereStagesMeet) {
  const std::string crowded = reason(1, 1, 0.8), in_part = reason(0.9, 1, 0.8);
  EXPECT_TRUE(says(crowded, "which others leave to it")) << crowded;
  EXPECT_TRUE(says(in_part, "in the mean")) << in_part;
}

// Gathers of the last update's weights run beside the stack's own time, which counts as optimizer and is twice as long meanwhile. Without a
// pipeline there are no stages that could update shares of different size.
TEST(WhyFormulaAndTimelinePart, SaysThatGathersStretchTheStacksOwnTime) {
  const sim::Job job = small_job(8, "{dp: 8}", "{global: 8, micro: 1, sequence: 2048}",
                                 "optimizer: {sharding: zero1}\noverlap: {dp_parameters: true}\n"
                                 "software: {like: megatron-core, step: 20 ms}\n");
  sim::Job slowed = job;
  slowed.system.gpu.contention[sim::Phase::dp] = {.alpha = 2, .beta = 1};
  for (const bool slows : {false, true}) {
    const sim::Comparison made = sim::compare(slows ? slowed : job);
    const auto update = std::ranges::find(made.phases, sim::Phase::optimizer, &sim::PhaseDifference::phase);
    ASSERT_NE(update, made.phases.end());
    EXPECT_EQ(says(update->reason, "the stack's own time is stretched by alpha"), slows) << update->reason;
    EXPECT_FALSE(says(update->reason, "stages")) << update->reason;
  }
}

TEST(WhyFormulaAndTimelinePart, SaysNothingWhereTheyDoNot) { EXPECT_EQ(reason(1, 1, 1.0005), ""); }

}  // namespace
}  // namespace rehearse::tests

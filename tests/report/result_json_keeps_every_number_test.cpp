#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

nlohmann::json parsed(const Report& report) { return nlohmann::json::parse(written("json", report)); }

void expect_phases(const nlohmann::json& json, const PhaseTimes& phases) {
  ASSERT_EQ(json.size(), phase_count);
  for (std::size_t i = 0; i < phase_count; ++i) {
    EXPECT_EQ(json.at(std::string(key_of(static_cast<Phase>(i)))).get<double>(), phases.seconds[i]);
  }
}

TEST(ResultJson, ReadsBackTheSameStepResult) {
  StepResult result = hand_made_step("analytic");
  result.step_s = 0.1 + 0.2;  // needs all 17 digits
  result.tokens_per_s = 1.0 / 3;
  result.ranks[1].phases[Phase::compute] = 5e-324;  // the smallest double there is
  const nlohmann::json json = parsed(Report(hand_made_job()).own(StepResults{{&result}})).at("results").at("analytic");
  EXPECT_EQ(json.at("method"), "analytic");
  EXPECT_EQ(json.at("step_s").get<double>(), result.step_s);
  EXPECT_EQ(json.at("tokens_per_s").get<double>(), result.tokens_per_s);
  EXPECT_EQ(json.at("tokens_per_s_per_gpu").get<double>(), result.tokens_per_s_per_gpu);
  EXPECT_EQ(json.at("model_flops_per_gpu_per_s").get<double>(), result.model_flops_per_gpu_per_s);
  EXPECT_EQ(json.at("mfu").get<double>(), result.mfu);
  EXPECT_EQ(json.at("bubble_share").get<double>(), result.bubble_share);
  EXPECT_EQ(json.at("step_seconds").get<std::vector<double>>(), result.step_seconds);
  EXPECT_EQ(json.at("seed").get<std::uint64_t>(), result.seed);
  EXPECT_EQ(json.at("input_hash"), result.input_hash);
  EXPECT_EQ(json.at("activities").get<long>(), result.activities);
  expect_phases(json.at("mean_phases_s"), result.mean);
  ASSERT_EQ(json.at("ranks").size(), result.ranks.size());
  EXPECT_EQ(json.at("ranks").at(1).at("rank"), 2);
  EXPECT_EQ(json.at("ranks").at(1).at("stage"), 1);
  EXPECT_EQ(json.at("ranks").at(1).at("ranks"), 2);
  expect_phases(json.at("ranks").at(1).at("phases_s"), result.ranks[1].phases);
}

TEST(ResultJson, HoldsTheCollectives) {
  const StepResult result = hand_made_step("simulated");
  const nlohmann::json json = parsed(Report(hand_made_job()).own(StepResults{{&result}})).at("results").at("simulated").at("collectives");
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].at("name"), "all-reduce");
  EXPECT_EQ(json[0].at("group"), "tp");
  EXPECT_EQ(json[0].at("algorithm"), "ring");
  EXPECT_EQ(json[0].at("ranks"), 8);
  EXPECT_EQ(json[0].at("calls"), 32);
  EXPECT_EQ(json[0].at("bytes").get<double>(), result.collectives[0].bytes);
  EXPECT_EQ(json[0].at("seconds").get<double>(), result.collectives[0].seconds);
  EXPECT_EQ(json[0].at("algbw_bytes_per_s").get<double>(), result.collectives[0].algbw_bytes_per_s);
  EXPECT_EQ(json[0].at("busbw_bytes_per_s").get<double>(), result.collectives[0].busbw_bytes_per_s);
}

TEST(ResultJson, SaysHowItWasMade) {
  const StepResult result = hand_made_step("analytic");
  const nlohmann::json json = parsed(Report(hand_made_job()).own(StepResults{{&result}}));
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_EQ(json.at("seed"), 7);
  EXPECT_EQ(json.at("input_hash"), "0123456789abcdef");
  EXPECT_EQ(json.at("job").at("name"), "small");
  EXPECT_EQ(json.at("job").at("gpus"), 4);
  EXPECT_FALSE(json.contains("comparison"));
}

TEST(ResultJson, HoldsTheComparisonAndEveryMethod) {
  const Comparison comparison = hand_made_comparison();
  const nlohmann::json json = parsed(
      Report(hand_made_job()).own(StepResults{{&comparison.analytic, &comparison.simulated, &comparison.critical}}).add(&comparison));
  EXPECT_EQ(json.at("results").size(), 3U);
  EXPECT_EQ(json.at("comparison").at("difference").get<double>(), comparison.difference);
  EXPECT_EQ(json.at("comparison").at("reasons").at(0), comparison.reasons[0]);
  const nlohmann::json bubble = json.at("comparison").at("phases").at(static_cast<std::size_t>(Phase::bubble));
  EXPECT_EQ(bubble.at("phase"), "bubble");
  EXPECT_EQ(bubble.at("analytic_s").get<double>(), comparison.analytic.mean[Phase::bubble]);
  EXPECT_EQ(bubble.at("simulated_s").get<double>(), comparison.simulated.mean[Phase::bubble]);
  EXPECT_EQ(bubble.at("reason"), "uneven stages, and \"warm-up\" waits");
}

TEST(ResultJson, ANameThatIsNotUtf8StillGivesValidJson) {
  const StepResult result = hand_made_step("analytic");
  JobSummary job = hand_made_job();
  job.name = "caf\xe9";
  EXPECT_TRUE(nlohmann::json::accept(written("json", Report(job).own(StepResults{{&result}}))));
}

}  // namespace
}  // namespace rehearse::sim

// Days, GPU-hours and money of a whole training, and MFU with causal attention counted half.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

using nlohmann::json;

const std::string job = "llama2-70b-128-a100";

json predicted(const std::string& options) {
  const Outcome outcome = run_program("predict " + job + " --json " + options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out).at("results").at("analytic");
}

// Steps are whole: the tokens of the last one may be more than are left.
TEST(WhatDoesTrainingCost, follows_from_the_step) {
  const json result = predicted("--set training.tokens=1e12 --price 2.5"), training = result.at("training");
  const double step_s = result.at("step_s"), steps = std::ceil(1e12 / (256 * 4096.0));
  EXPECT_EQ(training.at("steps").get<double>(), steps);
  EXPECT_DOUBLE_EQ(training.at("seconds").get<double>(), steps * step_s);
  EXPECT_DOUBLE_EQ(training.at("gpu_hours").get<double>(), steps * step_s * 128 / 3600);
  EXPECT_DOUBLE_EQ(training.at("price").get<double>(), 2.5 * steps * step_s * 128 / 3600);
  EXPECT_EQ(predicted("--set training.steps=1000 --price 2.5").at("training").at("steps").get<double>(), 1000);
  EXPECT_FALSE(predicted("--set training.steps=1000").at("training").contains("price"));
  EXPECT_FALSE(predicted("").contains("training"));
}

TEST(WhatDoesTrainingCost, follows_from_time_by_the_clock) {
  const json result = predicted("--set training.time='10 days' --price 2.5"), training = result.at("training");
  EXPECT_EQ(training.at("seconds").get<double>(), 864000);
  EXPECT_EQ(training.at("steps").get<double>(), std::floor(864000 / result.at("step_s").get<double>()));
  EXPECT_DOUBLE_EQ(training.at("price").get<double>(), 2.5 * 240 * 128);
}

// A step takes 22.3 s, so that an hour has 161 and a day 3,874 of them.
TEST(WhatDoesTrainingCost, is_told_of_minutes_as_of_months) {
  const auto told = [](const std::string& steps) {
    return run_program("predict " + job + " --price 2.5 --set training.steps=" + steps).out;
  };
  EXPECT_NE(told("10").find("training: 10 steps, 3.71 min, 7.92 GPU-hours, 19.81 at 2.5 an hour"), std::string::npos) << told("10");
  EXPECT_NE(told("1e6").find("training: 1000000 steps, 258 days, 792458 GPU-hours, 1981144 at 2.5 an hour"), std::string::npos)
      << told("1e6");
}

TEST(WhatDoesTrainingCost, is_not_said_of_a_job_without_an_end) {
  const Outcome outcome = run_program("predict " + job + " --price 2.5");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("training.tokens"), std::string::npos) << outcome.err;
}

// Llama 2 70B by hand, multiply-adds of one sequence forward: per layer q, o 2 h^2, k, v 2 h^2 / 8, SwiGLU 3 h f, attention 2 s h per
// token, of which half lies below the diagonal; and the head.
TEST(WhatDoesTrainingCost, causal_attention_counts_half) {
  const double h = 8192, f = 28672, s = 4096, layers = 80, vocab = 32000;
  const double linear = layers * (2 * h * h + 2 * h * h / 8 + 3 * h * f) + h * vocab, attention = layers * 2 * s * h;
  const json result = predicted("");
  EXPECT_NEAR(result.at("mfu_causal").get<double>() / result.at("mfu").get<double>(), (linear + attention / 2) / (linear + attention),
              1e-12);
}

}  // namespace
}  // namespace rehearse::cli

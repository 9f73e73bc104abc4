// Which of the deployments that tune found are simulated, which is chosen, and what it says of them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <sstream>

#include "sim/serving/reporters/tuning_text.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/tune_sweep.hpp"

namespace rehearse::tests {
namespace {

config::Node tuned_document(const std::string& tune, const std::string& rate = "3 /s") {
  return config::Node::load_text(fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools:\n"
                                             "    p: {{role: prefill}}\n    d: {{role: decode}}\n"
                                             "  load: {{arrivals: {{poisson: {}}}, input: {{lognormal: {{median: 1020, p90: 4000}}, max: "
                                             "14050}}, output: 100, requests: 600}}\n"
                                             "  slo: {{ttft: 700 ms, tpot: 30 ms}}\ntune: {{inventory: 16, {}}}\n",
                                             rate, tune),
                                 "job.yaml");
}
sim::ServingTuning tuning_of(const std::string& tune) {
  return tune_serving(sim::read_serving_job(tuned_document(tune), "job"), [](double share) {
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
  });
}
int simulated(const sim::ServingTuning& tuning) {
  return static_cast<int>(std::ranges::count_if(tuning.best, [](const sim::TunedDeployment& one) { return one.simulated.has_value(); }));
}

// By cost none behind the first that keeps the promise, but the first of each kind; with a number as many as that.
TEST(TuneSimulates, none_that_can_be_no_better) {
  const sim::ServingTuning few = tuning_of("goal: cost"), all = tuning_of("goal: cost, confirm: 20");
  ASSERT_TRUE(few.chosen && all.chosen);
  EXPECT_EQ(*few.chosen, *all.chosen);
  EXPECT_LT(simulated(few), simulated(all));
  EXPECT_GE(simulated(all), std::min<int>(20, static_cast<int>(all.best.size())));
}

// The rates of all of them, and the same choice.
TEST(TuneSimulates, rates_of_those_alone_that_carry_more) {
  const sim::ServingTuning few = tuning_of("goal: goodput, tp: [1, 2]"), all = tuning_of("goal: goodput, tp: [1, 2], confirm: 20");
  ASSERT_TRUE(few.chosen && all.chosen);
  EXPECT_EQ(few.best[*few.chosen].kind, all.best[*all.chosen].kind);
  EXPECT_NEAR(few.best[*few.chosen].simulated->goodput_per_s / all.best[*all.chosen].simulated->goodput_per_s, 1, 0.03);
  std::ostringstream text;
  print_tuning(few, false, text);
  EXPECT_EQ(text.str().find("not kept, chosen"), std::string::npos) << text.str();
}

// Of all that were simulated and keep the promise the one with the least time per token.
TEST(TuneSimulates, the_goal_itself) {
  const sim::ServingTuning tuning = tuning_of("goal: tpot");
  ASSERT_TRUE(tuning.chosen);
  EXPECT_GT(simulated(tuning), 4);
  const double least_s = tuning.best[*tuning.chosen].simulated->promised_tpot_s;
  for (const sim::TunedDeployment& one : tuning.best) {
    if (!one.simulated || !one.simulated->kept) continue;
    EXPECT_GE(one.simulated->promised_tpot_s, least_s);
  }
}

// A value's row is what tune says of the job with it; a higher rate costs no less.
TEST(TuneSweeps, are_tunings_one_by_one) {
  const config::Node document = tuned_document("goal: cost, confirm: 0");
  const sim::TuneSweep sweep = sim::tune_over(document, "job", "serving.load.arrivals.poisson=3 /s,20 /s", [](double) {});
  ASSERT_EQ(sweep.points.size(), 2u);
  const sim::ServingTuning alone = tune_serving(sim::read_serving_job(document, "job"), [](double) {});
  EXPECT_EQ(sweep.points.front().tuning->best.front().cost_per_s, alone.best.front().cost_per_s);
  EXPECT_GE(sweep.points.back().tuning->best.front().cost_per_s, alone.best.front().cost_per_s);
  ASSERT_NE(runner_up(alone), nullptr);
  EXPECT_GE(goal_value(alone, *runner_up(alone)), goal_value(alone, alone.best.front()));
  EXPECT_THROW(static_cast<void>(sim::tune_over(document, "job", "serving.load", [](double) {})), config::InputError);
  EXPECT_THROW(static_cast<void>(sim::tune_over(document, "job", "serving.slo=null", [](double) {})), config::InputError);
}

std::vector<std::string> notes_of(const std::string& tune, const std::string& more = "") {
  const std::string text = tuned_document(tune).to_yaml() + more;
  return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job").notes;
}
bool says(const std::vector<std::string>& notes, const std::string& what) {
  return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

TEST(TuneSays, that_integers_count_as_floats_and_layers_change_nothing) {
  const auto notes = notes_of("precision: [{compute: int8, weights: int8, kv: bf16}, {compute: bf16, weights: int4, kv: int8}]");
  EXPECT_TRUE(says(notes, "tune: int8 counts as fp8"));
  EXPECT_TRUE(says(notes, "tune: int4 counts as fp4"));
  EXPECT_EQ(std::ranges::count_if(notes, [](const std::string& note) { return note.find("int8") != std::string::npos; }), 1);
  EXPECT_FALSE(says(notes_of("tp: [1]"), "granularity"));
  EXPECT_TRUE(says(notes_of("tp: [1]", "simulation: {granularity: layer}\n"), "granularity: layer changes nothing"));
}

}  // namespace
}  // namespace rehearse::tests

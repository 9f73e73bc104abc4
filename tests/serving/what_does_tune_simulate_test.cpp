// Which of the deployments that tune found are simulated, which is chosen, and what it says of them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <regex>
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
// Of GPUs of two kinds.
config::Node two_kinds(const std::string& tune, const std::string& rate = "6 /s", const std::string& slo = "ttft: 700 ms, tpot: 30 ms",
                       const std::string& inventory = "rich: 4, wide: 4") {
  return config::Node::load_text(
      fmt::format("model: llama3-8b\ncluster:\n  parts: {{rich: {{cluster: dgx-h100-ndr400, nodes: 1}}, wide: {{cluster: h20-roce-4x400, "
                  "nodes: 2}}}}\n  between: {{bandwidth: 800 Gbps}}\nsoftware: vllm\nserving:\n  pools:\n"
                  "    p: {{role: prefill, part: rich}}\n    d: {{role: decode, part: wide}}\n"
                  "  load: {{arrivals: {{poisson: {}}}, input: {{lognormal: {{median: 1020, p90: 4000}}, max: 14050}}, output: 100, "
                  "requests: 400}}\n  slo: {{{}}}\n"
                  "tune: {{inventory: {{{}}}, tp: [1, 2], price: {{rich: 3 /h, wide: 1 /h}}, {}}}\n",
                  rate, slo, inventory, tune),
      "job.yaml");
}
// Of progress it hears nothing that goes back.
sim::ServingTuning tuning_of(const config::Node& document) {
  double before = 0;
  return tune_serving(sim::read_serving_job(document, "job"), [&](double share) {
    EXPECT_GE(share, before);
    EXPECT_LE(share, 1);
    before = share;
  });
}
sim::ServingTuning tuning_of(const std::string& tune) { return tuning_of(tuned_document(tune)); }
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

// Seven instances of both by formula, whose queues of equal prompts are longer when simulated; next by formula comes a deployment of 12
// GPUs apart. Eleven keep the promise and ten do not (every number of them simulated).
TEST(TuneSimulates, instances_more_where_the_formula_asks_for_too_few) {
  const sim::ServingTuning tuning = tuning_of(config::Node::load_text(
      "model: qwen3-14b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {p: {role: prefill}, d: {role: decode}}\n"
      "  load: {arrivals: {poisson: 40 /s}, input: 2500, output: 60, requests: 3000}\n"
      "  slo: {ttft: 200 ms, tpot: 40 ms, percentile: 0.9}\nsimulation: {seed: 778}\n"
      "tune: {inventory: 20, price: 3 /h, tp: [1, 2, 4]}\n",
      "job.yaml"));
  ASSERT_TRUE(tuning.chosen);
  EXPECT_EQ(tuning.best.front().gpus, 7);
  EXPECT_FALSE(tuning.best.front().simulated->kept);
  EXPECT_EQ(tuning.best[*tuning.chosen].gpus, 11);
  EXPECT_TRUE(tuning.best[*tuning.chosen].simulated->kept);
  EXPECT_GT(tuning.near_misses, 3);
}

config::Node both_promises(const std::string& ttft, int inventory) {
  return config::Node::load_text(
      fmt::format("model: qwen3-14b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {{p: {{role: prefill}}, d: {{role: "
                  "decode}}}}\n  load: {{arrivals: {{poisson: 80 /s}}, input: {{uniform: [100, 4000]}}, output: 250, requests: 3000}}\n"
                  "  slo: {{ttft: {}, tpot: 40 ms, percentile: 0.9, of: both}}\nsimulation: {{seed: 836}}\n"
                  "tune: {{inventory: {}, price: 3 /h, tp: [1, 2, 4]}}\n",
                  ttft, inventory),
      "job.yaml");
}

// By formula the cheapest that keeps the promise has 16 GPUs, and does not when simulated; of the other plan none of up to 18 does. 18 GPUs
// keep it when simulated, and no fewer (all of them simulated).
TEST(TuneSimulates, more_instances_where_nothing_found_keeps_the_promise) {
  const sim::ServingTuning tuning = tuning_of(both_promises("200 ms", 18));
  ASSERT_TRUE(tuning.chosen);
  EXPECT_EQ(tuning.best[*tuning.chosen].gpus, 18);
  EXPECT_TRUE(tuning.best[*tuning.chosen].simulated->kept);
  for (const sim::TunedDeployment& one : tuning.best) EXPECT_TRUE(!one.simulated || !one.simulated->kept || one.gpus == 18);
}

// Where none does in the end the answer has what was tried.
TEST(TuneSays, what_came_nearest) {
  const sim::ServingTuning tuning = tuning_of(both_promises("120 ms", 20));
  EXPECT_FALSE(tuning.chosen);
  EXPECT_GT(tuning.near_misses, 0);
  EXPECT_LE(tuning.near_misses, 40);
  ASSERT_FALSE(tuning.notes.empty());
  EXPECT_NE(tuning.notes.back().find(fmt::format("{} deployments beside", tuning.near_misses)), std::string::npos);
}

// Deployments of a rate are first asked for what another carries: the choice is as without, and those that carry less indeed do. What it
// says of each holds of the rate that it carries.
TEST(TuneSimulates, rates_of_those_alone_that_carry_more) {
  const sim::ServingTuning few = tuning_of(two_kinds("goal: goodput-per-cost")),
                           all = tuning_of(two_kinds("goal: goodput-per-cost, confirm: 20"));
  ASSERT_TRUE(few.chosen && all.chosen);
  EXPECT_EQ(few.best[*few.chosen].kind, all.best[*all.chosen].kind);
  EXPECT_NEAR(few.best[*few.chosen].simulated->goodput_per_s / all.best[*all.chosen].simulated->goodput_per_s, 1, 0.03);
  int raced = 0;
  for (std::size_t i = 0; i < few.best.size(); ++i) {
    if (few.best[i].below_per_s <= 0) continue;
    ++raced;
    ASSERT_LT(i, all.best.size());
    ASSERT_TRUE(all.best[i].simulated);
    EXPECT_LE(all.best[i].simulated->goodput_per_s, few.best[i].below_per_s);
  }
  EXPECT_GT(raced, 0);
}

TEST(TuneSays, that_a_rate_is_the_formulas_where_it_is) {
  config::Node document = two_kinds("goal: goodput-per-cost", "6 /s", "ttft: 400 ms, tpot: 12 ms, percentile: 0.97");
  document.set("simulation.seed", "2");
  document.set("serving.load.requests", "200");
  const sim::ServingTuning tuning = tuning_of(document);
  std::ptrdiff_t as_said = 0, said = 0;
  for (const sim::TunedDeployment& one : tuning.best)
    as_said += one.simulated && one.below_per_s <= 0 && one.simulated->goodput_per_s >= one.rate_per_s * (1 - 1e-9) ? 1 : 0;
  std::ostringstream text;
  print_tuning(tuning, false, text);
  for (std::size_t at = 0; (at = text.str().find("kept at the formula's rate", at)) != std::string::npos; ++at) ++said;
  EXPECT_EQ(said, as_said) << text.str();
}

// On the narrow front of GPUs alone is one that the simulation refutes.
TEST(TuneSimulates, more_than_the_front_of_gpus) {
  for (const char* goal : {"gpus", "[gpus, cost]", "[gpus, tpot]"}) {
    const sim::ServingTuning tuning =
        tuning_of(two_kinds(fmt::format("goal: {}", goal), "40 /s", "ttft: 700 ms, tpot: 30 ms", "rich: 8, wide: 16"));
    ASSERT_TRUE(tuning.chosen) << goal;
    EXPECT_EQ(tuning.best[*tuning.chosen].gpus, 3) << goal;
  }
}

// Who is next is no better: neither one that the simulation refuted nor another rate than was found.
class TuneSweepsBy : public testing::TestWithParam<const char*> {};

TEST_P(TuneSweepsBy, name_who_is_next_and_no_better) {
  const sim::TuneSweep sweep =
      sim::tune_over(two_kinds(fmt::format("goal: {}", GetParam())), "job", "serving.load.arrivals.poisson=6 /s,20 /s", [](double) {});
  std::ostringstream text;
  print_sweep(sweep, false, text);
  EXPECT_FALSE(std::regex_search(text.str(), std::regex("-[0-9.]+ %"))) << text.str();
  if (std::string(GetParam()) == "goodput") {
    EXPECT_TRUE(std::regex_search(text.str(), std::regex("[^> ] *[1-9][0-9.]* %"))) << text.str();
  }
}
INSTANTIATE_TEST_SUITE_P(Goals, TuneSweepsBy, testing::Values("goodput", "cost", "ttft", "tpot", "goodput-per-cost"));

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

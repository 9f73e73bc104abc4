// `explain` and `compare --features`: what they say of a feature is what predicting and simulating the job with and without it gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/analytic/predict.hpp"
#include "sim/compare/explain.hpp"

namespace rehearse::tests {
namespace {

std::function<sim::Job(const sim::Settings&)> variants_of(const std::string& name) {
  return [name](const sim::Settings& settings) { return sim::load_job({name, settings, {}}); };
}

TEST(FeaturesAreExplained, WithTheNumbersOfTheJobSwitched) {
  const std::string name = "llama2-70b-128-a100";
  const sim::Explanation explanation = sim::explain(sim::load_job({name, {}, {}}));
  ASSERT_GT(explanation.switches.size(), 10U);
  std::set<std::string> features;
  for (const sim::FeatureSwitch& s : explanation.switches) {
    features.insert(s.feature);
    const sim::StepResult alone = sim::predict(variants_of(name)(s.settings));
    EXPECT_EQ(s.step_s, alone.step_s) << s.feature << " " << s.to;
    EXPECT_EQ(s.peak_bytes, alone.memory.fullest()->needed_bytes()) << s.feature << " " << s.to;
    EXPECT_EQ(s.fits, alone.memory.fits()) << s.feature << " " << s.to;
    EXPECT_NE(s.from, s.to);
  }
  for (const char* feature : {"recompute", "optimizer.sharding", "schedule", "overlap.tp", "parallel.sp"}) {
    EXPECT_TRUE(features.contains(feature)) << feature;
  }
}

TEST(FeaturesAreExplained, StacksThatOnlyServeAreNotOffered) {
  const sim::Explanation explanation = sim::explain(sim::load_job({"llama2-70b-128-a100", {}, {}}));
  std::set<std::string> stacks;
  for (const auto* switches : {&explanation.switches, &explanation.idle, &explanation.refused}) {
    for (const sim::FeatureSwitch& s : *switches) {
      if (s.feature == "software") stacks.insert(s.to);
    }
  }
  EXPECT_TRUE(stacks.contains("nanotron"));
  EXPECT_FALSE(stacks.contains("vllm"));
}

TEST(FeaturesAreExplained, BestFirst) {
  const std::string name = "llama3-70b-64-h100";
  const sim::Explanation explanation = sim::explain(sim::load_job({name, {}, {}}));
  for (std::size_t i = 1; i < explanation.switches.size(); ++i) {
    const sim::FeatureSwitch& better = explanation.switches[i - 1];
    const sim::FeatureSwitch& worse = explanation.switches[i];
    EXPECT_GE(better.fits, worse.fits);
    if (better.fits == worse.fits) {
      EXPECT_LE(better.step_s, worse.step_s);
    }
  }
  for (const sim::FeatureSwitch& s : explanation.idle) EXPECT_NEAR(s.step_s, explanation.now.step_s, 1e-9 * s.step_s) << s.feature;
  for (const sim::FeatureSwitch& s : explanation.refused)
    EXPECT_THROW((void)variants_of(name)(s.settings), config::InputError) << s.refusal;
}

// With every default written out, shard_group too: what is offered and what is refused stays the same.
TEST(FeaturesAreExplained, ForAResolvedJobAsForTheJobItself) {
  const std::string name = "llama2-70b-128-a100";
  const sim::Job job = sim::load_job({name, {}, {}});
  const auto path = std::filesystem::temp_directory_path() / "rehearse-explained" / "resolved-job.yaml";
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << job.resolved.to_yaml();
  const sim::Explanation plain = sim::explain(job);
  const sim::Explanation resolved = sim::explain(sim::load_job({path.string(), {}, {}}));
  std::filesystem::remove_all(path.parent_path());
  const auto names = [](const std::vector<sim::FeatureSwitch>& switches) {
    std::set<std::string> all;
    for (const sim::FeatureSwitch& s : switches) all.insert(s.feature + " " + s.to);
    return all;
  };
  EXPECT_TRUE(names(plain.switches).contains("schedule dualpipe"));
  EXPECT_EQ(names(resolved.switches), names(plain.switches));
  EXPECT_EQ(names(resolved.refused), names(plain.refused));
}

TEST(FeaturesAreExplained, PackedDocumentsAgainstWholeSequences) {
  const sim::Job job = sim::load_job({"llama3-8b-64-h100", {{"batch.document_tokens", "512"}}, {}});
  const auto settings = sim::Settings{{"batch.document_tokens", "8192"}};
  const std::vector<sim::FeatureSwitch> switches = sim::explain(job).switches;
  const auto found = std::ranges::find(switches, settings, &sim::FeatureSwitch::settings);
  ASSERT_NE(found, switches.end());
  EXPECT_EQ(found->step_s, sim::predict(sim::load_job({"llama3-8b-64-h100", {}, {}})).step_s);
  EXPECT_GT(found->step_s, sim::predict(job).step_s);
}

// Weight gradients are delayed in overlapped pairs only: without pairs they are not, and a job without pairs cannot have them.
TEST(FeaturesAreExplained, PairsGoTogetherWithWhatIsDelayedInThem) {
  const sim::Settings pairs{{"parallel", "{dp: 64, ep: 8, etp: 1}"}, {"schedule", "1f1b"}, {"overlap.ep", "true"}};
  sim::Settings delays = pairs;
  delays.emplace_back("overlap.delay_wgrad", "true");
  const auto named = [](const std::vector<sim::FeatureSwitch>& all, const std::string& feature) {
    const auto found = std::ranges::find(all, feature, &sim::FeatureSwitch::feature);
    return found != all.end() ? *found : sim::FeatureSwitch();
  };
  const std::string name = "mixtral-8x7b-64-h100";
  const sim::Explanation delayed = sim::explain(sim::load_job({name, delays, {}}));
  EXPECT_EQ(named(delayed.switches, "overlap.ep").to, "false, overlap.delay_wgrad false");
  EXPECT_EQ(named(delayed.switches, "overlap.delay_wgrad").to, "false");
  EXPECT_EQ(named(delayed.refused, "overlap.ep").feature, "");
  const sim::FeatureSwitch at_once = named(sim::explain(sim::load_job({name, pairs, {}})).switches, "overlap.delay_wgrad");
  EXPECT_EQ(at_once.from, "false");
  EXPECT_EQ(at_once.to, "true");
  EXPECT_EQ(at_once.step_s, delayed.now.step_s);
  const sim::Explanation dense = sim::explain(sim::load_job({"llama3-8b-64-h100", {}, {}}));
  EXPECT_EQ(named(dense.refused, "overlap.delay_wgrad").to, "true");
  EXPECT_EQ(named(dense.idle, "overlap.delay_wgrad").feature, "");
}

// The project's bound for a feature alone: 2 % of the step in time, 1 % of the peak in bytes.
TEST(FeaturesAreExplained, FormulaAndTimelineAgreeOnEach) {
  for (const std::string name : {"llama2-70b-128-a100", "llama3-70b-64-h100"}) {
    const sim::Job job = sim::load_job({name, {}, {}});
    const sim::StepResult now = sim::predict(job);
    const std::vector<sim::FeatureEffect> effects = sim::effects_of_features(job);
    ASSERT_GT(effects.size(), 2U);
    for (const sim::FeatureEffect& e : effects) {
      EXPECT_NEAR(e.simulated_s, e.analytic_s, 0.02 * now.step_s) << name << " " << e.feature;
      EXPECT_NEAR(e.simulated_bytes, e.analytic_bytes, 0.01 * now.memory.fullest()->needed_bytes()) << name << " " << e.feature;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests

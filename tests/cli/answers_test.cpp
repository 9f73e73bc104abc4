#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "places.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

using nlohmann::json;

TEST(Answers, VersionIsOneLine) {
  const Outcome outcome = run_program("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("rehearse "));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

// The program where it was installed, while the source tree is still there.
TEST(Answers, AnInstalledProgramReadsItsOwnData) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell(
      "mkdir -p bin share/rehearse/platforms share/rehearse/workloads/models\ncp \"$rehearse\" bin/\n"
      "printf 'layers: 4\\nhidden: 64\\nheads: 4\\nffn: 256\\nactivation: gelu\\nvocab: 100\\n' "
      ">share/rehearse/workloads/models/mine.yaml\n"
      "exec bin/rehearse list models --json",
      folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).size(), 1U) << outcome.out;
}

TEST(Answers, EveryCommandHasHelpWithExamples) {
  EXPECT_NE(run_program("--help").out.find("Exit code: 0 fine, 1 the answer is no"), std::string::npos);
  for (const std::string command : {"compare", "explain", "list", "predict", "simulate", "topology"}) {
    const Outcome outcome = run_program(command + " --help");
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_NE(outcome.out.find("Examples:\n  rehearse " + command), std::string::npos) << outcome.out;
  }
}

// Products in pieces beside their collectives (overlap.tp): what the formula has more of exposed tp, the timeline has more of compute.
TEST(Answers, AReasonSaysWhereTimeIsBookedThatOverlapTakes) {
  const Outcome outcome = run_program("compare llama2-70b-128-a100 --set overlap.tp=true --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json phases = json::parse(outcome.out).at("comparison").at("phases");
  const json& tp = *std::ranges::find_if(phases, [](const json& phase) { return phase.at("phase") == "exposed_tp"; });
  EXPECT_LT(tp.at("difference_s").get<double>(), 0);
  EXPECT_NE(tp.at("reason").get<std::string>().find("stretched by alpha"), std::string::npos) << tp;
}

TEST(Answers, OneFailsAndSeveralFail) {
  const std::string one = run_program("simulate llama3-8b-8-h100 --fault 'gpu 5 at 3.2 s'").out;
  EXPECT_NE(one.find(": rank 5 fails\n"), std::string::npos) << one;
  const std::string several = run_program("simulate llama3-8b-64-h100 --fault 'node 1 at 2 s'").out;
  EXPECT_NE(several.find(": ranks 8, 9, 10, 11, 12, 13, 14, 15 fail\n"), std::string::npos) << several;
  EXPECT_NE(several.find(" 1 communication hangs\n"), std::string::npos) << several;
}

TEST(Answers, ListsAreSortedAndNotEmpty) {
  for (const std::string what : {"models", "jobs", "clusters", "gpus", "software", "schedules", "collectives"}) {
    const Outcome outcome = run_program("list " + what + " --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> names;
    for (const json& item : json::parse(outcome.out)) names.push_back(item.at("name"));
    EXPECT_FALSE(names.empty()) << what;
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << what;
  }
}

TEST(Answers, ModelsAreListedWithTheirParameters) {
  const Outcome outcome = run_program("list models");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Llama 2 70B has 68.98 billion parameters (Touvron et al. 2023; the published checkpoint).
  EXPECT_NE(outcome.out.find("68.98 B"), std::string::npos) << outcome.out;
}

TEST(Answers, PredictPrintsTheStepInBothForms) {
  const Outcome table = run_program("predict llama3-8b-8-h100");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("\nanalytic: step "), std::string::npos);
  const json result = json::parse(run_program("predict llama3-8b-8-h100 --json").out);
  EXPECT_GT(result.at("results").at("analytic").at("step_s").get<double>(), 0);
}

// Jobs of every kind in files whose names are no UTF-8.
TEST(Answers, AreJsonWhateverTheFileIsCalled) {
  const TemporaryFolder folder;
  for (const std::string job : {"llama3-8b-8-h100", "serving/serve-llama3-70b-together", "federated/raspberry-pis-4"}) {
    const Outcome outcome = run_shell("cp '" + std::string(REHEARSE_SOURCE_DIR) + "/workloads/jobs/" + job +
                                          ".yaml' $'job\\377.yaml'\n\"$rehearse\" predict $'job\\377.yaml' --json",
                                      folder.path());
    ASSERT_EQ(outcome.code, 0) << job << ": " << outcome.err;
    EXPECT_EQ(json::parse(outcome.out).at("job").at("name"), "job\xEF\xBF\xBD") << job;
  }
}

TEST(Answers, TheSeedOfTheCommandLineReachesTheResult) {
  const json result = json::parse(run_program("predict llama3-8b-8-h100 --json --seed 9007199254740992").out);
  EXPECT_EQ(result.at("seed").get<std::uint64_t>(), 9007199254740992U);
}

TEST(Answers, TheLastSetWins) {
  const json result = json::parse(run_program("predict llama3-8b-8-h100 --json --set batch.global=64 --set batch.global=256").out);
  EXPECT_EQ(result.at("job").at("batch"), "256 sequences of 8192, micro-batch 1");
}

TEST(Answers, TheStackOfAJobThatNamesNoneRunsOnItsGpus) {
  for (const auto& [cluster, stack] :
       {std::pair{"atlas-900-a2", "mindspeed"}, {"tpu-v5p-512", "maxtext"}, {"dgx-h100-ndr400", "megatron-core"}}) {
    const std::string job = std::string("predict llama3-8b-8-h100 --json --set cluster=") + cluster;
    const Outcome unnamed = run_program(job), named = run_program(job + " --set software=" + stack);
    ASSERT_NE(unnamed.code, 2) << unnamed.err;  // whether it fits or not
    EXPECT_EQ(json::parse(unnamed.out)["results"], json::parse(named.out)["results"]) << cluster;
  }
}

// The buckets of the table of words and of the head differ by a norm of 8 KB.
TEST(Answers, CollectivesThatReadAlikeAreOneRow) {
  const Outcome outcome = run_program("simulate llama3-8b-8-h100");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out.substr(outcome.out.find("collective  ")));
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line) && !line.empty();) EXPECT_TRUE(seen.insert(line).second) << line;
  EXPECT_GT(seen.size(), 4U);
}

TEST(Answers, CompareSaysNoBeyondTheTolerance) {
  const Outcome outcome = run_program("compare llama3-8b-8-h100 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const double difference = 100 * std::abs(json::parse(outcome.out).at("comparison").at("difference").get<double>());
  ASSERT_GT(difference, 0) << "the tolerance below could not be exceeded";
  EXPECT_EQ(run_program("compare llama3-8b-8-h100 --tolerance " + std::to_string(difference + 1)).code, 0);
  EXPECT_EQ(run_program("compare llama3-8b-8-h100 --tolerance 0%").code, 1);
}

TEST(Answers, ExplainListsSwitchesBestFirst) {
  const Outcome table = run_program("explain llama3-70b-64-h100");
  // predict's peak differs, and its step where memory is full.
  EXPECT_NE(table.out.find("peaks here count a share for the allocator's cache, and steps none of the time"), std::string::npos);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("\nswitch "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\nnot possible here:\n"), std::string::npos) << table.out;
  const json explanation = json::parse(run_program("explain llama3-70b-64-h100 --json").out).at("explanation");
  const json& switches = explanation.at("switches");
  ASSERT_GT(switches.size(), 5U);
  EXPECT_LE(switches.at(0).at("step_s").get<double>(), switches.at(1).at("step_s").get<double>());
  EXPECT_TRUE(switches.at(0).at("set").is_object());
}

TEST(Answers, ExplainSaysNoToAJobThatDoesNotFit) {
  EXPECT_EQ(run_program("explain llama3-70b-64-h100 --set batch.micro=16 --set batch.global=2048").code, 1);
}

TEST(Answers, CompareSetsEachFeatureAgainstItsAbsence) {
  const Outcome outcome = run_program("compare llama3-8b-8-h100 --features --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json features = json::parse(outcome.out).at("features");
  ASSERT_FALSE(features.empty());
  for (const json& feature : features) EXPECT_TRUE(feature.at("simulated_s").is_number()) << feature;
  EXPECT_FALSE(json::parse(run_program("compare llama3-8b-8-h100 --json").out).contains("features"));
}

TEST(Answers, TopologyShowsTheCluster) {
  const Outcome outcome = run_program("topology dgx-a100-80g-hdr200 --gpus 16");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("dgx-a100-80g-hdr200: 16 x "));
  for (const std::string part : {"GPU  ", "scale-up", "same node", "network", "bisection ", "single points of failure: "}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

TEST(Answers, TopologyExportsToFilesAndStandardOutput) {
  const TemporaryFolder folder;
  const Outcome outcome = run_shell("\"$rehearse\" topology dgx-a100-80g-hdr200 --gpus 16 --dot - --xml cluster.xml", folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("graph"), std::string::npos);
  EXPECT_NE(content_of(folder.path() / "cluster.xml").find("<platform"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::cli

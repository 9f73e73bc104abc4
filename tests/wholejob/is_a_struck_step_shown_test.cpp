// replay --timeline: the step that a failure strikes, consistent with the account; and whole jobs that are refused, or whose answer is no.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "places.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

constexpr const char* trace =
    "time_s,component,kind,duration_s,node,nodes,level,slowdown,gpu\n"
    "1000,gpu,slow,,2,,,1.3,5\n2000.5,host,fail,,3,2,pod,,\n5000,software,fail,,1,,process,,\n5010,any,fail,,0,,job,,\n";

class IsAStruckStepShown : public testing::Test {
 protected:
  Outcome run(const std::string& command) {
    std::ofstream(folder_.path() / "trace.csv") << trace;
    return run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR " $rehearse " + command, folder_.path());
  }
  nlohmann::json json_of(const std::string& file) { return nlohmann::json::parse(content_of(folder_.path() / file)); }
  TemporaryFolder folder_;
};

constexpr const char* struck_job =
    " llama2-70b-128-a100 trace.csv --set simulation.granularity=stage --set 'training={steps: 400, init: 100 s}'"
    " --set 'checkpoint={interval: 50, save_time: 4 s, load_time: 5 s}' ";

TEST_F(IsAStruckStepShown, as_the_account_has_it) {
  const Outcome outcome = run("replay" + std::string(struck_job) + "--step simulated --timeline 1 --timeline 2 -o out --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto steps = nlohmann::json::parse(outcome.out).at("whole_job").at("struck_steps");
  ASSERT_EQ(steps.size(), 2U);
  const auto& first = steps.at(0);
  EXPECT_EQ(first.at("what").get<std::string>().substr(0, 7), "node 2 ");  // the block of two that holds node 3
  // The whole job's step is the simulated one: the failure strikes as far into it as the job had spent on it.
  EXPECT_NEAR(first.at("step_ns").get<double>() * 1e-9, first.at("simulated_step_s").get<double>(), 2e-9);
  EXPECT_NEAR(first.at("spent_ns").get<double>() * 1e-9, first.at("simulated_at_s").get<double>(), 1e-6);
  EXPECT_TRUE(first.at("detected").get<bool>());
  EXPECT_GT(first.at("lost_s").get<double>(), 600);  // the timeout
  const auto failed = json_of("out/failure-1/result.json");
  EXPECT_EQ(failed.at("failure").at("failures").size(), 2U);                   // two nodes at once
  EXPECT_EQ(failed.at("faults").at(0).get<std::string>(), "gpu 21 slow 1.3");  // slow since 1000 s
  EXPECT_EQ(failed.at("failure").at("lost_s").get<double>(), first.at("lost_s").get<double>());
  const std::string timeline = content_of(folder_.path() / "out/failure-1/timeline.json");  // 128 ranks: too long to parse for a count
  EXPECT_EQ(timeline.substr(0, 2), "{\"");
  EXPECT_EQ(timeline.substr(timeline.find_last_not_of('\n'), 1), "}");
  EXPECT_GT(std::ranges::count(timeline, '\n'), 1'000);
  EXPECT_EQ(steps.at(1).at("what").get<std::string>().substr(0, 6), "gpu 8 ");  // one process of node 1
  // The step can be simulated again.
  const Outcome again = run("simulate out/failure-1/resolved-job.yaml --json");
  EXPECT_EQ(nlohmann::json::parse(again.out).at("failure"), failed.at("failure")) << again.err;
}

TEST_F(IsAStruckStepShown, of_fewer_replicas) {
  std::ofstream(folder_.path() / "one.csv")
      << "time_s,component,kind,duration_s,node,level\n2000.5,host,fail,,3,pod\n5000,any,fail,,0,job\n";
  std::string one_node = struck_job;
  one_node.replace(one_node.find("trace.csv"), 9, "one.csv");
  const Outcome outcome =
      run("replay" + one_node + "--step '20 s' --set 'recovery={policy: shrink, repair: 1 day}' --timeline 2 -o out --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json_of("out/failure-2/result.json").at("job").at("gpus").get<int>(), 64);  // node 3 belongs to one of two replicas
}

TEST_F(IsAStruckStepShown, or_why_not) {
  for (const auto& [options, why] :
       std::vector<std::pair<std::string, std::string>>{{"--timeline 1", "--timeline writes files"},
                                                        {"--timeline 3 -o out", "failure 3 strikes while training stands still"},
                                                        {"--timeline 9 -o out", "there is no failure 9: the history has 3"},
                                                        {"--timeline 0 -o out", "--timeline takes a whole number from 1"}}) {
    const Outcome outcome = run("replay" + std::string(struck_job) + "--step '20 s' " + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << options << ": " << outcome.err;
  }
}

TEST_F(IsAStruckStepShown, and_what_does_not_fit_is_said) {
  for (const char* command : {"run", "compare --whole --runs 2"}) {
    const Outcome outcome = run(std::string(command) +
                                " llama3-70b-64-h100 --set training.steps=50 --set recompute=none --set batch.micro=8"
                                " --set optimizer.sharding=none");
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_NE(outcome.err.find("does not fit"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out, "");
  }
}

// The user's file and line, not the resolved text's.
TEST_F(IsAStruckStepShown, and_refusals_point_at_the_users_file) {
  std::ofstream(folder_.path() / "job.yaml") << "model: llama3-8b\ncluster: dgx-h100-ndr400\ngpus: 16\nparallel: {tp: 8}\n"
                                                "batch: {global: 16, micro: 1, sequence: 8192}\ntraining: {steps: 1000, step: 10 s}\n"
                                                "checkpoint:\n  interval: 7\n  save_time: 1 s\n  load_time: 1 s\n"
                                                "  backup: {interval: 20, to: disk, save_time: 1 s, load_time: 1 s}\n";
  const Outcome backup = run("run job.yaml");
  EXPECT_EQ(backup.code, 2);
  EXPECT_TRUE(backup.err.starts_with("job.yaml:11:22: error: a backup every 20 steps is not a multiple")) << backup.err;
  const Outcome copies = run("run job.yaml --set 'checkpoint={interval: 10, to: memory, copies: 3}'");
  EXPECT_EQ(copies.code, 2);
  EXPECT_NE(copies.err.find("3 copies of a checkpoint in memory need as many nodes, and the job has 2"), std::string::npos) << copies.err;
}

}  // namespace
}  // namespace rehearse::cli

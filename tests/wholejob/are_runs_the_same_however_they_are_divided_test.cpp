// Runs of a whole job: the same bytes from any number of tasks and at any number at a time, ended and gone on with.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using cli::content_of;
using cli::Outcome;
using cli::run_shell;
using cli::TemporaryFolder;

const std::string job = "$rehearse run llama3-405b-54-days --set 'training.time=2 days' ";
const std::string runs = job + "--runs 24 ";
const std::string sweep = job + "--runs 7 --sweep checkpoint.interval=5,20,auto ";

void expect_success(const Outcome& outcome) { ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err; }

void expect_same_files(const std::filesystem::path& one, const std::filesystem::path& other, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    EXPECT_EQ(content_of(one / file), content_of(other / file)) << other / file;
    EXPECT_FALSE(content_of(other / file).empty()) << other / file;
  }
}

TEST(DividedRuns, GiveTheSameAtAnyNumberAtATime) {
  const TemporaryFolder folder;
  for (const std::string jobs : {"1", "2", "7"}) expect_success(run_shell(runs + "--jobs " + jobs + " -o jobs" + jobs, folder.path()));
  for (const char* other : {"jobs2", "jobs7"})
    expect_same_files(folder.path() / "jobs1", folder.path() / other, {"result.json", "runs.csv"});
}

TEST(DividedRuns, GiveTheSameFromAnyNumberOfTasks) {
  const TemporaryFolder folder;
  for (const auto& [command, files] :
       {std::pair(runs, std::vector<std::string>{"result.json", "runs.csv"}), std::pair(sweep, std::vector<std::string>{"result.json"})}) {
    expect_success(run_shell("rm -rf *; " + command + "-o whole", folder.path()));
    expect_success(run_shell(
        "for k in 1 2 3; do " + command + "--shard $k/3 -o parts || exit 1; done; " + command + "--merge parts -o merged", folder.path()));
    expect_same_files(folder.path() / "whole", folder.path() / "merged", files);
  }
}

// Steps of states are worked out of the first that looks like them, in the order of the seeds: also where another task runs that seed.
TEST(DividedRuns, GiveTheSameWithSimulatedSteps) {
  const TemporaryFolder folder;
  const std::string command =
      "$rehearse run llama3-8b-8-h100 --step simulated --runs 6 --set 'training={steps: 2000}' --set 'checkpoint={interval: 100, "
      "save_time: 5 s, "
      "load_time: 5 s}' --set 'faults={gpu: {source: poisson, component: gpu, rate: 40 /day, kind: slow, slowdown: 1.3, duration: 5 "
      "min}}' ";
  expect_success(run_shell(command + "-o whole", folder.path()));
  expect_success(run_shell(
      "for k in 1 2 3; do " + command + "--shard $k/3 -o parts || exit 1; done; " + command + "--merge parts -o merged", folder.path()));
  expect_same_files(folder.path() / "whole", folder.path() / "merged", {"result.json", "runs.csv"});
  EXPECT_NE(content_of(folder.path() / "merged/result.json").find("\"states\""), std::string::npos);
}

TEST(DividedRuns, GoOnWhereTheyWereEnded) {
  const TemporaryFolder folder;
  const std::string many = job + "--runs 600 ";
  expect_success(run_shell(many + "-o whole", folder.path()));
  int ended_midway = 0;
  for (const char* after : {"0.1", "0.2", "0.4", "0.8"}) {
    const Outcome ended =
        run_shell("rm -rf parts; " + many + "--jobs 1 --shard 1/2 -o parts & sleep " + after + "; kill -TERM $!; wait $!", folder.path());
    if (ended.code == 0) continue;  // it was faster
    ASSERT_EQ(ended.code, 143) << ended.err;
    if (ended.err.find("goes on from there") == std::string::npos) continue;  // it had not begun
    ++ended_midway;
    const Outcome again =
        run_shell(many + "--shard 1/2 -o parts && " + many + "--shard 2/2 -o parts && " + many + "--merge parts -o merged", folder.path());
    expect_success(again);
    EXPECT_NE(again.err.find("goes on after"), std::string::npos) << again.err;
    expect_same_files(folder.path() / "whole", folder.path() / "merged", {"result.json", "runs.csv"});
    break;
  }
  EXPECT_GT(ended_midway, 0);
}

TEST(DividedRuns, RefuseOtherPartsAndMissingOnes) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& command) {
    const Outcome outcome = run_shell(command, folder.path());
    EXPECT_EQ(outcome.code, 2) << command;
    return outcome.err;
  };
  const auto expect = [](const std::string& text, const std::string& words) { EXPECT_NE(text.find(words), std::string::npos) << text; };
  expect_success(run_shell(runs + "--shard 1/3 -o parts && " + runs + "--shard 2/3 -o parts", folder.path()));
  expect(refusal(runs + "--merge parts"), "shard 3 of 3 is missing");
  expect(refusal(job + "--runs 25 --shard 1/3 -o parts"), "was made by other runs");
  expect(refusal(runs + "--seed 9 --merge parts"), "was made by other runs");
  expect(refusal(runs + "--merge nowhere"), "cannot read 'nowhere'");
  expect(refusal(runs + "--shard 1/3"), "--shard needs a folder");
  expect(refusal(runs + "--shard 4/3 -o parts"), "--shard takes K/N");
  expect(refusal(runs + "--shard 1/3 --merge parts -o parts"), "give it alone");
  expect(refusal(job + "--shard 1/3 -o parts"), "a single run cannot be divided");
  expect_success(run_shell("truncate -s 500 parts/shard-2-of-3.json", folder.path()));
  expect(refusal(runs + "--shard 2/3 -o parts"), "damaged");
}

}  // namespace
}  // namespace rehearse::tests

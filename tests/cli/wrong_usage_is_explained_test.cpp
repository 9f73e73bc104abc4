#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

void expect_refused(const std::string& arguments, const std::string& message) {
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << "\n" << outcome.err;
}

TEST(WrongUsage, WithoutACommandTheHelpIsShownOnStandardError) { expect_refused("", "Usage: rehearse"); }

TEST(WrongUsage, AnUnknownCommandGetsASuggestion) {
  expect_refused("simulat llama3-8b-8-h100", "unknown command 'simulat'\n  did you mean 'simulate'?");
}

TEST(WrongUsage, AnUnknownOptionGetsASuggestion) {
  expect_refused("predict llama3-8b-8-h100 --jsn", "unexpected argument '--jsn'\n  did you mean '--json'?");
  expect_refused("predict --hlp", "unexpected argument '--hlp'\n  did you mean '--help'?");
  expect_refused("--verson predict", "unexpected argument '--verson'");
  expect_refused("--verson", "unexpected argument '--verson'\n  did you mean '--version'?");
  expect_refused("--verson predict llama3-8b-8-h100", "unexpected argument '--verson'");
}

TEST(WrongUsage, AKeyOfJobFilesIsNoOption) {
  expect_refused("predict llama3-8b-8-h100 --parallel.tp=4",
                 "unexpected argument '--parallel.tp=4'\n  it is a key of job files: --set parallel.tp=VALUE");
  expect_refused("run llama3-8b-8-h100 --faults llama3-54-days", "it is a key of job files: --set faults=VALUE");
  expect_refused("schema --seed", "unexpected argument '--seed'");
}

TEST(WrongUsage, AFolderIsNotWrittenToStandardOutput) {
  expect_refused("export chakra llama3-8b-8-h100 -o -", "this format is a folder of files\n  give it: -o FOLDER");
}

TEST(WrongUsage, APriceIsANumber) {
  for (const std::string price : {"nan", "inf", "-1", "2x"})
    expect_refused("predict llama3-8b-8-h100 --price " + price, "--price: takes a number from 0 to 1000000, such as 2.5");
}

TEST(WrongUsage, ASecondJobIsRefused) { expect_refused("predict llama3-8b-8-h100 another", "unexpected argument 'another'"); }

TEST(WrongUsage, AMissingJobIsNamed) { expect_refused("predict", "JOB is required"); }

TEST(WrongUsage, AnUnknownJobIsNamed) { expect_refused("predict lama3-8b-8-h100", "lama3-8b-8-h100"); }

TEST(WrongUsage, AnUnknownListIsNamed) { expect_refused("list model", "unknown list 'model'\n  did you mean 'models'?"); }

TEST(WrongUsage, AnUnknownClusterGetsASuggestion) { expect_refused("topology dgx-a100-80g-hdr20", "did you mean 'dgx-a100-80g-hdr200'?"); }

TEST(WrongUsage, NumbersMustBeNumbers) {
  expect_refused("predict llama3-8b-8-h100 --seed -1", "--seed takes a whole number");
  expect_refused("predict llama3-8b-8-h100 --seed 18446744073709551616", "--seed takes a whole number");
  expect_refused("predict llama3-8b-8-h100 --seed 9007199254740993", "--seed must be between 0 and 9007199254740992");
  expect_refused("predict llama3-8b-8-h100 --seed 7x", "--seed takes a whole number");
  expect_refused("compare llama3-8b-8-h100 --tolerance nan", "--tolerance takes a percentage");
  expect_refused("compare llama3-8b-8-h100 --tolerance -5", "--tolerance takes a percentage");
  for (const std::string gpus : {"0", "-1", "abc", "2.5", "1e9", "nan"}) {
    expect_refused("topology dgx-a100-80g-hdr200 --gpus " + gpus, "--gpus takes a whole number from 1 to 1000000, not '");
  }
}

TEST(WrongUsage, AnEmptyTextIsNoNumber) {
  expect_refused("topology dgx-a100-80g-hdr200 --gpus ''", "--gpus: needs a number");
  expect_refused("predict llama3-8b-8-h100 --seed ''", "--seed: needs a number");
}

TEST(WrongUsage, NumbersAreWrittenAsInJobFiles) {
  const Outcome outcome = run_program("topology dgx-a100-80g-hdr200 --gpus 1.6e1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("dgx-a100-80g-hdr200: 16 x ")) << outcome.out;
}

TEST(WrongUsage, TheGpuOfAClusterIsLookedUp) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "c.yaml")
      << "gpu: a100-sxm4-80\ngpus_per_node: 8\nintra_node: {kind: nvswitch, bandwidth: 300 GB/s, latency: "
         "2 us}\nhost: {bandwidth: 25 GB/s, latency: 10 us}\n";
  const Outcome outcome = run_shell("exec \"$rehearse\" topology c.yaml", folder.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("c.yaml:1:6: error: unknown gpu 'a100-sxm4-80'")) << outcome.err;
}

TEST(WrongUsage, ADataFolderThatIsNoneIsRefused) {
  const TemporaryFolder folder;
  for (const std::string what : {"list models", "list scenarios", "predict llama3-8b-8-h100", "topology dgx-a100-80g-hdr200"}) {
    const Outcome outcome = run_shell("export REHEARSE_DATA=/none\nexec \"$rehearse\" " + what, folder.path());
    EXPECT_EQ(outcome.code, 2) << what;
    EXPECT_TRUE(outcome.err.starts_with("error: REHEARSE_DATA: there are no folders workloads and platforms in '/none'")) << outcome.err;
  }
}

TEST(WrongUsage, ASetWithoutAValueIsRefused) {
  expect_refused("predict llama3-8b-8-h100 --set parallel.tp", "--set takes key=value, not 'parallel.tp'");
  expect_refused("predict llama3-8b-8-h100 --set =4", "--set takes key=value, not '=4'");
}

TEST(WrongUsage, ASetOfAnUnknownKeyNamesItsPlace) {
  expect_refused("predict llama3-8b-8-h100 --set paralel.tp=4", "--set paralel.tp=4");
  expect_refused("predict llama3-8b-8-h100 --set paralel.tp=4", "parallel");
}

// Not of the --set that an option comes down to.
TEST(WrongUsage, OptionsAreNamedAsTheyWereGiven) {
  expect_refused("tune llama3-8b-8-h100 --keep x", "error: --keep must be a whole number, not 'x'");
  expect_refused("tune llama3-8b-8-h100 --memory 3", "error: --memory must be between 0.01 and 1, not 3");
  expect_refused("tune llama3-8b-8-h100 --price x", "error: --price must be a number, not 'x'");
  expect_refused("tune llama3-8b-8-h100 --goal speed", "error: --goal cannot be 'speed'\n  known: step,");
  expect_refused("tune llama3-8b-8-h100 --goal step,step", "error: named twice in --goal");
  expect_refused("simulate llama3-8b-8-h100 --faults x", "error: --faults: unknown fault scenario 'x'");
  expect_refused("simulate llama3-8b-8-h100 --fault x", "error: --fault: 'x' is not gpu, nic");
  expect_refused("run llama3-405b-54-days --sweep checkpoint.interval=0,5",
                 "--sweep checkpoint.interval=0,5: error: checkpoint.interval must be between 1 and");
  expect_refused("tune llama3-8b-8-h100 --set tune.keep=x", "--set tune.keep=x:1:11: error: tune.keep must be a whole number");
}

TEST(WrongUsage, ValuesOfASpaceAreNamedAsTheyWereGiven) {
  expect_refused("tune llama3-8b-8-h100 --space parallel.tp=abc", "--space parallel.tp=abc:1:1: error: parallel.tp: 'abc' is no number");
  expect_refused("tune llama3-8b-8-h100 --space parallel.tp=0", "error: parallel.tp: the value must be between 1 and 1000000, not 0");
  expect_refused("tune llama3-8b-8-h100 --space optimizer.sharding=x", "error: optimizer.sharding: the value cannot be 'x'");
}

TEST(WrongUsage, WhatExcludesAKeyOfAJobSaysHowToTakeItAway) {
  expect_refused("predict serve-llama3-70b-apart --set 'serving.load.time=1 h'", "--set serving.load.requests=null");
  expect_refused("run llama3-405b-54-days --set training.steps=500", "--set training.time=null");
  const Outcome outcome = run_program("predict serve-llama3-70b-apart --set 'serving.load.time=1 h' --set serving.load.requests=null");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace rehearse::cli

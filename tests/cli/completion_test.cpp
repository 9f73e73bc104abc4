// What the shells are told, and what they make of it: each of them that is installed completes a line at its own prompt.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/data_dir.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/completion.hpp"
#include "sim/cli/program_app.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

std::vector<std::string> words_for(const std::vector<std::string>& typed) {
  const ProgramApp program;
  std::vector<std::string> words;
  for (const Completion& each : completions(program.app, typed)) words.push_back(each.word);
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) { return std::ranges::find(words, word) != words.end(); }

TEST(Completion, CommandsByTheirBeginning) {
  EXPECT_EQ(words_for({"pre"}), std::vector<std::string>{"predict"});
  EXPECT_EQ(words_for({""}), CommandRegistry::names());
  EXPECT_TRUE(words_for({"nothing", ""}).empty());
}

TEST(Completion, ReadyMadeNamesWhereTheyBelong) {
  EXPECT_TRUE(has(words_for({"predict", "llama2-70b-1"}), "llama2-70b-128-a100"));
  EXPECT_EQ(words_for({"topology", ""}), config::data_names("platforms/clusters"));
  EXPECT_EQ(words_for({"import", "torcht"}), std::vector<std::string>{"torchtitan"});
  EXPECT_EQ(words_for({"import", "hf", "config.json", "--cluster", "dgx2"}), std::vector<std::string>{"dgx2-v100-32g"});
  EXPECT_TRUE(words_for({"import", "hf", ""}).empty());  // a file
}

TEST(Completion, KeysAndValuesOfSet) {
  EXPECT_TRUE(has(words_for({"predict", "job.yaml", "--set", "parallel.t"}), "parallel.tp="));
  const auto schedules = words_for({"predict", "job.yaml", "--set", "schedule=z"});
  EXPECT_TRUE(has(schedules, "schedule=zb-v"));
  EXPECT_FALSE(has(schedules, "schedule=1f1b"));
  EXPECT_EQ(words_for({"predict", "--set", "overlap.tp="}), (std::vector<std::string>{"overlap.tp=false", "overlap.tp=true"}));
  EXPECT_TRUE(has(words_for({"predict", "--set", "model=llama3"}), "model=llama3-8b"));
}

TEST(Completion, OptionsAndNothingBehindTheLastArgument) {
  EXPECT_EQ(words_for({"predict", "job.yaml", "--js"}), std::vector<std::string>{"--json"});
  EXPECT_TRUE(words_for({"predict", "job.yaml", "--set", "a=b", "more"}).empty());
}

TEST(Completion, AnUnknownShellIsRefused) {
  const Outcome outcome = run_program("completion tcsh");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("unknown shell 'tcsh'"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::cli

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
 protected:
  Outcome run(const std::string& arguments) { return run_shell("exec \"$rehearse\" " + arguments, folder_.path()); }
  [[nodiscard]] fs::path at(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] std::set<std::string> names_in(const std::string& name) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(at(name))) names.insert(entry.path().filename().string());
    return names;
  }
  TemporaryFolder folder_;
};

TEST_F(OutputFiles, CompareWritesAllOfThem) {
  const Outcome outcome = run("compare llama3-8b-8-h100 -o new/out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(names_in("new/out"),
            (std::set<std::string>{"compare.csv", "memory.csv", "phases.csv", "resolved-job.yaml", "result.json", "timeline.json"}));
  EXPECT_NE(outcome.err.find("wrote new/out/timeline.json"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::accept(content_of(at("new/out/timeline.json"))));
}

TEST_F(OutputFiles, SameJobAndSeedGiveTheSameBytes) {
  const Outcome first = run("compare llama3-8b-8-h100 --seed 3 -o first");
  const Outcome second = run("compare llama3-8b-8-h100 --seed 3 -o second");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  ASSERT_EQ(names_in("first"), names_in("second"));
  for (const std::string& name : names_in("first")) EXPECT_EQ(content_of(at("first/" + name)), content_of(at("second/" + name))) << name;
}

TEST_F(OutputFiles, JsonOnStandardOutputIsTheFile) {
  const Outcome outcome = run("predict llama3-8b-8-h100 --json -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, content_of(at("out/result.json")));
}

TEST_F(OutputFiles, TheResolvedJobGivesTheSameResult) {
  ASSERT_EQ(run("predict llama3-8b-8-h100 --set batch.global=64 -o first").code, 0);
  const Outcome again = run("predict first/resolved-job.yaml -o second");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content_of(at("first/phases.csv")), content_of(at("second/phases.csv")));
  EXPECT_EQ(content_of(at("first/resolved-job.yaml")), content_of(at("second/resolved-job.yaml")));
}

TEST_F(OutputFiles, AFileInThePlaceOfTheFolderIsRefusedBeforeAnyWork) {
  std::ofstream(at("file")) << "mine";
  const Outcome outcome = run("predict no-such-job -o file");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("cannot write to 'file': 'file' is not a folder"), std::string::npos) << outcome.err;
  EXPECT_EQ(content_of(at("file")), "mine");
}

TEST_F(OutputFiles, AFolderThatCannotBeMadeIsRefused) {
  const Outcome outcome = run("predict llama3-8b-8-h100 -o /proc/rehearse");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("cannot write to '/proc/rehearse"), std::string::npos) << outcome.err;
}

TEST_F(OutputFiles, WrongInputLeavesNoFolder) {
  EXPECT_EQ(run("predict llama3-8b-8-h100 --set parallel.tp=3 -o out").code, 2);
  EXPECT_FALSE(fs::exists(at("out")));
}

}  // namespace
}  // namespace rehearse::cli

#include <gtest/gtest.h>

#include <csignal>
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

// Nobody can make a file there, not even root.
TEST_F(OutputFiles, AFolderThatTakesNoFilesIsRefused) {
  const Outcome outcome = run("predict llama3-8b-8-h100 -o /proc/self");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("cannot write to '/proc/self"), std::string::npos) << outcome.err;
}

// The limit of a file's size stands for the disk: no user needs rights for it. In units of 1 KiB: some file is larger.
TEST_F(OutputFiles, AFullDiskLeavesNothing) {
  const Outcome outcome = run_shell("ulimit -f 16\nexec \"$rehearse\" simulate llama3-8b-8-h100 -o new/out", folder_.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(": File too large"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(at("new")));
}

TEST_F(OutputFiles, AKilledWriterLeavesNothingForLong) {
  // Killed as soon as it writes.
  const Outcome killed = run_shell(
      "\"$rehearse\" simulate llama3-8b-8-h100 -o out >/dev/null 2>&1 &\n"
      "until ls out/.*.partial >/dev/null 2>&1 || ! kill -0 $!; do :; done\nkill -KILL $!\nwait $!",
      folder_.path());
  ASSERT_TRUE(killed.code == 128 + SIGKILL || killed.code == 0) << killed.err;  // 0: it was faster
  const Outcome outcome = run("simulate llama3-8b-8-h100 -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(names_in("out"), (std::set<std::string>{"memory.csv", "phases.csv", "resolved-job.yaml", "result.json", "timeline.json"}));
}

// Each file is one of theirs as a whole.
TEST_F(OutputFiles, ManyMayWriteToOneFolder) {
  const Outcome outcome = run_shell(
      "for seed in 1 2 3 4 5 6; do \"$rehearse\" predict llama3-8b-8-h100 --seed $seed -o out >/dev/null 2>&1 & done\n"
      "for job in $(jobs -p); do wait $job || exit 9; done",
      folder_.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(names_in("out"), (std::set<std::string>{"phases.csv", "resolved-job.yaml", "result.json"}));
  const auto seed = nlohmann::json::parse(content_of(at("out/result.json"))).at("seed").get<int>();
  EXPECT_TRUE(seed >= 1 && seed <= 6) << seed;
}

TEST_F(OutputFiles, WrongInputLeavesNoFolder) {
  EXPECT_EQ(run("predict llama3-8b-8-h100 --set parallel.tp=3 -o out").code, 2);
  EXPECT_FALSE(fs::exists(at("out")));
}

}  // namespace
}  // namespace rehearse::cli

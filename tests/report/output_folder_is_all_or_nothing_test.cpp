#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <sstream>

#include "sim/report/output_folder.hpp"
#include "sim/report/whole_file.hpp"
#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

// Last in the order of names: everything else has been written when it goes wrong.
class Troublesome final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "trouble.txt"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.job.name == "disk full" || report.job.name == "killed"; }
  void write(const Report& report, std::ostream& out) const override {
    out << "half";
    if (report.job.name == "killed") static_cast<void>(std::raise(SIGTERM));
    if (report.job.name == "disk full") out.setstate(std::ios::badbit);
  }
};
const ReporterRegistry::Registration<Troublesome> troublesome_registration("zz-troublesome");

class OutputFolderTest : public testing::Test {
 protected:
  OutputFolderTest() {
    fs::remove_all(top_);
    let_signals_in();
  }
  ~OutputFolderTest() override { fs::remove_all(top_); }

  [[nodiscard]] Report report(const std::string& job_name) const {
    Report made = Report(hand_made_job()).own(StepResults{{&result_}}).add(&timeline_);
    made.job.name = job_name;
    return made;
  }
  // After a run that succeeded they are held until the program ends; this one goes on.
  static void let_signals_in() {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
  }
  static std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
  static std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path top_ = fs::path(testing::TempDir()) / ("rehearse-output-" + std::to_string(getpid()));
  StepResult result_ = hand_made_step("simulated");
  Timeline timeline_ = hand_made_timeline();
  const std::set<std::string> all_{"phases.csv", "resolved-job.yaml", "result.json", "timeline.json"};
};

TEST_F(OutputFolderTest, CreatesTheFolderAndWritesEveryFileThatApplies) {
  const auto paths = OutputFolder((top_ / "a" / "b").string()).write(report("fine"));
  EXPECT_EQ(paths.size(), all_.size());
  EXPECT_EQ(names_in(top_ / "a" / "b"), all_);
  EXPECT_EQ(content(top_ / "a" / "b" / "resolved-job.yaml"), "model: gpt\n");
}

TEST_F(OutputFolderTest, OverwritesWhatItWroteBefore) {
  const OutputFolder folder(top_.string());
  folder.write(report("first"));
  folder.write(report("second"));
  EXPECT_EQ(nlohmann::json::parse(content(top_ / "result.json")).at("job").at("name"), "second");
  EXPECT_EQ(names_in(top_), all_);
}

TEST_F(OutputFolderTest, AWriteErrorLeavesWhatWasThereBefore) {
  const OutputFolder folder(top_.string());
  folder.write(report("first"));
  EXPECT_THROW(folder.write(report("disk full")), config::InputError);
  EXPECT_EQ(nlohmann::json::parse(content(top_ / "result.json")).at("job").at("name"), "first");
  EXPECT_EQ(names_in(top_), all_);
}

TEST_F(OutputFolderTest, AWriteErrorLeavesNoNewFolder) {
  EXPECT_THROW(OutputFolder((top_ / "a" / "b").string()).write(report("disk full")), config::InputError);
  EXPECT_FALSE(fs::exists(top_));
  fs::create_directories(top_ / "a");
  EXPECT_THROW(OutputFolder((top_ / "a" / "b").string()).write(report("disk full")), config::InputError);
  EXPECT_TRUE(fs::exists(top_ / "a"));  // was there before
  EXPECT_EQ(names_in(top_ / "a"), std::set<std::string>{});
}

TEST_F(OutputFolderTest, ALinkThatLeadsNowhereStays) {
  fs::create_directories(top_);
  fs::create_symlink("/nowhere/at/all", top_ / "link");
  EXPECT_THROW(OutputFolder((top_ / "link").string()).write(report("fine")), config::InputError);
  EXPECT_TRUE(fs::is_symlink(top_ / "link"));
}

// The exit code and the files say the same: either the run was ended and left nothing, or it has succeeded.
TEST_F(OutputFolderTest, ASignalBeforeTheFilesAreInPlaceLeavesNothing) {
  EXPECT_EXIT(OutputFolder((top_ / "new").string()).write(report("killed")), testing::KilledBySignal(SIGTERM), "");
  EXPECT_FALSE(fs::exists(top_));
  const OutputFolder folder(top_.string());
  folder.write(report("first"));
  let_signals_in();
  EXPECT_EXIT(folder.write(report("killed")), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(names_in(top_), all_);
  EXPECT_EQ(nlohmann::json::parse(content(top_ / "result.json")).at("job").at("name"), "first");
}

TEST_F(OutputFolderTest, ASignalAfterwardsComesTooLate) {
  const auto write_and_signal = [&] {
    OutputFolder(top_.string()).write(report("fine"));
    static_cast<void>(std::raise(SIGTERM));
    std::exit(0);
  };
  EXPECT_EXIT(write_and_signal(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(names_in(top_), all_);
}

// As with nohup: what would not end the program is no reason to throw its files away.
TEST_F(OutputFolderTest, AnIgnoredSignalIsIgnored) {
  const auto write_ignoring = [&] {
    std::signal(SIGTERM, SIG_IGN);
    OutputFolder(top_.string()).write(report("killed"));
    std::exit(0);
  };
  EXPECT_EXIT(write_ignoring(), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(fs::exists(top_ / "trouble.txt"));
}

TEST_F(OutputFolderTest, WhatAKilledWriterLeftIsRemovedByTheNext) {
  fs::create_directories(top_);
  std::ofstream(top_ / ".result.json.4711.partial") << "half";
  std::ofstream(top_ / ".mine.partial") << "not ours";
  OutputFolder(top_.string()).write(report("fine"));
  EXPECT_FALSE(fs::exists(top_ / ".result.json.4711.partial"));
  EXPECT_TRUE(fs::exists(top_ / ".mine.partial"));
}

TEST_F(OutputFolderTest, WhatAnotherStillWritesStays) {
  fs::create_directories(top_);
  SignalsHeld signals;
  WholeFiles slower(signals);
  slower.write(top_ / "result.json", [](std::ostream& out) { out << "slower"; });
  {
    WholeFiles faster(signals);
    faster.write(top_ / "result.json", [](std::ostream& out) { out << "faster"; });
    EXPECT_EQ(faster.put_in_place().size(), 1U);
  }
  EXPECT_EQ(content(top_ / "result.json"), "faster");
  EXPECT_EQ(slower.put_in_place().size(), 1U);
  EXPECT_EQ(content(top_ / "result.json"), "slower");
  EXPECT_EQ(names_in(top_), std::set<std::string>{"result.json"});
}

TEST_F(OutputFolderTest, AFolderInThePlaceOfAFileIsFoundBeforeAnyIsReplaced) {
  fs::create_directories(top_ / "timeline.json");
  EXPECT_THROW(OutputFolder(top_.string()).write(report("fine")), config::InputError);
  EXPECT_EQ(names_in(top_), std::set<std::string>{"timeline.json"});
}

TEST_F(OutputFolderTest, RefusesAFileInThePlaceOfTheFolder) {
  fs::create_directories(top_);
  std::ofstream(top_ / "file") << "x";
  EXPECT_THROW(OutputFolder((top_ / "file").string()), config::InputError);
  EXPECT_THROW(OutputFolder((top_ / "file" / "below").string()), config::InputError);
  EXPECT_THROW(OutputFolder(""), config::InputError);
}

TEST_F(OutputFolderTest, RefusesAFolderThatCannotBeMade) {
  const auto write_below_proc = [&] { OutputFolder("/proc/rehearse").write(report("fine")); };
  EXPECT_THROW(write_below_proc(), config::InputError);
}

TEST_F(OutputFolderTest, NothingIsCreatedBeforeThereIsSomethingToWrite) {
  const OutputFolder folder((top_ / "later").string());
  EXPECT_FALSE(fs::exists(top_));
}

}  // namespace
}  // namespace rehearse::sim

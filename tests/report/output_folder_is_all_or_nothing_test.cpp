#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <sstream>

#include "sim/report/output_folder.hpp"
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
const ReporterRegistry::Registration<Troublesome> registration("zz-troublesome");

class OutputFolderTest : public testing::Test {
 protected:
  OutputFolderTest() { fs::remove_all(top_); }
  ~OutputFolderTest() override { fs::remove_all(top_); }

  [[nodiscard]] Report report(const std::string& job_name) const {
    Report made{.job = hand_made_job(), .results = {&result_}, .timeline = &timeline_};
    made.job.name = job_name;
    return made;
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

TEST_F(OutputFolderTest, ASignalInTheMiddleWaitsUntilAllIsWritten) {
  EXPECT_EXIT(OutputFolder(top_.string()).write(report("killed")), testing::KilledBySignal(SIGTERM), "");
  std::set<std::string> expected = all_;
  expected.insert("trouble.txt");
  EXPECT_EQ(names_in(top_), expected);
  EXPECT_EQ(content(top_ / "trouble.txt"), "half");
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

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/validate/measured_case.hpp"

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

class CaseFiles : public testing::Test {
 protected:
  CaseFiles() : folder_(fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::create_directories(folder_ / "cases");
  }
  ~CaseFiles() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  // The message of reading one case file, without its folder.
  [[nodiscard]] std::string error(const std::string& text) const {
    try {
      static_cast<void>(read_cases({write("cases/c.yaml", text)}));
    } catch (const config::InputError& refusal) {
      return std::string(refusal.what()).substr((folder_ / "cases").string().size() + 1);
    }
    return "accepted";
  }

 private:
  fs::path folder_;
};

const std::string good = "- {id: a, source: s, group: g, job: {model: m}, measured: {step_s: 2}, inferred: [model]}\n";

TEST_F(CaseFiles, KeepWhatTheySay) {
  const auto cases = read_cases({write("cases/c.yaml", good)});
  ASSERT_EQ(cases.size(), 1);
  EXPECT_EQ(cases[0].id, "a");
  EXPECT_EQ(cases[0].group, "g");
  EXPECT_EQ(cases[0].measured, (Metrics{{Metric::step_s, 2.0}}));
  EXPECT_EQ(cases[0].inferred, std::vector<std::string>{"model"});
  EXPECT_FALSE(cases[0].models);
}

TEST_F(CaseFiles, FindModelsBesideThemOrOneFolderUp) {
  write("models.yaml", "above: {layers: 1}\n");
  EXPECT_TRUE(read_cases({write("cases/c.yaml", good)})[0].models.find("above"));
  write("cases/models.yaml", "beside: {layers: 1}\n");
  EXPECT_TRUE(read_cases({write("cases/c.yaml", good)})[0].models.find("beside"));
}

TEST_F(CaseFiles, AreRefusedWithPosition) {
  EXPECT_TRUE(error("- {id: a, source: s, job: {}, measurd: {step_s: 1}}\n").starts_with("c.yaml:1:31: error: unknown key 'measurd'"));
  EXPECT_TRUE(error("- {id: a, source: s, job: {}, measured: {step: 1}}\n").starts_with("c.yaml:1:42: error: unknown key 'step'"));
  EXPECT_TRUE(error("- {id: a, source: s, job: {}, measured: {step_s: 0}}\n").starts_with("c.yaml:1:50: error:"));
  EXPECT_TRUE(error("- {id: a, source: s, job: {}, measured: {step_s: fast}}\n").starts_with("c.yaml:1:50: error:"));
  EXPECT_TRUE(error("- {id: a, source: s, job: {}, measured: {}}\n").starts_with("c.yaml:1:41: error: a case needs a measurement"));
  EXPECT_TRUE(error("- {id: a, source: s, job: llama, measured: {step_s: 1}}\n").find("job must be a mapping") != std::string::npos);
  EXPECT_TRUE(error("- {source: s, job: {}, measured: {step_s: 1}}\n").starts_with("c.yaml:1:3: error: missing key 'id'"));
  EXPECT_TRUE(error("cases: none\n").starts_with("c.yaml:1:1: error:"));
}

TEST_F(CaseFiles, SayWhatTheirPeakOfMemoryCounts) {
  EXPECT_EQ(read_cases({write("cases/c.yaml", good)})[0].memory.counter, MemoryCounter::allocated);
  const std::string with = "- {id: a, source: s, job: {}, measured: {peak_memory_gib: 1}, memory: ";
  EXPECT_EQ(read_cases({write("cases/c.yaml", with + "reserved}\n")})[0].memory.counter, MemoryCounter::reserved);
  EXPECT_EQ(read_cases({write("cases/c.yaml", with + "nvidia-smi}\n")})[0].memory.counter, MemoryCounter::nvidia_smi);
  EXPECT_TRUE(error(with + "all}\n").starts_with("c.yaml:1:71: error:")) << error(with + "all}\n");
}

TEST_F(CaseFiles, SayOnWhichStageItWasRead) {
  EXPECT_FALSE(read_cases({write("cases/c.yaml", good)})[0].memory.stage);
  const std::string with = "- {id: a, source: s, job: {}, measured: {peak_memory_gib: 1}, memory_stage: ";
  EXPECT_EQ(read_cases({write("cases/c.yaml", with + "3}\n")})[0].memory.stage, 3);
  EXPECT_TRUE(error(with + "-1}\n").starts_with("c.yaml:1:77: error:")) << error(with + "-1}\n");
  EXPECT_TRUE(error(with + "last}\n").starts_with("c.yaml:1:77: error:")) << error(with + "last}\n");
}

TEST_F(CaseFiles, SayInWhichStepItWasRead) {
  EXPECT_EQ(read_cases({write("cases/c.yaml", good)})[0].memory.time, MemoryTime::later);
  const std::string with = "- {id: a, source: s, job: {}, measured: {peak_memory_gib: 1}, memory_step: ";
  EXPECT_EQ(read_cases({write("cases/c.yaml", with + "first}\n")})[0].memory.time, MemoryTime::first);
  EXPECT_EQ(read_cases({write("cases/c.yaml", with + "later}\n")})[0].memory.time, MemoryTime::later);
  EXPECT_EQ(read_cases({write("cases/c.yaml", with + "update, memory: reserved}\n")})[0].memory.time, MemoryTime::update);
  EXPECT_TRUE(error(with + "update}\n").starts_with("c.yaml:1:76: error: memory_step: update is of what is reserved"))
      << error(with + "update}\n");
  EXPECT_TRUE(error(with + "second}\n").starts_with("c.yaml:1:76: error:")) << error(with + "second}\n");
  const std::string nothing = error("- {id: a, source: s, job: {}, measured: {step_s: 1}, memory_step: first}\n");
  EXPECT_TRUE(nothing.starts_with("c.yaml:1:67: error: memory_step says of which step peak_memory_gib is")) << nothing;
}

TEST_F(CaseFiles, CountMoreTheWiderTheCounterLooks) {
  RankMemory memory;
  memory.at_peak[MemoryUse::weights] = 10;
  memory.at_peak[MemoryUse::framework] = 2;
  memory.cached_bytes = 3;
  memory.capacity_bytes = 100;
  EXPECT_EQ(counted_bytes(memory, MemoryCounter::allocated), 10);
  EXPECT_EQ(counted_bytes(memory, MemoryCounter::reserved), 13);
  EXPECT_EQ(counted_bytes(memory, MemoryCounter::nvidia_smi), 15);
}

TEST_F(CaseFiles, NameEachCaseOnce) {
  EXPECT_TRUE(error(good + good).starts_with("c.yaml:2:8: error: the id 'a' stands for another case already")) << error(good + good);
}

}  // namespace
}  // namespace rehearse::sim

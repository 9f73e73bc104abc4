// Inputs that once broke a reader (regressions/TARGET/*) and the seeds of the fuzzer, read by every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "places.hpp"
#include "tests/cli/program.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path here = fs::path(REHEARSE_SOURCE_DIR) / "tests/fuzz";

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;  // no target needs to have regressions
  for (const auto& entry : fs::directory_iterator(folder, ignored)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

class DoReadersSurvive : public testing::TestWithParam<std::string> {};

TEST_P(DoReadersSurvive, what_was_found) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  constexpr std::chrono::seconds longest{10};
  for (const char* kind : {"regressions", "seeds"}) {
    for (const fs::path& file : files_in(here / kind / GetParam())) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_NO_THROW(read_or_refuse(TargetRegistry::get(GetParam()), cli::content_of(file))) << file;
      EXPECT_LT(std::chrono::steady_clock::now() - start, longest) << file;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, DoReadersSurvive, testing::ValuesIn(TargetRegistry::names()),
                         [](const auto& info) { return info.param; });

// A folder whose name is no target would never be read.
TEST(DoReadersSurvive, every_folder_belongs_to_a_target) {
  const std::vector<std::string> targets = TargetRegistry::names();
  for (const char* kind : {"regressions", "seeds"}) {
    for (const fs::path& folder : files_in(here / kind)) {
      EXPECT_TRUE(std::ranges::binary_search(targets, folder.filename().string())) << folder;
    }
  }
}

TEST(DoReadersSurvive, a_bug_is_told_from_a_refusal) {
  EXPECT_THROW(TargetRegistry::get("model").read("layers: 0\n"), config::InputError);
  EXPECT_NO_THROW(read_or_refuse(TargetRegistry::get("model"), "layers: 0\n"));
}

}  // namespace
}  // namespace rehearse::fuzz

// Every published case beside this file, predicted by formula. What cannot be run must be a feature that this version says it lacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> case_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(REHEARSE_SOURCE_DIR) / "tests/measured/cases")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

const Validation& validation() {
  static const Validation all = [] {
    Validation result{.outcomes = run_cases(read_cases(case_files()), {}, {}), .summaries = {}};
    result.summaries = summarise_errors(result.outcomes);
    return result;
  }();
  return all;
}

TEST(Measured, CasesFailOnlyForWhatIsNotSimulated) {
  for (const Outcome& outcome : validation().outcomes) {
    if (outcome.failed.empty()) continue;
    EXPECT_TRUE(outcome.failed.ends_with("is not simulated by this version")) << outcome.id << ": " << outcome.failed;
  }
}

// Regression guards, no claims: the mean absolute error of the step time when the bound was set (docs/accuracy.md), in percent, and a
// margin of one point for what a better model of another group may cost this one. An improvement should lower them.
struct Guard {
  const char* group;
  double error_pct;
};
constexpr double margin_pct = 1;

class Groups : public testing::TestWithParam<Guard> {};

TEST_P(Groups, AreNotPredictedWorseThanBefore) {
  const auto summary = std::ranges::find_if(validation().summaries, [](const ErrorSummary& each) {
    return each.group == GetParam().group && each.metric == Metric::step_s && each.cases == "all";
  });
  ASSERT_NE(summary, validation().summaries.end());
  EXPECT_LE(100 * summary->mean_abs, GetParam().error_pct + margin_pct);
}

INSTANTIATE_TEST_SUITE_P(Measured, Groups,
                         testing::Values(Guard{"dense-a100", 8.5}, Guard{"dense-a100-bloom", 10.3}, Guard{"dense-a100-bloom-early", 8.3},
                                         Guard{"dense-a100-vtrain", 8.2}, Guard{"dense-a100-vtrain-single", 12.6},
                                         Guard{"dense-b200-fp8", 14.8}, Guard{"dense-b200-node", 10.8}, Guard{"dense-gb200-bf16", 1.5},
                                         Guard{"dense-gb200-fp4", 3.6}, Guard{"dense-gb200-fp8", 5.3}, Guard{"dense-gb300-fp4", 11.1},
                                         Guard{"dense-h100-bf16", 5.8}, Guard{"dense-h100-fp8", 7.9}, Guard{"dense-h200-fp8", 2.6},
                                         Guard{"dense-v100", 4.8}, Guard{"fsdp-a100", 6.9}, Guard{"fsdp-h100", 5.8},
                                         Guard{"fsdp-h100-fp8", 4.6}, Guard{"launch-bound-a100-vtrain", 7.2}, Guard{"pipeline-a100", 11.6},
                                         Guard{"moe-b200-fp8", 8.0}, Guard{"moe-b200-node", 9.7}, Guard{"moe-gb200-bf16", 29.3},
                                         Guard{"moe-gb200-fp8", 10.1}, Guard{"moe-h100-bf16", 12.5}, Guard{"moe-h100-fp8", 24.7},
                                         Guard{"moe-h800", 18.7}),
                         [](const auto& test) {
                           std::string name = test.param.group;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Measured, SummaryIsPrinted) {
  print_summaries(validation(), false, std::cout);
  EXPECT_FALSE(validation().summaries.empty());
}

}  // namespace
}  // namespace rehearse::sim

// Steps measured on a machine that differs from the files: what a fit to half of them is worth on the other half.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/node.hpp"
#include "sim/calibrate/measured_steps.hpp"
#include "sim/validate/outcome.hpp"
#include "tests/calibrate/measurements.hpp"

namespace rehearse::calibrate::testing {
namespace {

using cli::Outcome;
using cli::run_shell;

const sim::Settings reality{{"cluster.gpu.efficiency.gemm.bf16.compute", "0.5"}, {"software.issue", "60 us"}};

std::string case_text(int number, int micro, int sequence, int gpus, double step_s, const std::string& more = "") {
  return fmt::format(
      "- id: run-{}\n  source: measured here\n"
      "  job: {{model: {{layers: 8, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000, activation: gelu}}, cluster: dgx-h100-ndr400, gpus: "
      "{},"
      " batch: {{global: 64, micro: {}, sequence: {}}}{}}}\n  measured: {{step_s: {}}}\n",
      number, gpus, micro, sequence, more, step_s);
}

// Host-bound and compute-bound ones, as they would run in reality.
std::string cases(const std::filesystem::path& folder) {
  std::string text;
  int number = 0;
  for (const int gpus : {1, 2, 8}) {
    for (const auto& [micro, sequence] : {std::pair(1, 256), std::pair(1, 1024), std::pair(2, 2048), std::pair(4, 4096)}) {
      ++number;
      write(folder / "one.yaml", case_text(number, micro, sequence, gpus, 1));
      const auto one = sim::read_cases({(folder / "one.yaml").string()});
      const sim::Outcome real = sim::run_case(one.front(), {.simulate = false, .sets = reality});
      EXPECT_EQ(real.failed, "");
      text += case_text(number, micro, sequence, gpus, real.predicted.at(sim::Metric::step_s));
    }
  }
  return text;
}

class Steps : public ::testing::Test {
 protected:
  void SetUp() override { write(folder_.path() / "cases.yaml", cases(folder_.path())); }
  [[nodiscard]] Outcome shell(const std::string& command) const { return run_shell(command, folder_.path()); }
  cli::TemporaryFolder folder_;
};

TEST_F(Steps, TheOtherHalfIsAtLeastAThirdBetter) {
  const auto measured = sim::read_cases({(folder_.path() / "cases.yaml").string()});
  const sim::StepCalibration out = sim::calibrate_to_steps(measured, {.gpu = true, .cluster = true, .software = true});
  EXPECT_EQ(out.taken.cases + out.left_out.cases, 12);
  EXPECT_EQ(out.left_out.cases, 6);
  EXPECT_GT(out.left_out.before_pct, 10);
  EXPECT_LT(out.left_out.after_pct, out.left_out.before_pct * 2 / 3);
}

// What none of the runs uses keeps its value: no product in 8 bits, and no second node.
TEST_F(Steps, WhatTheyDoNotTellStays) {
  const auto measured = sim::read_cases({(folder_.path() / "cases.yaml").string()});
  const sim::StepCalibration out = sim::calibrate_to_steps(measured, {.gpu = true, .cluster = true, .software = true});
  for (std::size_t i = 0; i < out.parameters.size(); ++i) {
    const std::string& key = out.parameters[i].key;
    const bool unused = key.find("fp8") != std::string::npos || key.find("nics") != std::string::npos;
    if (unused) {
      EXPECT_FALSE(out.fitted[i].fitted) << key;
      EXPECT_EQ(out.fitted[i].value, out.parameters[i].value) << key;
    }
    const bool decisive = key == "cluster.gpu.efficiency.gemm.bf16.compute";
    EXPECT_TRUE(!decisive || out.fitted[i].fitted);
  }
}

TEST_F(Steps, TheFilesTheyGiveCanBeNamedInAJob) {
  const Outcome outcome = shell("\"$rehearse\" calibrate steps cases.yaml --gpu gpu.yaml --software stack.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("left out"), std::string::npos);
  const Outcome after = shell(
      "\"$rehearse\" validate cases.yaml --summary --set 'cluster={like: dgx-h100-ndr400, gpu: ./gpu.yaml}' --set software=./stack.yaml");
  EXPECT_EQ(after.code, 0) << after.err;
}

TEST_F(Steps, CasesOfTwoMachinesAreRefused) {
  const std::string text = cases(folder_.path());
  write(folder_.path() / "two.yaml", text + case_text(99, 1, 1024, 8, 1, ", software: nanotron"));
  const Outcome outcome = shell("\"$rehearse\" calibrate steps two.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("two.yaml:"), std::string::npos) << outcome.err;
  write(folder_.path() / "few.yaml", case_text(1, 1, 1024, 8, 1));
  EXPECT_EQ(shell("\"$rehearse\" calibrate steps few.yaml").code, 2);
}

}  // namespace
}  // namespace rehearse::calibrate::testing

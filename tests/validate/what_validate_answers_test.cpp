// The command as a shell sees it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

using nlohmann::json;

// Two nodes of A100s; the second case asks for what no GPU file has.
const std::string cases =
    "- id: runs\n"
    "  source: made up\n"
    "  group: g\n"
    "  job: {model: gpt-22b, cluster: dgx-a100-80g-hdr200, gpus: 16, parallel: {tp: 8, pp: 2},\n"
    "        batch: {global: 8, micro: 1, sequence: 2048}}\n"
    "  measured: {step_s: 2, tokens_per_s_per_gpu: 512, samples_per_s: 4}\n"
    "- id: cannot\n"
    "  source: made up\n"
    "  job: {model: gpt-22b, cluster: dgx-a100-80g-hdr200, gpus: 7, parallel: {tp: 8}, batch: {global: 8, micro: 1, sequence: 2048}}\n"
    "  measured: {step_s: 2}\n";

class ValidateCommand : public testing::Test {
 protected:
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    std::ofstream(folder_.path() / "cases.yaml") << cases;
    std::ofstream(folder_.path() / "good.yaml") << cases.substr(0, cases.find("- id: cannot"));
    return run_shell("\"$rehearse\" validate " + arguments, folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(ValidateCommand, ExitsOneWhenACaseFails) {
  const Outcome outcome = run("cases.yaml");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("failed: cannot: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("2 cases, 1 failed"), std::string::npos);
  EXPECT_EQ(run("good.yaml").code, 0);
}

TEST_F(ValidateCommand, RefusesBadFiles) {
  EXPECT_EQ(run("absent.yaml").code, 2);
  EXPECT_EQ(run("good.yaml --compare-to good.yaml").code, 2);
  EXPECT_EQ(run("good.yaml --set nonsense").code, 2);
  EXPECT_EQ(run("good.yaml -o no/such/folder.csv").code, 2);
}

// samples/s = batch / step; tokens/s/GPU = samples/s * sequence / GPUs. Hence errors of both are (1 + e)^-1 - 1 with e that of the step, as
// measured here (4 = 8 / 2 and 512 = 4 * 2048 / 16).
TEST_F(ValidateCommand, PrintsJsonWithConsistentMetrics) {
  const json answer = json::parse(run("cases.yaml --json").out);
  const json& first = answer.at("cases").at(0);
  const double step_error = first["error_pct"]["step_s"].get<double>() / 100;
  EXPECT_NEAR(first["predicted"]["step_s"].get<double>(), 2 * (1 + step_error), 1e-9);
  for (const char* rate : {"samples_per_s", "tokens_per_s_per_gpu"}) {
    EXPECT_NEAR(first["error_pct"][rate].get<double>() / 100, 1 / (1 + step_error) - 1, 1e-9) << rate;
  }
  EXPECT_TRUE(first["failed"].is_null());
  EXPECT_TRUE(first["simulated"].empty());
  EXPECT_TRUE(answer["cases"][1]["failed"].is_string());
}

TEST_F(ValidateCommand, SimulatesEachCaseInAProcessOfItsOwn) {
  const Outcome outcome = run("good.yaml --simulate --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json first = json::parse(outcome.out).at("cases").at(0);
  // Formula and timeline of a plain pipeline agree (docs/analytic-model.md): within 5 %.
  EXPECT_NEAR(first["simulated"]["step_s"].get<double>() / first["predicted"]["step_s"].get<double>(), 1, 0.05);
}

TEST_F(ValidateCommand, ComparesWithAStoredResult) {
  const Outcome same = run("good.yaml --json > before.json && \"$rehearse\" validate good.yaml --summary --compare-to before.json");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("nothing changed"), std::string::npos) << same.out;
  const Outcome other = run("good.yaml --set batch.micro=2 --compare-to before.json");
  EXPECT_NE(other.out.find("runs step_s"), std::string::npos) << other.out;
}

TEST_F(ValidateCommand, WritesOneCsvRowPerMetric) {
  ASSERT_EQ(run("cases.yaml -o out.csv").code, 1);
  const std::string csv = content_of(folder_.path() / "out.csv");
  EXPECT_TRUE(csv.starts_with("group,id,metric,measured,predicted,error_pct,simulated,simulated_error_pct,inferred,failed\n"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 3 + 1);
}

}  // namespace
}  // namespace rehearse::cli

// The program: the same history gives the same bytes, on this design and on another.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "places.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

constexpr const char* history =
    "time_s,component,kind,duration_s,node,level,slowdown\n"
    "10000,gpu,fail,,3,pod,\n20000,software,fail,95,,process,\n30000,nic,slow,3600,2,,2\n50000,gpu,slow,7200,1,,1.3\n";
constexpr const char* job =
    " llama2-70b-128-a100 history.csv --step '27.83 s' --set 'training={steps: 3000, init: 100 s}'"
    " --set 'checkpoint={interval: 50, save_time: 4 s, load_time: 5 s}' ";

class DoesAReplayRepeat : public testing::Test {
 protected:
  Outcome replay(const std::string& options) {
    std::ofstream(folder_.path() / "history.csv") << history;
    return run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR " $rehearse replay" + std::string(job) + options, folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(DoesAReplayRepeat, byte_for_byte) {
  for (const char* options : {"", "--json", "--lines"}) {
    const Outcome one = replay(options);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(one.out, replay(options).out);
  }
  static_cast<void>(replay("-o one"));
  static_cast<void>(replay("-o two"));
  for (const char* file : {"result.json", "history.jsonl", "runs.csv", "resolved-job.yaml"}) {
    EXPECT_EQ(content_of(folder_.path() / "one" / file), content_of(folder_.path() / "two" / file)) << file;
    EXPECT_FALSE(content_of(folder_.path() / "one" / file).empty()) << file;
  }
}

// Every line is a JSON object; each fault of the file happens at its time; time never goes back.
TEST_F(DoesAReplayRepeat, event_by_event) {
  std::istringstream lines(replay("--lines").out);
  std::vector<std::int64_t> faults;
  std::int64_t last = 0;
  std::string line;
  while (std::getline(lines, line)) {
    const auto entry = nlohmann::json::parse(line);
    const auto at = entry.at("at_ns").get<std::int64_t>();
    EXPECT_GE(at, last);
    last = at;
    if (entry.contains("source")) faults.push_back(at / 1'000'000'000);
  }
  EXPECT_EQ(faults, (std::vector<std::int64_t>{10000, 20000, 30000, 50000}));
}

// The resolved job holds the trace: it repeats the run after the file is gone.
TEST_F(DoesAReplayRepeat, from_the_resolved_job) {
  static_cast<void>(replay("-o one"));
  std::filesystem::remove(folder_.path() / "history.csv");
  const Outcome again = run_shell("$rehearse run one/resolved-job.yaml --step '27.83 s' -o again", folder_.path());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content_of(folder_.path() / "one/history.jsonl"), content_of(folder_.path() / "again/history.jsonl"));
}

// The history's one failure at pod level takes 262 s to recover from, or 10 s with hot spares; the other brings its own 95 s.
TEST_F(DoesAReplayRepeat, on_another_design) {
  const auto restart_s = [&](const std::string& options) {
    const auto run = nlohmann::json::parse(replay("--json " + options).out).at("whole_job").at("runs").at(0);
    return run.at("account_ns").at("restart").get<std::int64_t>() / 1'000'000'000;
  };
  EXPECT_EQ(restart_s(""), 262 + 95);
  EXPECT_EQ(restart_s("--set 'recovery={policy: hot-spare, spares: 2, repair: 1 day, swap: 10 s}'"), 10 + 95);
}

TEST_F(DoesAReplayRepeat, a_bad_trace_is_wrong_input) {
  std::ofstream(folder_.path() / "bad.csv") << "time_s,component,kind,duration_s\n5,gpu,fail,\n4,gpu,fail,\n";
  const Outcome outcome = run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR " $rehearse replay llama2-70b-128-a100 bad.csv", folder_.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "bad.csv:3:1: error: earlier than the row before it\n    3 | 4,gpu,fail,\n      | ^\n");
}

// 54 days, 466 interruptions: the report says that more than 90 % of the time was effective. Counts of 466 spread by 22.
TEST(DoTheScenariosRun, llama3_54_days) {
  const Outcome outcome = run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR " $rehearse run llama3-405b-54-days --runs 20 --json", "/tmp");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto whole = nlohmann::json::parse(outcome.out).at("whole_job");
  EXPECT_GT(whole.at("simulated").at("ettr").at("mean").get<double>(), 0.9);
  EXPECT_NEAR(whole.at("simulated").at("failures").at("mean").get<double>(), 466, 4 * 22 / std::sqrt(20));
  EXPECT_NEAR(whole.at("plan").at("failures_per_day").get<double>() * 54, 466, 0.01);  // rates are written with six digits
  EXPECT_EQ(whole.at("runs").size(), 20U);
}

TEST(DoTheScenariosRun, on_a_day_of_a_job) {
  for (const char* scenario : {"rail-switch-flapping", "straggler-30-percent", "mofa-table-5"}) {
    const Outcome outcome = run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR
                                      " $rehearse run llama3-405b-54-days --json --set 'training={time: 1 day}' --set faults=" +
                                          std::string(scenario),
                                      "/tmp");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto run = nlohmann::json::parse(outcome.out).at("whole_job").at("runs").at(0);
    const bool slow = std::string(scenario) != "mofa-table-5";
    EXPECT_EQ(run.at("account_ns").at("degraded").get<std::int64_t>() > 0, slow) << scenario;
    EXPECT_EQ(run.at("slow").get<int>() > 0, slow) << scenario;
  }
}

// MoFa, Table 5, each case as a shipped job: the formula to 0.01 points, and the simulation within its confidence interval or 0.3 points.
TEST(DoTheScenariosRun, mofa_table_5) {
  const std::vector<std::pair<std::string, double>> printed{{"llama2-70b-128", 98.49}, {"llama2-70b-256", 99.11},
                                                            {"llama2-70b-512", 99.32}, {"llama2-70b-1024", 99.39},
                                                            {"llama3-405b-64", 96.32}, {"deepseek-v3-128", 98.96}};
  for (const auto& [name, ettr] : printed) {
    const Outcome outcome =
        run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR " $rehearse compare mofa-" + name + " --whole --runs 10 --json", "/tmp");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto whole = nlohmann::json::parse(outcome.out).at("whole_job");
    const double formula = whole.at("formula").at("ettr").get<double>();
    EXPECT_NEAR(100 * formula, ettr, 0.01) << name;
    EXPECT_NEAR(whole.at("simulated").at("ettr").at("mean").get<double>(), formula, 0.003) << name;
  }
}

// What the runs spend on each cause more than the formula adds up to the difference of ETTR, but for what is below 0.01 points each.
TEST(DoesTheComparisonAddUp, to_the_difference) {
  const Outcome outcome =
      run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR
                " $rehearse compare llama3-70b-64-h100 --whole --runs 10 --json --set 'training={steps: 20000}'"
                " --set 'checkpoint={interval: 10, mode: async, save_time: 300 s, stall: 1 s, slowdown: 1.1, load_time: 10 s}'"
                " --set 'recovery={policy: replace, spares: 1, repair: 2 days}'"
                " --set 'faults={racks: {source: poisson, component: rack, rate: 0.1 /day, per: group, nodes: 2, level: pod}}'",
                "/tmp");
  ASSERT_NE(outcome.out, "") << outcome.err;
  const auto whole = nlohmann::json::parse(outcome.out).at("whole_job");
  double points = 0;
  std::string all;
  for (const auto& difference : whole.at("differences")) {
    points += difference.at("points").get<double>();
    all += difference.at("reason").get<std::string>() + "\n";
  }
  const double ettr = whole.at("simulated").at("ettr").at("mean").get<double>() - whole.at("formula").at("ettr").get<double>();
  EXPECT_NEAR(points, -100 * ettr, 7 * 0.01);
  for (const char* why : {"spares run out", "one failure takes up to 2 nodes", "1.1 times as long during a background write",
                          "counts only when its background write", "the next one waits"}) {
    EXPECT_NE(all.find(why), std::string::npos) << why << "\n" << all;
  }
}

// A job that fails more often than it can save is given up, and the answer is no.
TEST(DoesAHopelessJobEnd, with_exit_code_1) {
  const Outcome outcome = run_shell(
      "REHEARSE_DATA=" REHEARSE_SOURCE_DIR
      " $rehearse run llama2-70b-128-a100 --step '30 s' --set 'training={steps: 1000}'"
      " --set 'checkpoint={interval: 500, save_time: 60 s, load_time: 60 s}' --set 'faults={all: {source: poisson, rate: 10 /day}}'",
      "/tmp");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("1 of 1 runs given up"), std::string::npos) << outcome.out;
}

// Eight failures a second: the run ends, and its history is no longer than memory.
TEST(DoesAHopelessJobEnd, where_failures_are_more_than_steps) {
  const Outcome outcome = run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR
                                    " $rehearse run llama3-8b-64-h100 --step '1 s' --runs 1 --set 'training={steps: 20000}'"
                                    " --set 'faults={all: {source: poisson, rate: 1 /s}}'",
                                    "/tmp");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("1 of 1 runs given up"), std::string::npos) << outcome.out;
}

TEST(IsAWrongOptionExplained, of_run) {
  const auto message = [](const std::string& options) {
    return run_shell("REHEARSE_DATA=" REHEARSE_SOURCE_DIR " $rehearse run llama2-70b-128-a100 " + options, "/tmp");
  };
  for (const auto& [options, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "does not say how long it trains"},
           {"--set training.steps=5 --runs 0", "--runs takes a whole number from 1 to 1000000, not '0'"},
           {"--set training.steps=5 --step soon", "--step takes predicted, simulated or a time, not 'soon'"},
           {"--set training.steps=5 --sweep checkpoint.interval", "--sweep takes key=value,value"},
           {"--set training.steps=5 --set checkpoint.stall='1 s'", "stall is for mode async"},
           {"--set training.steps=5 --set recovery.spares=2", "recovery.repair is needed"},
           {"--set training.steps=1e12", "take longer than 25 years"}}) {
    const Outcome outcome = message(options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << options << ": " << outcome.err;
  }
}

}  // namespace
}  // namespace rehearse::cli

// The best plans simulated: beside each formula the step that `simulate` gives, their order by it, and what it has against them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rehearse::tests {
namespace {

using nlohmann::json;

// Two plans that the simulation puts in the other order: more chunks are better by the formula, which does not see the links they share.
const std::string two_plans =
    "llama3-70b-64-h100 --set 'parallel={tp: 4, pp: 4, cp: 2, sp: true}' --set batch.micro=1 --set schedule=interleaved-1f1b "
    "--set optimizer.sharding=zero1 --set 'overlap={tp: true, cp: true, pp: true, dp_gradients: true, dp_parameters: true}' "
    "--set 'tune.space={parallel.vpp: [20, 10]}' ";

json tuned(const std::string& arguments) {
  const cli::Outcome outcome = cli::run_program("tune " + arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out).at("tune") : json();
}

std::string arguments_of(const json& plan) {
  std::string text;
  for (const json& set : plan.at("set")) text += fmt::format(" --set '{}'", set.get<std::string>());
  return text;
}

TEST(Confirmation, IsWhatSimulateSaysOfEachPlan) {
  const json tune = tuned("llama3-8b-8-h100 --keep 4 --confirm 3");
  ASSERT_EQ(tune.at("best").size(), 4U);
  std::vector<std::pair<int, double>> by_rank;
  for (std::size_t i = 0; i < 3; ++i) {
    const json& plan = tune.at("best")[i];
    const cli::Outcome outcome = cli::run_program("simulate llama3-8b-8-h100 --json" + arguments_of(plan));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json simulated = json::parse(outcome.out).at("results").at("simulated");
    EXPECT_EQ(plan.at("simulated_step_s"), simulated.at("step_s"));
    EXPECT_NEAR(plan.at("simulated_step_s").get<double>(), plan.at("step_s").get<double>(), 0.02 * plan.at("step_s").get<double>());
    by_rank.emplace_back(plan.at("simulated_rank").get<int>(), plan.at("simulated_step_s").get<double>());
  }
  std::ranges::sort(by_rank);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(by_rank[static_cast<std::size_t>(i)].first, i + 1);
  EXPECT_TRUE(std::ranges::is_sorted(by_rank, {}, &std::pair<int, double>::second));
  EXPECT_FALSE(tune.at("best")[3].contains("simulated_step_s"));  // was not asked for
  EXPECT_TRUE(tune.at("order_changes").empty());
}

TEST(Confirmation, SaysWhyTheOrderChanges) {
  const json tune = tuned(two_plans + "--confirm 2 --set 'tune.within=0 %'");
  const json &first = tune.at("best")[0], &second = tune.at("best")[1], &changes = tune.at("order_changes");
  EXPECT_LT(first.at("step_s").get<double>(), second.at("step_s").get<double>());
  EXPECT_GT(first.at("simulated_step_s").get<double>(), second.at("simulated_step_s").get<double>());
  EXPECT_EQ(first.at("simulated_rank"), 2);
  EXPECT_EQ(second.at("simulated_rank"), 1);
  ASSERT_EQ(changes.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto text = changes[i].get<std::string>();
    EXPECT_TRUE(text.starts_with(tune.at("best")[i].at("plan").get<std::string>() + ": simulated +")) << text;
    EXPECT_NE(text.find("shared links and contention"), std::string::npos) << text;
  }
}

TEST(Confirmation, CountsPlansWithinTheShareAsEqual) {
  const json tune = tuned(two_plans + "--confirm 2 --set 'tune.within=2 %'");
  EXPECT_EQ(tune.at("best")[0].at("simulated_rank"), 2);
  EXPECT_TRUE(tune.at("order_changes").empty());
}

// The scenario is drawn for a time that one plan's step ends in, and the other's does not.
TEST(Confirmation, NamesThePlanThatTheSimulationRefuses) {
  const std::string scenario = two_plans +
                               "--confirm 2 --goal step --set 'faults={all: {source: poisson, rate: 0.0001 /day}}' "
                               "--set 'simulation.faults=[scenario at 1 h for 14.32 s]'";
  const json tune = tuned(scenario);
  const json &refused = tune.at("best")[0], &other = tune.at("best")[1];
  EXPECT_NE(refused.at("simulation_refused").get<std::string>().find("the scenario is drawn for 14.3 s of it"), std::string::npos);
  EXPECT_FALSE(refused.contains("simulated_step_s"));
  EXPECT_FALSE(refused.contains("simulated_rank"));
  EXPECT_GT(other.at("simulated_step_s").get<double>(), 14);
  EXPECT_EQ(other.at("simulated_rank"), 1);
  ASSERT_EQ(tune.at("order_changes").size(), 2U);
  EXPECT_NE(tune.at("order_changes")[0].get<std::string>().find("the simulation refuses it"), std::string::npos);
  const cli::Outcome table = cli::run_program("tune " + scenario);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("plan 1: the simulation refuses it: the step takes 14.3 s"), std::string::npos) << table.out;
}

// What was searched for is not lost when none can be simulated.
TEST(Confirmation, KeepsTheAnswerWhereEverySimulationIsRefused) {
  const std::pair<const char*, const char*> faults[] = {{"gpu 5 at 3 s", "does not come to its end"},
                                                        {"gpu 5 at 300 s", "is after the end of the step"}};
  for (const auto& [fault, why] : faults) {
    const cli::TemporaryFolder folder;
    const cli::Outcome outcome =
        cli::run_shell(fmt::format("$rehearse tune {} --confirm 2 --set 'simulation.faults=[{}]' -o out", two_plans, fault), folder.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json tune = json::parse(cli::content_of(folder.path() / "out" / "result.json")).at("tune");
    ASSERT_EQ(tune.at("best").size(), 2U);
    for (const json& plan : tune.at("best")) {
      EXPECT_NE(plan.at("simulation_refused").get<std::string>().find(why), std::string::npos) << plan;
      EXPECT_FALSE(plan.contains("simulated_step_s"));
    }
    EXPECT_TRUE(tune.at("order_changes").empty());
    EXPECT_FALSE(cli::content_of(folder.path() / "out" / "best.yaml").empty());
  }
}

// By the formula's share of cache it fits, by the allocator's own doings it does not: as `simulate` says of it.
TEST(Confirmation, SaysThatAPlanDoesNotFit) {
  const std::string job =
      "llama2-70b-128-a100 --set 'parallel={tp: 8, pp: 2, sp: true, vpp: 8}' --set schedule=interleaved-1f1b "
      "--set 'overlap={tp: true, pp: true, dp_gradients: true, dp_parameters: true}'";
  const std::string search = job + " --set 'tune.space={batch.micro: [4, 2]}' --fits likely --confirm 2";
  const json tune = tuned(search);
  ASSERT_EQ(tune.at("best").size(), 2U);
  int lacking = 0;
  for (const json& plan : tune.at("best")) {
    const cli::Outcome simulated = cli::run_program("simulate " + job + arguments_of(plan));
    if (!plan.contains("simulated_shortage")) {
      EXPECT_EQ(simulated.code, 0) << simulated.err;
      EXPECT_EQ(plan.at("simulated_rank"), 1);
      continue;
    }
    ++lacking;
    EXPECT_EQ(simulated.code, 1);
    const auto shortage = plan.at("simulated_shortage").get<std::string>();
    EXPECT_NE(simulated.err.find(shortage), std::string::npos) << simulated.err;
    EXPECT_FALSE(plan.contains("simulated_rank"));
    const cli::Outcome table = cli::run_program("tune " + search);
    EXPECT_NE(table.out.find(": " + shortage), std::string::npos) << table.out;
  }
  EXPECT_EQ(lacking, 1);
}

TEST(Confirmation, IsTheSameOnAnyNumberOfProcesses) {
  const cli::TemporaryFolder folder;
  for (const char* jobs : {"1", "3"})
    ASSERT_EQ(cli::run_shell(fmt::format("$rehearse tune {} --confirm 2 --jobs {} -o out{}", two_plans, jobs, jobs), folder.path()).code,
              0);
  for (const char* file : {"result.json", "tune.csv"})
    EXPECT_EQ(cli::content_of(folder.path() / "out1" / file), cli::content_of(folder.path() / "out3" / file));
}

}  // namespace
}  // namespace rehearse::tests

// A run that is over before anything fails.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

TEST(AShortRun, has_no_time_between_failures) {
  const Outcome outcome = run_program("run llama3-405b-54-days --set training.time='1 s'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line, found;
  while (std::getline(lines, line))
    if (line.starts_with("time between failures")) found = line;
  EXPECT_NE(found.find("2.78 h"), std::string::npos) << outcome.out;  // by formula
  EXPECT_EQ(found.find("0 s"), std::string::npos) << found;
}

// Its time is up while it starts: by formula too it then takes that long, and no longer.
TEST(AShortRun, IsOverWhenItsTimeIsUp) {
  const Outcome outcome = run_program("run llama3-405b-54-days --set training.time='1 s' --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json formula = nlohmann::json::parse(outcome.out).at("whole_job").at("formula");
  EXPECT_EQ(formula.at("total_s"), 1);
  EXPECT_EQ(formula.at("effective_s"), 0);
}

}  // namespace
}  // namespace rehearse::cli

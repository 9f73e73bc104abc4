// The installed header (sim/api) gives what the program prints, also of what is chosen after a job is read: chunks of experts, the
// allocator.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "places.hpp"
#include "sim/api/rehearse.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

class IsTheLibraryTheProgram : public testing::TestWithParam<const char*> {};

TEST_P(IsTheLibraryTheProgram, by_formula_and_simulated) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  const Job job = Job::load(GetParam());
  for (const auto& [command, method, step] :
       {std::tuple("predict", "analytic", predict(job)), std::tuple("simulate", "simulated", simulate(job))}) {
    const Outcome outcome = run_program(std::string(command) + " --json " + GetParam());
    const auto result = nlohmann::json::parse(outcome.out).at("results").at(method);
    EXPECT_EQ(step.seconds, result.at("step_s").get<double>()) << command;
    EXPECT_EQ(step.fits, result.at("memory").at("fits").get<bool>()) << command;
    EXPECT_EQ(step.fits, outcome.code == 0) << command;
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, IsTheLibraryTheProgram, testing::Values("memfine-64g", "llama3-8b-8-h100"));

}  // namespace
}  // namespace rehearse::cli

// The installed header (sim/api) gives what the program prints, also of what is chosen after a job is read: chunks of experts, the
// allocator; as JSON to the byte, of every kind of job; and refuses in its words.
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

const std::string a_job_as_text = "model: llama3-8b\ncluster: dgx-h100-ndr400\ngpus: 8\nbatch: {global: 64, micro: 1, sequence: 4096}\n";

TEST(IsTheLibrarysJsonThePrograms, of_a_name_with_settings_of_other_kinds_and_of_a_text) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  EXPECT_EQ(predict_json("llama3-8b-8-h100", {{"batch.global", "256"}, {"recompute", "full"}}),
            run_program("predict llama3-8b-8-h100 --json --set batch.global=256 --set recompute=full").out);
  EXPECT_EQ(predict_json("serve-llama3-70b-apart"), run_program("predict serve-llama3-70b-apart --json").out);
  EXPECT_EQ(predict_json("phones-200"), run_program("predict phones-200 --json").out);
  EXPECT_EQ(predict_text_json(a_job_as_text, {{"gpus", "16"}}),
            run_program("predict - --json --set gpus=16 <<< '" + a_job_as_text + "'").out);
}

TEST(IsTheLibrarysRefusalThePrograms, with_its_parts) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  try {
    static_cast<void>(predict_text_json(a_job_as_text + "paralel: {tp: 2}\n"));
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.what() + std::string("\n"), run_program("predict - <<< '" + a_job_as_text + "paralel: {tp: 2}\n'").err);
    EXPECT_EQ(error.where().file, "stdin");
    EXPECT_EQ(error.where().line, 5);
    EXPECT_EQ(error.where().column, 1);
    EXPECT_EQ(error.message(), "unknown key 'paralel'");
    EXPECT_TRUE(error.suggestion().starts_with("did you mean 'parallel'?")) << error.suggestion();
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, IsTheLibraryTheProgram, testing::Values("memfine-64g", "llama3-8b-8-h100"));

}  // namespace
}  // namespace rehearse::cli
